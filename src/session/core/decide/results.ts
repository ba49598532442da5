/** Owns: claims and results of tool calls as the worker reports them, and results that come after a call was given up as unknown. */
import type { CommandOf, Decision } from "../command.js";
import type { SessionState, ToolCall } from "../state.js";
import { Draft, given, plain } from "./draft.js";
import { recordResult } from "./ending.js";
import { advance } from "./progress.js";
import { failTry, markUnknown, type TryFailure } from "./tries.js";

type Reported = CommandOf<"RecordToolResult">;

export function recordClaim(state: SessionState, command: CommandOf<"RecordClaim">): Decision {
  const draft = new Draft(state, command);
  const life = draft.call(command.callId)?.life;
  const open = draft.session.outbox.some((row) => row.kind === "tool_request" && row.subject === command.callId);
  if (life?.phase === "dispatched" && life.try === command.try && (open || life.claimedBy !== command.worker)) {
    draft.emit({ type: "ToolCallClaimed", callId: command.callId, try: command.try, worker: command.worker });
  }
  return draft.accept();
}

export function recordToolResult(state: SessionState, command: Reported): Decision {
  const draft = new Draft(state, command);
  const call = draft.call(command.callId);
  if (call?.life.phase === "dispatched" && call.life.try === command.try) settle(draft, call, command);
  else if (call?.life.phase === "waiting_retry" && call.life.try === command.try && command.outcome === "succeeded") recordResult(draft, call, "succeeded", command.content);
  else if (call?.life.phase === "unknown") settleLate(draft, call, command);
  else if (call === undefined || call.life.phase === "finished") closeUnknown(draft, command);
  advance(draft, command.reserveUsd);
  return draft.accept();
}

function settle(draft: Draft, call: ToolCall, reported: Reported): void {
  if (reported.outcome === "succeeded") { recordResult(draft, call, "succeeded", reported.content); return; }
  const unknown = reported.outcome === "outcome_unknown" && call.effects !== "none";
  // The run is over but for this call, and it is proven not to have run.
  if (reported.outcome === "not_started" && draft.run?.ending !== undefined && call.unproven !== true) {
    draft.emit({ type: "ToolTryFailed", callId: call.callId, try: reported.try, kind: "transient", message: "not started" });
    recordResult(draft, call, "cancelled", plain("cancelled before it ran"));
    return;
  }
  if (unknown) { markUnknown(draft, call, reported.try, reported.failure?.message ?? "the worker cannot tell whether the call took effect"); return; }
  failTry(draft, call, failureOf(reported));
}

function failureOf(reported: Reported): TryFailure {
  const message = reported.failure?.message ?? reported.outcome;
  // Proven not started is an ordinary failed try, unless the worker refused to run it at all.
  const kind = reported.failure?.kind ?? "transient";
  const notStarted = reported.outcome === "not_started" && kind !== "refused" && kind !== "permanent";
  return { try: reported.try, kind: notStarted ? "transient" : kind, message, ...given("retryAfterMs", reported.failure?.retryAfterMs), output: reported.content };
}

/** The open run still waits on a person's word about this call: the late result answers instead. */
function settleLate(draft: Draft, call: ToolCall, reported: Reported): void {
  if (call.life.phase !== "unknown" || !isProof(reported, call.unproven === true)) return;
  if (reported.outcome !== "succeeded" && reported.try !== call.life.try) return;
  const { approvalId } = call.life;
  draft.emit({ type: "LateResultRecorded", callId: call.callId, outcome: reported.outcome, content: reported.content });
  if (draft.session.approvals.some((record) => record.approvalId === approvalId)) {
    draft.emit({ type: "ApprovalWithdrawn", approvalId, reason: "the result has arrived" });
  }
  settle(draft, call, reported);
}

/** The call is over, but its outcome had stayed unknown: the late result lifts the block. */
function closeUnknown(draft: Draft, reported: Reported): void {
  const unknown = draft.session.unknownCalls.find((call) => call.callId === reported.callId);
  if (unknown === undefined || !isProof(reported, unknown.unproven === true)) return;
  draft.emit({ type: "LateResultRecorded", callId: reported.callId, outcome: reported.outcome, content: reported.content });
}

/** Where several tries are unproven, the failure of one says nothing about the others. */
function isProof(reported: Reported, severalUnproven: boolean): boolean {
  if (reported.outcome === "succeeded") return true;
  return !severalUnproven && reported.outcome !== "outcome_unknown" && reported.failure?.kind !== "timeout";
}
