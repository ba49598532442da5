/**
 * Owns: talking to the console's API. Reads carry the ETag of what is known, so that a poll that finds nothing new costs nothing. A failure is
 * always an ApiError that says whether the console answered at all; whether it is there is presence.ts's.
 */
import type { ProblemDocument } from "../../../src/contracts/problems.js";
import { Presence, PROBE_MS } from "./presence.js";
import { Store } from "./store.js";
import type { Me } from "./urgency.js";

const TIMEOUT_MS = 15_000;

/** `problem` is what the console said; without it the console was not reached, or something in front of it answered. */
export class ApiError extends Error {
  constructor(message: string, readonly status: number, readonly problem?: ProblemDocument) { super(message); }
  get unreachable(): boolean { return this.problem === undefined; }
  get code(): string { return this.problem?.code ?? "unreachable"; }
}

/** Who is signed in: undefined is not known yet, null nobody. */
export const me = new Store<Me | null | undefined>(undefined);
const presence = new Presence(() => fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(PROBE_MS) }));
/** Since when the console has not answered; undefined while it does. */
export const { lostSince } = presence;
/** Server clock minus ours. */
const skewMs = new Store(0);

/** The server's time: deadlines are its own. */
export function serverNow(): number { return Date.now() + skewMs.get(); }

const known = new Map<string, { readonly etag: string; readonly value: unknown }>();
const KNOWN_MAX = 200;

const early = new Map<string, { readonly asked: Promise<unknown>; value?: unknown }>();

/** Asks for what the page will want as soon as it is there; the first `get` of that path takes the answer. */
export function askEarly(path: string): void {
  const one: { readonly asked: Promise<unknown>; value?: unknown } = { asked: read(path) };
  early.set(path, one);
  // Not signed in yet, or not there: then the page asks by itself.
  one.asked.then((value) => { one.value = value; }, () => { early.delete(path); });
}

/** What was asked early and has come already, for the first picture. */
export function arrived(path: string | undefined): unknown { return path === undefined ? undefined : early.get(path)?.value; }

export function get<T>(path: string): Promise<T> {
  const one = early.get(path);
  if (one === undefined) return read<T>(path);
  early.delete(path);
  return one.asked as Promise<T>;
}

/** No Accept header: with one, the browser would not take what the server has announced (`rel=preload`) for this request. */
async function read<T>(path: string): Promise<T> {
  const before = known.get(path);
  const response = await sendRead(path, { "cache-control": "max-age=0", ...(before === undefined ? {} : { "if-none-match": before.etag }) });
  if (response.status === 304 && before !== undefined) return before.value as T;
  const value = await answer<T>(response);
  const etag = response.headers.get("etag");
  if (etag !== null) {
    if (known.size >= KNOWN_MAX) known.clear();
    known.set(path, { etag, value });
  }
  return value;
}

/** `body` must hold no numbers that a double would round: arguments travel as JSON text. */
export async function post<T>(path: string, body: object, method: "POST" | "DELETE" = "POST"): Promise<T> {
  return answer<T>(await send(path, { method, headers: { accept: "application/json", "content-type": "application/json" }, body: JSON.stringify(body) }));
}

/** Asks who is signed in. */
export async function refreshMe(): Promise<void> {
  try {
    me.set(await get<Me>("/session"));
  } catch (error) {
    if (error instanceof ApiError && error.problem !== undefined && me.get() === undefined) me.set(null);
  }
}

export async function signOut(): Promise<void> {
  const answer = await post<{ readonly endSession?: string } | undefined>("/session", {}, "DELETE").catch(() => undefined);
  known.clear();
  me.set(null);
  // Signing out goes on at the identity provider, where it offers that.
  if (answer?.endSession !== undefined) location.assign(answer.endSession);
}

/** A read that the console was lost over is asked anew as soon as it is back. */
async function sendRead(path: string, headers: Record<string, string>): Promise<Response> {
  for (;;) {
    const before = new AbortController();
    const unwatch = presence.watch(() => { before.abort(); });
    try {
      return await send(path, { method: "GET", headers }, before.signal);
    } catch (error) {
      if (!before.signal.aborted) throw error;
    } finally {
      unwatch();
    }
  }
}

async function send(path: string, init: RequestInit, given?: AbortSignal): Promise<Response> {
  const timeout = new AbortController();
  setTimeout(() => { timeout.abort(); }, TIMEOUT_MS);
  given?.addEventListener("abort", () => { timeout.abort(); });
  let response: Response;
  try {
    response = await fetch(path, { ...init, credentials: "same-origin", redirect: "error", signal: timeout.signal });
  } catch {
    if (given?.aborted !== true) presence.lost();
    throw new ApiError(timeout.signal.aborted ? "the console did not answer in time" : "the console cannot be reached", 0);
  }
  if (response.status >= 502 && !isProblem(response)) presence.lost();
  else presence.answered();
  const date = Date.parse(response.headers.get("date") ?? "");
  // The header has whole seconds: only a difference that matters counts.
  if (!Number.isNaN(date)) skewMs.set(Math.abs(date - Date.now()) > 2_500 ? date - Date.now() : 0);
  return response;
}

async function answer<T>(response: Response): Promise<T> {
  if (response.status === 204) return undefined as T;
  let body: unknown;
  try {
    body = await response.json();
  } catch {
    throw new ApiError(`the console answered ${String(response.status)} with something that is not JSON`, response.status);
  }
  if (response.ok) return body as T;
  if (!isProblem(response)) throw new ApiError(`the console answered ${String(response.status)}`, response.status);
  const problem = body as ProblemDocument;
  if (problem.code === "unauthenticated" && me.get() !== undefined) me.set(null);
  throw new ApiError(problem.detail, response.status, problem);
}

function isProblem(response: Response): boolean { return (response.headers.get("content-type") ?? "").startsWith("application/problem+json"); }
