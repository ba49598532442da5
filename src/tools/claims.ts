/**
 * Owns: the fenced writes of the call record. Each is one conditional write; a lost race is an answer, not an error,
 * and makes the caller look again.
 */
import type { ToolRequest } from "../contracts/tools.js";
import type { CallStore } from "./ports.js";
import { emptyRecord, failed, resultOf, tryOf, withTry, type CallRecord, type ClaimedTry, type StoredResult } from "./record.js";

export interface Found { readonly record: CallRecord; readonly etag: string }

/** Conditional write: create where nothing was found, else replace that version. Throws what the store throws. */
export async function write(store: CallStore, found: Found | undefined, record: CallRecord, ttlSeconds: number): Promise<boolean> {
  if (found === undefined) return (await store.create(record, { ttlSeconds })) === "created";
  return (await store.replace(record, found.etag, { ttlSeconds })) === "replaced";
}

/** The record with this claim in it; what earlier tries left open is closed, for they can no longer report. */
export function withClaim(found: Found | undefined, request: ToolRequest, effects: CallRecord["effects"], claim: ClaimedTry): CallRecord {
  let record = { ...(found?.record ?? emptyRecord(request, effects)), claims: claim.fence };
  for (const entry of record.tries) {
    if (entry.state !== "claimed" || entry.try >= claim.try) continue;
    const result = resultOf({ ...request, try: entry.try }, failed("transient", `try ${String(claim.try)} has taken its place`),
      { worker: entry.worker, startedAtMs: entry.claimedAtMs, endedAtMs: claim.claimedAtMs });
    record = withTry(record, { state: "done", try: entry.try, result });
  }
  return withTry(record, claim);
}

/** Whether the store holds exactly this claim: how a write whose reply was lost meets itself. */
export async function holds(store: CallStore, callId: string, claim: ClaimedTry): Promise<boolean> {
  const entry = tryOf((await store.read(callId))?.record, claim.try);
  return entry?.state === "claimed" && entry.claimId === claim.claimId;
}

/**
 * Stores the result of a run. False where it does not count: another worker has taken the try over or settled it.
 * Two results count even so: a success, whoever holds the claim now, and anything definite over `outcome_unknown`.
 */
export async function conclude(store: CallStore, run: { readonly request: ToolRequest; readonly effects: CallRecord["effects"]; readonly claim: ClaimedTry; readonly ttlSeconds: number }, result: StoredResult): Promise<boolean> {
  for (;;) {
    const found = await store.read(run.request.callId);
    const entry = tryOf(found?.record, result.try);
    if (entry?.state === "claimed" && entry.claimId !== run.claim.claimId && result.outcome !== "succeeded") return false;
    if (entry?.state === "done" && (entry.result.outcome !== "outcome_unknown" || result.outcome === "outcome_unknown")) return false;
    const record = withTry(found?.record ?? emptyRecord(run.request, run.effects), { state: "done", try: result.try, result });
    if (await write(store, found, record, run.ttlSeconds)) return true;
  }
}
