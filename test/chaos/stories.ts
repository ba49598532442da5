/**
 * Owns: the work that `npm run chaos` sends, as data: sessions, the events of each in their order, what the model and the tools do
 * with them, what a person decides, and how each may end. Pure: the same random numbers give the same work.
 */
import type { RunOutcome } from "../../src/contracts/journal.js";
import type { ToolEffects } from "../../src/contracts/tools.js";

export const TOOLS = { look: "none", put: "idempotent", flaky: "idempotent", broken: "idempotent", pay: "once", fire: "once" } as const satisfies Record<string, ToolEffects>;
export type ToolName = keyof typeof TOOLS;

export interface PlannedCall { readonly tool: ToolName; readonly amount: number; readonly ms: number }
/** `leave`: nobody decides, the event expires. */
export type PlannedDecision = "approve" | "modify" | "reject" | "leave";

export interface PlannedEvent {
  /** The event's id, and what all books know it by. */
  readonly token: string;
  /** What the model does: waits, then asks for the calls of each round, then answers. */
  readonly thinkMs: number;
  readonly rounds: readonly (readonly PlannedCall[])[];
  readonly decision?: PlannedDecision;
  readonly expiresInMs?: number;
  /** A person cancels it as soon as its run is seen to be open. */
  readonly cancelled?: true;
  readonly outcomes: readonly RunOutcome[];
  /** Why its dead letters are no breach. */
  readonly letters: readonly string[];
}

export interface PlannedSession { readonly sessionId: string; readonly story: string; readonly events: readonly PlannedEvent[] }

type Draft = Partial<Omit<PlannedEvent, "token">>;
const call = (tool: ToolName, ms: number, amount = 100): PlannedCall => ({ tool, amount, ms });
const say: Draft = {};

/** What a session of each story is sent. `wait` gives milliseconds in a range. */
const STORIES: Readonly<Record<string, (wait: (from: number, to: number) => number) => readonly Draft[]>> = {
  plain: () => [say, say, say],
  parallel: (wait) => [{ rounds: [[call("look", wait(0, 400)), call("put", wait(0, 1500)), call("flaky", 0)]] }, say],
  sequence: (wait) => [{ rounds: [[call("put", wait(100, 900))], [call("look", wait(0, 300))], [call("put", wait(100, 900))]] }, say],
  approve: (wait) => [{ rounds: [[call("pay", wait(0, 1500)), call("look", 0)]], decision: "approve" }, say],
  modify: (wait) => [{ rounds: [[call("pay", wait(0, 600))]], decision: "modify" }],
  reject: () => [{ rounds: [[call("pay", 0)]], decision: "reject" }, say],
  fire: (wait) => [{ rounds: [[call("fire", wait(200, 1200))]], decision: "approve" }],
  cancel: (wait) => [{ thinkMs: 400, rounds: [[call("put", wait(1500, 2500))], [call("look", 0)]], cancelled: true, outcomes: ["completed", "cancelled"] }, say],
  broken: () => [{ rounds: [[call("broken", 0)]], letters: ["transient", "timeout"] }],
  slow: (wait) => [{ rounds: [[call("put", wait(2500, 4000))]] }, say],
  expiry: () => [{ rounds: [[call("pay", 0)]], decision: "leave", expiresInMs: 6_000, outcomes: ["expired"], letters: ["expired"] }],
  think: (wait) => [{ thinkMs: wait(1000, 2500) }, say],
};

/** How many sessions of each story one burst has. */
const BURST: readonly (readonly [story: string, count: number])[] = [
  ["plain", 4], ["parallel", 2], ["sequence", 1], ["approve", 2], ["modify", 1], ["reject", 1], ["fire", 1], ["cancel", 1], ["broken", 1], ["slow", 1], ["expiry", 1], ["think", 1],
];

/** One burst in mixed order. `prefix` makes ids unique. */
export function planBurst(prefix: string, random: () => number): PlannedSession[] {
  const wait = (from: number, to: number): number => Math.round(from + random() * (to - from));
  const sessions = BURST.flatMap(([story, count]) => Array.from({ length: count }, (_, n) => planSession(`${prefix}-${story}-${String(n)}`, story, wait)));
  return sessions.map((session) => ({ session, at: random() })).sort((a, b) => a.at - b.at).map(({ session }) => session);
}

/** What shows that a kind of work is done again. */
export function planProbe(sessionId: string, story: "plain" | "look" | "approve"): PlannedSession {
  const draft: Draft = story === "plain" ? say : story === "look" ? { rounds: [[call("look", 0)]] } : { rounds: [[call("pay", 0)]], decision: "approve" };
  return { sessionId, story: "probe", events: [complete(`${sessionId}.1`, draft)] };
}

function planSession(sessionId: string, story: string, wait: (from: number, to: number) => number): PlannedSession {
  return { sessionId, story, events: (STORIES[story]?.(wait) ?? []).map((draft, n) => complete(`${sessionId}.${String(n + 1)}`, draft)) };
}

function complete(token: string, draft: Draft): PlannedEvent {
  return { token, thinkMs: 0, rounds: [], outcomes: ["completed"], letters: [], ...draft };
}

/** What the model reads. */
export interface Orders { readonly token: string; readonly thinkMs: number; readonly rounds: readonly (readonly PlannedCall[])[] }

export function textOf({ token, thinkMs, rounds }: PlannedEvent): string {
  return JSON.stringify({ token, thinkMs, rounds } satisfies Orders);
}

/** Arguments of a call as its tool takes them, canonical. */
export function argsOf(token: string, planned: PlannedCall): string {
  return JSON.stringify({ amount: planned.amount, ms: planned.ms, token });
}

/** What a person who modifies makes of them. */
export function modifiedArgs(args: string): string {
  const parsed = JSON.parse(args) as { amount: number; ms: number; token: string };
  return JSON.stringify({ amount: 7, ms: parsed.ms, token: parsed.token });
}
