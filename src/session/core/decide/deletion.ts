/**
 * Owns: the end of a session's data (I9). A deleted session leaves a tombstone with its revision, and a new event opens it anew
 * behind that; its journal is erased when the last entry is a day old, since until then a writer that stood still may come back.
 */
import type { CommandOf, Decision } from "../command.js";
import { ERASE_AFTER_MS } from "../limits.js";
import { guardIsIdle } from "../rest.js";
import type { SessionState } from "../state.js";
import { Draft, given } from "./draft.js";

export function deleteSession(state: SessionState, command: CommandOf<"Delete">): Decision {
  const draft = new Draft(state, command);
  const { tenant, sessionId, actorId, agent, agentVersion, createdAtMs, updatedAtMs, guard, erase, mailbox, outbox, status, rev } = draft.session;
  if (status === "DELETED" || draft.atMs - updatedAtMs < (command.idleForMs ?? 0)) return draft.accept();
  if (draft.run !== undefined || mailbox.length + outbox.length > 0) return draft.refuse("session_busy", `only a session at rest is deleted; this one is ${status} with ${String(mailbox.length)} events waiting and ${String(outbox.length)} publications`);
  draft.emit({
    type: "SessionDeleted", tenant, sessionId, actorId, agent, agentVersion, createdAtMs, generation: guard.generation,
    erase: { fromRev: erase?.fromRev ?? 1, toRev: rev, dueAtMs: Math.max(draft.atMs, updatedAtMs + ERASE_AFTER_MS) }, reason: command.reason, ...given("principal", command.principal),
  });
  return draft.accept();
}

export function recordErased(state: SessionState, { toRev, ...command }: CommandOf<"RecordErased">): Decision {
  const draft = new Draft(state, command);
  if (draft.session.erase?.toRev !== toRev) return draft.accept();
  draft.emit({ type: "SessionErased", toRev });
  if (guardIsIdle(draft.state)) draft.emit({ type: "GuardReleased", generation: draft.session.guard.generation });
  return draft.accept();
}
