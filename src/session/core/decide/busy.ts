/** Owns: what an event does to a session that is not free (DESIGN 3: enqueue, reject, interrupt, steer; withdraw). */
import type { BusyMode, SessionEventOf } from "../../../contracts/journal.js";
import type { CommandOf, Decision } from "../command.js";
import type { Run } from "../state.js";
import { ANONYMOUS, clip, plain, type Draft } from "./draft.js";
import { endRun, recordResult } from "./ending.js";
import { advance } from "./progress.js";
import { MAX_CODE } from "../limits.js";

type Received = SessionEventOf<"EventReceived">;

export function takeWhileBusy(draft: Draft, command: CommandOf<"ReceiveEvent">, received: Received): Decision {
  const mode = effectiveMode(draft, command.event.mode);
  const { run } = draft;
  if (mode === "reject") return rejectBusy(draft, received);
  if (run !== undefined && (mode === "steer" || mode === "withdraw")) return steer(draft, { command, received, run, mode });
  const { maxMailbox } = command.limits;
  if (draft.session.mailbox.length >= maxMailbox) return draft.refuse("mailbox_full", `${String(maxMailbox)} events wait for this session; the limit is ${String(maxMailbox)}`);
  if (mode !== "interrupt") draft.emit(received);
  else {
    draft.emit({ ...received, front: true });
    endRun(draft, { outcome: "cancelled", code: "interrupted", text: "interrupted by a newer message" });
  }
  return draft.accept();
}

/** The mode that is possible now; all others wait their turn. */
function effectiveMode(draft: Draft, asked: BusyMode): BusyMode {
  const { run, session } = draft;
  if (asked === "reject" || run === undefined || run.ending !== undefined) return asked === "reject" ? "reject" : "enqueue";
  if (session.status === "AWAITING_APPROVAL") return asked === "withdraw" ? "withdraw" : "enqueue";
  if (session.status === "ESCALATED" || asked === "withdraw") return "enqueue";
  return asked;
}

function rejectBusy(draft: Draft, received: Received): Decision {
  draft.emit(received);
  draft.emit({ type: "EventRejected", key: received.key, runId: received.runId, code: "session_busy", message: "the session is busy and the event asked not to wait" });
  return draft.accept();
}

/** The message becomes part of the open run; with `withdraw` the questions to people are taken back and the model is told. */
function steer(draft: Draft, about: { command: CommandOf<"ReceiveEvent">; received: Received; run: Run; mode: "steer" | "withdraw" }): Decision {
  const { command: { limits, prepared }, received, run } = about;
  if (run.steered.length >= limits.maxMailbox) return draft.refuse("mailbox_full", `${String(run.steered.length)} messages were steered into this run; the limit is ${String(limits.maxMailbox)}`);
  draft.emit(received);
  if (!prepared.check.ok) {
    const { code, message } = prepared.check;
    draft.emit({ type: "RunEnded", runId: received.runId, key: received.key, outcome: "rejected", code: clip(code, MAX_CODE), text: message });
    return draft.accept();
  }
  draft.emit({ type: "MessageSteered", runId: run.runId, key: received.key, text: prepared.input, requestedBy: received.principal?.id ?? ANONYMOUS });
  if (about.mode === "withdraw") {
    withdrawApprovals(draft);
    advance(draft, prepared.reserveUsd);
  }
  return draft.accept();
}

function withdrawApprovals(draft: Draft): void {
  for (const { approvalId, callId } of draft.session.approvals) {
    draft.emit({ type: "ApprovalWithdrawn", approvalId, reason: "withdrawn by a newer message" });
    const call = callId === undefined ? undefined : draft.call(callId);
    if (call !== undefined) recordResult(draft, call, "withdrawn", plain("withdrawn before anyone decided: a newer message took its place"));
  }
}
