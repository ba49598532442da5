/** Owns: assignment and snooze of an open approval. They change what people see, never who may decide, what is asked, or until when. */
import type { CommandOf, Decision } from "../command.js";
import type { SessionState } from "../state.js";
import { Draft, given } from "./draft.js";
import { closedObjection } from "./verdict.js";

export function tendApproval(state: SessionState, command: CommandOf<"TendApproval">): Decision {
  const draft = new Draft(state, command);
  const { key, tend: { approvalId, assignTo, snoozeUntilMs, reason }, principal } = command;
  if (draft.session.recentCommands.includes(key)) return draft.refuse("duplicate", "this was received before");
  const record = draft.session.approvals.find((open) => open.approvalId === approvalId);
  if (record === undefined) return draft.refuse(...closedObjection(draft.session, approvalId));
  const about = { key, approvalId, ...given("principal", principal), ...given("reason", reason === "" ? undefined : reason) };
  if (assignTo !== undefined) draft.emit({ type: "ApprovalAssigned", ...about, ...given("to", assignTo ?? undefined) });
  if (snoozeUntilMs !== undefined) draft.emit({ type: "ApprovalSnoozed", ...about, ...given("untilMs", snoozeUntilMs ?? undefined) });
  return draft.accept();
}
