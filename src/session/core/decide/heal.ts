/**
 * Owns: the repair of a session that woke up untrue. What never went out gets a synthetic result; what may have had an effect
 * is put to a person again, never settled by guess (I6). What stays untrue after that is quarantined.
 */
import { faultsOf } from "../checkup.js";
import type { CommandOf, Decision, Repair } from "../command.js";
import { MAX_MESSAGE } from "../limits.js";
import type { SessionState, ToolCall } from "../state.js";
import { clip, Draft, plain } from "./draft.js";
import { recordResult, settleUnknown } from "./ending.js";
import { escalateCall } from "./escalate.js";
import { advance } from "./progress.js";

export function heal(state: SessionState, command: CommandOf<"Heal">): Decision {
  const draft = new Draft(state, command);
  if (command.quarantine !== undefined) return quarantine(draft, command.quarantine);
  const faults = faultsOf(draft.session);
  const found = [...command.found, ...faults];
  if (found.length === 0) return draft.accept();
  draft.emit({ type: "SessionRepaired", found });
  for (const fault of faults) repair(draft, fault);
  advance(draft, command.reserveUsd);
  const left = faultsOf(draft.session);
  if (left.length > 0) return quarantine(draft, { reason: "unrepairable", message: left.map(({ what, subject }) => `${what} ${subject}`).join(", ") });
  return draft.accept();
}

function quarantine(draft: Draft, { reason, message }: NonNullable<CommandOf<"Heal">["quarantine"]>): Decision {
  draft.emit({ type: "SessionQuarantined", reason, message: clip(message, MAX_MESSAGE) });
  return draft.accept();
}

function repair(draft: Draft, { what, subject }: Repair): void {
  const call = draft.call(subject);
  if (what === "approval_orphaned") draft.emit({ type: "ApprovalWithdrawn", approvalId: subject, reason: "nothing waits for it any more" });
  else if (what === "row_orphaned") draft.emit({ type: "PublicationsCleared", rowIds: [subject] });
  else if (what === "call_unjudged" && call !== undefined) recordResult(draft, call, "cancelled", plain("not run: it was never judged; propose it again if it is still needed"));
  else if (what === "question_lost" && call !== undefined) repairQuestion(draft, call);
  else if (what === "request_lost" && call?.life.phase === "dispatched") {
    draft.emit({ type: "PublicationRepeated", rowId: `tool:${subject}:${String(call.life.try)}`, publication: (call.life.publications ?? 1) + 1 });
  }
}

/** The approval that a call waits for is gone. */
function repairQuestion(draft: Draft, call: ToolCall): void {
  const { run } = draft;
  if (run === undefined) return;
  if (call.life.phase === "awaiting_approval") recordResult(draft, call, "cancelled", plain("not run: the question to a person about it was lost; propose it again if it is still needed"));
  else if (call.life.phase === "unknown" && run.ending !== undefined) settleUnknown(draft, call);
  else if (call.life.phase === "unknown") escalateCall(draft, run, call, { reason: "outcome_unknown", message: `tool ${call.tool}: it is unknown whether the call took effect, and the question about it was lost. Respond with the outcome you verified, retry only if it did not happen, or give up` });
  else escalateCall(draft, run, call, { reason: "critical_tool_failed", message: `tool ${call.tool} is critical and failed, and the question about it was lost` });
}
