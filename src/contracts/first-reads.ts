/**
 * Owns: which pages the console has, and what each asks for first. The server announces it with the page, and the page asks for exactly that: a request that is
 * announced and then asked otherwise would be made twice. No zod here: the pages load this.
 */
import type { SessionStatus } from "./journal.js";

/** First part of the address of each page. */
export const PAGE_NAMES = ["approvals", "sessions", "dead-letters", "costs", "audit", "policies", "agents", "system", "confirm", "sign-in"] as const;
export type PageName = (typeof PAGE_NAMES)[number];

const SESSIONS_SHOWN = 100;
const LISTED: readonly SessionStatus[] = ["IDLE", "PLANNING", "EXECUTING_TOOL", "SUMMARIZING", "AWAITING_APPROVAL", "ESCALATED", "CLOSED"];

export const APPROVALS_OPEN = "/v1/approvals?state=open&limit=200";
export const APPROVALS_ALL = "/v1/approvals?state=all&limit=200";

/** The list of sessions for an address of the Sessions page. */
export function sessionsPath(query: URLSearchParams): string {
  const status = LISTED.find((name) => name === query.get("status"));
  const [text, agent] = [query.get("q") ?? "", query.get("agent") ?? ""];
  return `/v1/sessions?${new URLSearchParams({ limit: String(SESSIONS_SHOWN), ...(status === undefined ? {} : { status }), ...(text === "" ? {} : { q: text }), ...(agent === "" ? {} : { agent }) }).toString()}`;
}

/** Paths of reads for the page at `path`, the first of them who is signed in. */
export function firstReads(path: string, query: URLSearchParams): string[] {
  if (path === "/sessions") return ["/session", sessionsPath(query)];
  if (path === "/" || path === "/approvals") return ["/session", query.get("view") === "decided" ? APPROVALS_ALL : APPROVALS_OPEN];
  return ["/session"];
}
