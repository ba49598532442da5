/** Owns: words for times, states and amounts. */
import type { SessionView } from "../../../src/contracts/api.js";
import type { SessionStatus } from "../../../src/contracts/journal.js";
import { visible } from "./json.js";

export { count, plural, wordFor } from "../../../src/contracts/plural.js";

const UNITS: readonly [number, string][] = [[86_400_000, "d"], [3_600_000, "h"], [60_000, "m"], [1_000, "s"]];

/** `3m`, `2h 5m`, `4d 1h`. */
export function span(ms: number): string {
  const whole = Math.max(0, ms);
  const at = UNITS.findIndex(([unit]) => whole >= unit);
  const [unit, name] = UNITS[at] ?? [1_000, "s"];
  const next = UNITS[at + 1];
  const rest = next === undefined || unit === 60_000 ? 0 : Math.floor((whole % unit) / next[0]);
  return `${String(Math.floor(whole / unit))}${name}${rest === 0 || next === undefined ? "" : ` ${String(rest)}${next[1]}`}`;
}

export function relative(atMs: number, nowMs: number): string {
  if (Math.abs(atMs - nowMs) < 1_500) return "now";
  return atMs > nowMs ? `in ${span(atMs - nowMs)}` : `${span(nowMs - atMs)} ago`;
}

export function iso(atMs: number): string {
  const date = new Date(atMs);
  return Number.isNaN(date.getTime()) ? "an impossible time" : date.toISOString();
}

export function dollars(usd: number): string { return usd === 0 ? "$0" : usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`; }
/** Ids are shown short; the whole is one copy away. */
export function shortId(id: string): string { return id.length > 18 ? `${id.slice(0, 12)}…` : id; }

export const STATUS_WORDS: Readonly<Record<SessionStatus, string>> = {
  IDLE: "Idle", PLANNING: "Planning", EXECUTING_TOOL: "Running tool", SUMMARIZING: "Summarizing", AWAITING_APPROVAL: "Awaiting approval", ESCALATED: "Escalated", CLOSED: "Closed", DELETED: "Deleted",
};

/** Those that lists show: a deleted session is in none. */
export const STATUSES = (Object.keys(STATUS_WORDS) as SessionStatus[]).filter((status) => status !== "DELETED");

const EXPIRY: Readonly<Record<string, string>> = { reject: "the call is given up as expired and the agent told so", stop: "the run ends as expired", escalate: "it is escalated to a person", keep: "it stays open" };
export function onExpiryWords(action: string): string { return EXPIRY[action] ?? action; }

const DONE: Readonly<Record<string, string>> = { approve: "approved", modify: "modified", reject: "rejected", respond: "answered", raise: "raised", retry: "retried", give_up: "given up" };
export function decisionWords(kind: string): string { return DONE[kind] ?? kind; }

/** What happens next in a session, without anybody doing anything. */
export function nextWords({ summary, approvals }: Pick<SessionView, "summary" | "approvals">, nowMs: number): string {
  const [approval] = approvals;
  switch (summary.status) {
    case "IDLE": return "Nothing until the next event or message.";
    case "PLANNING": case "SUMMARIZING": return "When the model answers, its tool calls go through policy, or the run ends with its answer. A model call that is lost is started again by itself.";
    case "EXECUTING_TOOL": return "When the tool reports, the model is shown the result. A call that stays quiet is asked for again by itself.";
    case "AWAITING_APPROVAL": return approval?.expiresAtMs === undefined ? "Nothing until a person decides." : `Nothing until a person decides. If nobody does by ${iso(approval.expiresAtMs)} (${relative(approval.expiresAtMs, nowMs)}), ${onExpiryWords(approval.onExpiry)}.`;
    case "ESCALATED": return "Nothing until a person raises the limit, tries again or gives up.";
    case "CLOSED": return "Nothing: the session takes no more events.";
    case "DELETED": return "Nothing: the session was deleted.";
  }
}

/** The window's title: `(2) ord-1: Awaiting approval · Docket`. */
export function titleOf({ page, subject, waiting }: { readonly page: string; readonly subject: string; readonly waiting: number }): string {
  return `${waiting > 0 ? `(${String(waiting)}) ` : ""}${subject === "" ? page : visible(subject)} · Docket`;
}
