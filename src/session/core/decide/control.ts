/** Owns: cancel, close, and what the host confirms to have published. */
import type { CommandOf, Decision } from "../command.js";
import type { SessionState } from "../state.js";
import { Draft, given } from "./draft.js";
import { endRun } from "./ending.js";

export function cancel(state: SessionState, command: CommandOf<"Cancel">): Decision {
  const draft = new Draft(state, command);
  if (draft.session.recentCommands.includes(command.key)) return draft.refuse("duplicate", "this cancel was received before");
  const { run, model } = draft;
  const runId = command.runId ?? run?.runId;
  const waiting = draft.session.mailbox.find((item) => item.runId === runId);
  if (runId === undefined || (run?.runId !== runId && waiting === undefined)) return draft.refuse("not_found", `no open run${command.runId === undefined ? "" : ` ${command.runId}`} to cancel`);
  draft.emit({ type: "CancelRequested", key: command.key, runId, reason: command.reason, ...given("principal", command.principal) });
  const ending = { outcome: "cancelled", code: "cancelled", text: command.reason } as const;
  if (waiting !== undefined) draft.emit({ type: "RunEnded", runId, key: waiting.key, ...ending });
  else {
    const partial = command.partialText ?? "";
    if (model?.phase === "running" && partial !== "") draft.emit({ type: "PartialAnswerKept", runId, step: model.step, text: partial });
    endRun(draft, ending);
  }
  return draft.accept();
}

/** No further events. What waits is rejected, the open run is cancelled; the session is CLOSED when that has ended. */
export function close(state: SessionState, command: CommandOf<"Close">): Decision {
  const draft = new Draft(state, command);
  if (draft.session.closing !== undefined) return draft.accept();
  for (const item of draft.session.mailbox) {
    draft.emit({ type: "EventRejected", key: item.key, runId: item.runId, code: "session_closed", message: `the session was closed: ${command.reason}` });
  }
  draft.emit({ type: "SessionClosed", reason: command.reason, ...given("principal", command.principal) });
  endRun(draft, { outcome: "cancelled", code: "session_closed", text: command.reason });
  return draft.accept();
}
