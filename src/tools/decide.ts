/**
 * Owns: what to do with one delivery of a request, given what the store remembers. Pure; the worker carries it out.
 *
 * One try of a call is, in this order: unknown -> claimed (lock alive) -> done. A claim whose lock died is judged by effects:
 *   none, idempotent   run again with the same key, three times at most
 *   once               never run again by itself: ask `reconcile`, else the outcome is unknown (I6)
 * A later try may only follow an earlier one that ended `failed` or `not_started`; once it is claimed, earlier ones are closed.
 */
import type { ToolClaim, ToolManifest, ToolRequest } from "../contracts/tools.js";
import type { Refusal } from "./receive.js";
import { claimOf, failed, notStarted, tryOf, unknown, type CallRecord, type ClaimedTry, type Outcome, type StoredResult } from "./record.js";

/** A try that was begun this often and never ended has killed its worker each time. */
const MAX_RUNS = 3;

export interface Situation {
  readonly request: ToolRequest;
  readonly record: CallRecord | undefined;
  readonly refusal: Refusal | undefined;
  /** Undefined where this worker does not have the tool. */
  readonly manifest: ToolManifest | undefined;
  /** Claims of this process whose write was unclear and which therefore never started. */
  readonly neverStarted: ReadonlySet<string>;
  readonly nowMs: number;
}

export type Action =
  /** Publish what is known already. */
  | { readonly do: "republish"; readonly result: StoredResult }
  /** It runs: say so again, in case the first word of it was lost. */
  | { readonly do: "announce"; readonly claim: ToolClaim }
  /** Nothing to do. With a `refusal` it goes to the dead letters: to answer would settle a call that it only names. */
  | { readonly do: "ignore"; readonly why: string; readonly refusal?: Refusal }
  /** Record an outcome without running anything, then publish it. */
  | { readonly do: "settle"; readonly try: number; readonly outcome: Outcome; readonly refusal?: Refusal }
  /** Claim and run. `reconcile`: ask the tool first whether it happened. */
  | { readonly do: "run"; readonly try: number; readonly runs: number; readonly reconcile: boolean };

export function decide(situation: Situation): Action {
  const { request, record } = situation;
  const stranger = identity(situation);
  if (stranger !== undefined) return { do: "ignore", why: stranger.message, refusal: stranger };
  const mine = tryOf(record, request.try);
  if (mine?.state === "done") return { do: "republish", result: mine.result };
  if (record?.tries.some((entry) => entry.try > request.try) === true) return { do: "ignore", why: "a later try exists" };
  const open = record?.tries.find((entry): entry is ClaimedTry => entry.state === "claimed" && !situation.neverStarted.has(entry.claimId));
  if (open !== undefined) return open.lockUntilMs > situation.nowMs ? runningAction(request, open) : deadClaim(situation, open);
  const final = record?.tries.find((entry) => entry.state === "done" && (entry.result.outcome === "succeeded" || entry.result.outcome === "outcome_unknown"));
  if (final?.state === "done") return { do: "republish", result: final.result };
  return obstacle(situation, request.try) ?? { do: "run", try: request.try, runs: 1, reconcile: false };
}

function runningAction(request: ToolRequest, open: ClaimedTry): Action {
  return open.try === request.try ? { do: "announce", claim: claimOf(request, open) } : { do: "ignore", why: `try ${String(open.try)} is still running` };
}

function deadClaim(situation: Situation, open: ClaimedTry): Action {
  const { record, manifest, request, refusal } = situation;
  const died = `the worker ${open.worker} died while it ran the tool`;
  // Both what was declared at the claim and what is declared now must allow a repetition.
  if (record?.effects === "once" || manifest === undefined || manifest.effects === "once") {
    if (manifest?.reconcilable === true && refusal === undefined && open.runs < MAX_RUNS) {
      return { do: "run", try: open.try, runs: open.runs + 1, reconcile: true };
    }
    return { do: "settle", try: open.try, outcome: unknown(`${died}; whether it took effect is not known`) };
  }
  if (open.runs >= MAX_RUNS) return { do: "settle", try: open.try, outcome: failed("permanent", `${died}, ${String(open.runs)} times in a row`) };
  const blocked = obstacle(situation, open.try);
  if (blocked?.do === "settle" && blocked.outcome.outcome === "not_started") return { do: "settle", try: open.try, outcome: failed("timeout", `${died}, and its deadline has passed`) };
  if (blocked !== undefined) return blocked;
  return { do: "run", try: request.try, runs: open.try === request.try ? open.runs + 1 : 1, reconcile: false };
}

/** What stands in the way of a run that nothing else forbids. */
function obstacle(situation: Situation, number: number): Action | undefined {
  const { request, manifest, nowMs } = situation;
  const { refusal } = situation;
  const refuse = (why: Refusal): Action => ({ do: "settle", try: number, outcome: failed("refused", why.message), refusal: why });
  if (refusal !== undefined) return refuse(refusal);
  if (manifest === undefined) return refuse({ code: "not_found", message: `tool "${request.tool}" is not installed on this worker` });
  if (number > manifest.maxTries) return refuse({ code: "forbidden", message: `try ${String(number)} of "${request.tool}" is one too many, the tool allows ${String(manifest.maxTries)}` });
  if (request.deadlineAtMs <= nowMs) return { do: "settle", try: number, outcome: notStarted(`the deadline ${new Date(request.deadlineAtMs).toISOString()} had passed before the tool was started`) };
  return undefined;
}

/** A call keeps its tool and arguments: one id cannot stand for two calls. */
function identity({ record, request }: Situation): Refusal | undefined {
  if (record === undefined || (record.tool === request.tool && record.argsDigest === request.argsDigest && record.actorId === request.actorId)) return undefined;
  return { code: "digest_mismatch", message: `call ${request.callId} is recorded as ${record.tool} with ${record.argsDigest}, the request is ${request.tool} with ${request.argsDigest}` };
}
