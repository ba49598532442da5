/**
 * Owns: failed tries of a tool call: retry with backoff, dead letter and reflection, escalation of critical ones, and
 * the unknown outcome, which is never retried (I6).
 */
import type { StoredText } from "../../../contracts/journal.js";
import type { ToolFailureKind } from "../../../contracts/tools.js";
import { backoffMs } from "../backoff.js";
import { MAX_MESSAGE } from "../limits.js";
import type { ToolCall } from "../state.js";
import { clip, given, plain, type Draft } from "./draft.js";
import { recordDeadCall, recordResult, settleUnknown } from "./ending.js";
import { escalateCall } from "./escalate.js";

export interface TryFailure {
  readonly try: number; readonly kind: ToolFailureKind; readonly message: string; readonly retryAfterMs?: number;
  /** What the tool had printed, for the model. */
  readonly output?: StoredText;
}

export function failTry(draft: Draft, call: ToolCall, failure: TryFailure): void {
  const { kind } = failure;
  if (kind === "business") { recordResult(draft, call, "failed", contentOf(failure)); return; }
  // Only a call that may run again is timed out; of one with effects `once` nobody knows.
  if (kind === "timeout" && call.effects === "once") { markUnknown(draft, call, failure.try, failure.message); return; }
  const ending = draft.run?.ending !== undefined;
  const again = (kind === "transient" || kind === "timeout") && failure.try < call.maxTries && !ending;
  const waitMs = backoffMs(failure.try, draft.command.random, failure.retryAfterMs);
  const message = clip(failure.message, MAX_MESSAGE);
  draft.emit({ type: "ToolTryFailed", callId: call.callId, try: failure.try, kind, message, ...given("retryAtMs", again ? draft.atMs + waitMs : undefined) });
  if (!again) finalFailure(draft, draft.call(call.callId) ?? call, failure);
}

function finalFailure(draft: Draft, call: ToolCall, failure: TryFailure): void {
  const { run } = draft;
  if (run === undefined) return;
  if (call.unproven === true) { markUnknown(draft, call, failure.try, `no try of the call was proven not to have run; last: ${failure.message}`); return; }
  if (run.ending === undefined) recordDeadCall(draft, call, { reason: failure.kind, message: failure.message, tries: failure.try });
  if (call.critical && run.ending === undefined) {
    escalateCall(draft, run, call, { reason: "critical_tool_failed", message: `tool ${call.tool} is critical and failed ${String(failure.try)} times, last: ${failure.message}` });
    return;
  }
  recordResult(draft, call, failure.kind === "timeout" ? "timed_out" : "failed", contentOf(failure));
}

function contentOf(failure: TryFailure): StoredText {
  const message = clip(failure.message, MAX_MESSAGE);
  const output = failure.output;
  return output === undefined || output.text === "" ? plain(message) : { ...output, text: `${message}\n${output.text}` };
}

/** Nobody can tell whether the call took effect: a person is asked, or, when the run is ending, the dead letters tell. */
export function markUnknown(draft: Draft, call: ToolCall, attempt: number, reason: string): void {
  const message = clip(reason, MAX_MESSAGE);
  draft.emit({ type: "ToolOutcomeUnknown", callId: call.callId, try: attempt, reason: message });
  const { run } = draft;
  const unknown = draft.call(call.callId);
  if (run === undefined || unknown === undefined) return;
  if (run.ending !== undefined) { settleUnknown(draft, unknown); return; }
  escalateCall(draft, run, unknown, {
    reason: "outcome_unknown",
    message: `tool ${call.tool}: it is unknown whether the call took effect (${message}). Respond with the outcome you verified, retry only if it did not happen, or give up`,
  });
}
