/**
 * Owns: how a run ends. Every call of its answer gets its one result first (the next transcript must be valid), and a
 * dispatched call with effects keeps the run open until it is settled: it is never cancelled away unproven.
 */
import type { CallStatus, RunOutcome, StoredText } from "../../../contracts/journal.js";
import { sha256Hex } from "../../../contracts/ids.js";
import type { ProblemCode } from "../../../contracts/problems.js";
import { MAX_CODE, MAX_MESSAGE, MAX_WINDOW_ENTRIES } from "../limits.js";
import { openCallsOf } from "../parts.js";
import type { Run, ToolCall } from "../state.js";
import { clip, given, plain, type Draft } from "./draft.js";

export interface Ending { readonly outcome: RunOutcome; readonly code?: string; readonly text: string }

export function recordResult(draft: Draft, call: Pick<ToolCall, "callId" | "providerCallId" | "tool">, status: CallStatus, content: StoredText): void {
  draft.emit({ type: "ToolResultRecorded", callId: call.callId, providerCallId: call.providerCallId, tool: call.tool, status, content });
}

/** Ends the open run, now or, where calls with effects are out, as soon as they are settled. The first ending stands. */
export function endRun(draft: Draft, ending: Ending): void {
  const run = draft.run;
  if (run === undefined || run.ending !== undefined) return;
  abortModel(draft, run, ending);
  closeApprovals(draft, run, ending);
  for (const call of openCallsOf(run)) settleForEnd(draft, call, ending);
  const after = draft.run;
  if (after !== undefined && openCallsOf(after).length > 0) {
    draft.emit({ type: "RunEnding", runId: run.runId, outcome: ending.outcome, ...given("code", ending.code), text: ending.text });
  } else finishRun(draft, ending);
}

function abortModel(draft: Draft, run: Run, ending: Ending): void {
  const model = draft.model;
  if (model?.phase !== "running") return;
  draft.emit({ type: "ModelCallFailed", runId: run.runId, step: model.step, attempt: model.attempt, kind: "aborted", message: `the run is ${ending.outcome}` });
}

function closeApprovals(draft: Draft, run: Run, ending: Ending): void {
  for (const record of draft.session.approvals.filter((open) => open.runId === run.runId)) {
    if (ending.outcome === "expired") draft.emit({ type: "ApprovalExpired", approvalId: record.approvalId, action: "reject" });
    else draft.emit({ type: "ApprovalWithdrawn", approvalId: record.approvalId, reason: `the run is ${ending.outcome}` });
  }
}

function settleForEnd(draft: Draft, call: ToolCall, ending: Ending): void {
  const { phase } = call.life;
  if (phase === "dispatched" && call.effects !== "none") return; // waits for proof
  if (phase === "unknown") { settleUnknown(draft, call); return; }
  if (phase === "waiting_retry" && call.unproven === true) {
    draft.emit({ type: "ToolOutcomeUnknown", callId: call.callId, try: call.life.try, reason: "the run ended before an earlier try was proven" });
    settleUnknown(draft, call);
    return;
  }
  if (phase === "escalated") { recordResult(draft, call, "failed", plain("failed, and given up")); return; }
  const status = ending.outcome === "expired" ? "expired" : "cancelled";
  recordResult(draft, call, status, plain(`${status} before it ran: ${clip(ending.text, MAX_MESSAGE)}`));
}

/** A call whose outcome nobody will be asked about any more: the dead letters show it to people (I6). */
export function settleUnknown(draft: Draft, call: ToolCall): void {
  const tries = "try" in call.life ? call.life.try : 1;
  recordDeadCall(draft, call, { reason: "outcome_unknown", message: "the run ended while it was unknown whether the call took effect", tries });
  recordResult(draft, call, "outcome_unknown", plain("it is unknown whether this call took effect; do not repeat it"));
}

export function recordDeadCall(draft: Draft, call: ToolCall, about: { reason: string; message: string; tries: number }): void {
  draft.emit({
    type: "DeadLetterRecorded", deadLetterId: deadLetterIdOf(draft, call.callId), kind: "tool_request", reason: about.reason, tries: about.tries,
    ...given("key", draft.run?.key), callId: call.callId, payload: "", message: clip(about.message, MAX_MESSAGE), argsRev: call.argsRev, ...given("eventRev", draft.run?.eventRev),
  });
}

export function recordDeadEvent(draft: Draft, event: { key: string; eventRev: number }, about: { reason: string; message: string; tries: number }): void {
  draft.emit({
    type: "DeadLetterRecorded", deadLetterId: deadLetterIdOf(draft, event.key), kind: "event", reason: about.reason, tries: about.tries,
    key: event.key, payload: "", message: clip(about.message, MAX_MESSAGE), eventRev: event.eventRev,
  });
}

function deadLetterIdOf(draft: Draft, subject: string): string {
  return `dl_${sha256Hex(`${draft.session.actorId}\n${subject}\n${String(draft.entry.rev)}`).slice(0, 24)}`;
}

/** The run is over; messages steered into it end with it. */
export function finishRun(draft: Draft, ending: Ending): void {
  const run = draft.run;
  if (run === undefined) return;
  draft.emit({ type: "RunEnded", runId: run.runId, key: run.key, outcome: ending.outcome, ...given("code", clipped(ending.code)), text: ending.text });
  for (const message of run.steered) {
    draft.emit({ type: "RunEnded", runId: message.runId, key: message.key, outcome: ending.outcome, code: "steered", text: "" });
  }
  const dead = deadReason(ending);
  if (dead !== undefined) recordDeadEvent(draft, run, { reason: dead, message: ending.text, tries: run.attempt });
  advanceWindow(draft);
}

function clipped(code: string | undefined): string | undefined {
  return code === undefined ? undefined : clip(code, MAX_CODE);
}

function deadReason(ending: Ending): ProblemCode | "model_failed" | undefined {
  if (ending.outcome === "expired") return "expired";
  return ending.outcome === "failed" && ending.code === "model_failed" ? "model_failed" : undefined;
}

/** Old rounds leave the prompt window whole; the last one always stays. */
function advanceWindow(draft: Draft): void {
  const { rounds, fromRev } = draft.session.window;
  const { windowRounds, windowBytes } = draft.command.limits;
  let kept = rounds;
  const tooMuch = () => kept.length > windowRounds || kept.reduce((sum, round) => sum + round.bytes, 0) > windowBytes
    || draft.entry.rev - (kept[0]?.rev ?? draft.entry.rev) > MAX_WINDOW_ENTRIES;
  while (kept.length > 1 && tooMuch()) kept = kept.slice(1);
  const first = kept[0];
  if (first !== undefined && first.rev !== fromRev) draft.emit({ type: "WindowAdvanced", fromRev: first.rev });
}
