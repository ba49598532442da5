/**
 * Owns: what a session does when asked. Pure: the same state and command give the same events (no clock, random, I/O).
 * Refusals are values with a code. I1 to I7, I10 and I11 are kept in here; the rules are in `decide/`, one file each:
 * intake and busy (events in), answer and model-call (the model), results and tries (tools), verdict and decisions
 * (people), tending, allowances and consent (what surrounds their word), control, deletion, compaction, tick (the clock), heal and quarantine (what is stored is not true), progress and ending (what follows
 * from all of them).
 */
import type { Decision, SessionCommand } from "./command.js";
import { recordAnswer } from "./decide/answer.js";
import { revokeAllowance } from "./decide/allowances.js";
import { compactJournal } from "./decide/compaction.js";
import { cancel, close } from "./decide/control.js";
import { acknowledgeApproval, decideApproval } from "./decide/decisions.js";
import { receiveEvent, takeNext } from "./decide/intake.js";
import { deleteSession, recordErased } from "./decide/deletion.js";
import { heal } from "./decide/heal.js";
import { recordModelFailure, startModelCall } from "./decide/model-call.js";
import { inQuarantine } from "./decide/quarantine.js";
import { recordClaim, recordToolResult } from "./decide/results.js";
import { tendApproval } from "./decide/tending.js";
import { tick } from "./decide/tick.js";
import type { SessionState } from "./state.js";

export function decide(state: SessionState, command: SessionCommand): Decision {
  if (state.status === "NEW" && command.type !== "ReceiveEvent") return notOpened(command);
  if (state.status !== "NEW" && state.quarantine !== undefined) return inQuarantine(state, command);
  if (state.status === "DELETED" && !TOMBSTONE_TAKES.has(command.type)) return { ok: false, code: "session_not_found", message: "the session was deleted", events: [] };
  switch (command.type) {
    case "ReceiveEvent": return receiveEvent(state, command);
    case "TakeNext": return takeNext(state, command);
    case "StartModelCall": return startModelCall(state, command);
    case "RecordAnswer": return recordAnswer(state, command);
    case "RecordModelFailure": return recordModelFailure(state, command);
    case "RecordClaim": return recordClaim(state, command);
    case "RecordToolResult": return recordToolResult(state, command);
    case "Decide": return decideApproval(state, command);
    case "AcknowledgeApproval": return acknowledgeApproval(state, command);
    case "TendApproval": return tendApproval(state, command);
    case "RevokeAllowance": return revokeAllowance(state, command);
    case "Cancel": return cancel(state, command);
    case "Close": return close(state, command);
    case "Delete": return deleteSession(state, command);
    case "Compact": return compactJournal(state, command);
    case "RecordErased": return recordErased(state, command);
    case "Release": return { ok: true, events: [] };
    case "Heal": return heal(state, command);
    case "Tick": return tick(state, command);
  }
}

const TOMBSTONE_TAKES = new Set<SessionCommand["type"]>(["ReceiveEvent", "Delete", "RecordErased", "Heal", "Tick"]);

/** Nothing can be asked of a session that no event has opened; looking at the clock is harmless. */
function notOpened(command: SessionCommand): Decision {
  if (command.type === "Tick") return { ok: true, events: [] };
  return { ok: false, code: "session_not_found", message: "no event has opened this session", events: [] };
}
