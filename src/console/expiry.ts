/**
 * Owns: asking sessions that have been at rest for too long to delete themselves (I9). The read model only knows whom to ask; the
 * session decides by its own clock, so that one which has moved meanwhile stays. A command that got lost is sent again at the next clean-up.
 */
import { SESSION_DELETE, type SessionDelete } from "../contracts/messages.js";
import type { ConsoleConfig } from "./config.js";
import { envelopeFor } from "./envelopes.js";
import type { ConsoleDeps } from "./ports.js";
import type { ReadModel } from "./read-model/database.js";
import { idleSessions } from "./read-model/sessions.js";

/** Returns how many were asked. */
export async function expireIdle(db: ReadModel, retention: ConsoleConfig["retention"], deps: Pick<ConsoleDeps, "tasks" | "clock">): Promise<number> {
  const nowMs = deps.clock.nowMs();
  let asked = 0;
  for (const [status, idleForMs] of [["IDLE", retention.idleMs], ["CLOSED", retention.closedMs]] as const) {
    for (const row of await idleSessions(db, status, nowMs - idleForMs, retention.batch - asked)) {
      const data: SessionDelete = { reason: `retention: ${status} since ${new Date(row.updated_at).toISOString()}`, idleForMs };
      await deps.tasks.publish(envelopeFor({ id: `expire:${row.actor_id}:${String(row.rev)}:${String(nowMs)}`, type: SESSION_DELETE, tenant: row.tenant, sessionId: row.session_id, data, atMs: nowMs }));
      asked += 1;
    }
  }
  return asked;
}
