/**
 * Owns: what the worker remembers of a call, one record with every try. Stored for 24 h or longer than the grant lives,
 * whichever is more: as long as a grant could start a run, the record that stops a second one exists (I6).
 * Persisted contract: add fields as optional, never change a meaning (I12).
 */
import { z } from "zod";
import { ToolEffects, ToolResult, type ToolClaim, type ToolRequest } from "../contracts/tools.js";

/** A result as stored: signed anew at each publication, so that a change of keys does not strand it. */
export const StoredResult = ToolResult.omit({ proof: true });
export type StoredResult = z.infer<typeof StoredResult>;

/** Somebody runs this try, or did when it died: after `lockUntilMs` nobody renews the lock any more. */
const ClaimedTry = z.object({
  state: z.literal("claimed"),
  try: z.number().int(),
  worker: z.string(),
  /** Which run of which process: fences its lock renewals and its result. */
  claimId: z.string(),
  claimedAtMs: z.number().int(),
  lockUntilMs: z.number().int(),
  /** How often this try was begun; a tool that kills its worker is given up on. */
  runs: z.number().int(),
  /** Which claim of the call this is, over all tries. */
  fence: z.number().int().default(0),
});
export type ClaimedTry = z.infer<typeof ClaimedTry>;

const DoneTry = z.object({ state: z.literal("done"), try: z.number().int(), result: StoredResult });

export const TryRecord = z.discriminatedUnion("state", [ClaimedTry, DoneTry]);
export type TryRecord = z.infer<typeof TryRecord>;

export const CallRecord = z.object({
  v: z.literal(1),
  callId: z.string(),
  actorId: z.string(),
  tool: z.string(),
  argsDigest: z.string(),
  /** As declared when the call was first claimed; a deployment in between cannot make a `once` call repeatable. */
  effects: ToolEffects,
  /** How often the call was claimed. */
  claims: z.number().int().default(0),
  /** Ascending by `try`; at most 10 (the manifest's cap of maxTries). */
  tries: z.array(TryRecord),
});
export type CallRecord = z.infer<typeof CallRecord>;

/** The record with one try added or replaced. */
export function withTry(record: CallRecord, entry: TryRecord): CallRecord {
  const tries = [...record.tries.filter((other) => other.try !== entry.try), entry].sort((a, b) => a.try - b.try);
  return { ...record, tries };
}

export function tryOf(record: CallRecord | undefined, number: number): TryRecord | undefined {
  return record?.tries.find((entry) => entry.try === number);
}

/** A record without tries, for the first write. */
export function emptyRecord(request: ToolRequest, effects: ToolEffects): CallRecord {
  return { v: 1, callId: request.callId, actorId: request.actorId, tool: request.tool, argsDigest: request.argsDigest, effects, claims: 0, tries: [] };
}

export function claimOf(request: ToolRequest, entry: ClaimedTry): ToolClaim {
  const { sessionId, tenant, actorId, runId, callId } = request;
  return { sessionId, tenant, actorId, runId, callId, try: entry.try, worker: entry.worker, claimedAtMs: entry.claimedAtMs };
}

/** How a try ended, before it is addressed. */
export interface Outcome {
  readonly outcome: ToolResult["outcome"];
  readonly output: string;
  readonly truncated: boolean;
  readonly failure?: NonNullable<ToolResult["failure"]>;
}

export function failed(kind: NonNullable<ToolResult["failure"]>["kind"], message: string, retryAfterMs?: number): Outcome {
  return { outcome: "failed", output: "", truncated: false, failure: { kind, message, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) } };
}
export function unknown(message: string): Outcome {
  return { outcome: "outcome_unknown", output: "", truncated: false, failure: { kind: "permanent", message } };
}
export function notStarted(message: string): Outcome {
  return { outcome: "not_started", output: "", truncated: false, failure: { kind: "transient", message } };
}

export function resultOf(request: ToolRequest, outcome: Outcome, facts: { readonly worker: string; readonly startedAtMs: number; readonly endedAtMs: number }): StoredResult {
  const { sessionId, tenant, actorId, runId, callId, tool } = request;
  return { sessionId, tenant, actorId, runId, callId, tool, try: request.try, ...outcome, ...facts };
}
