/**
 * Owns: asking sessions that have been at rest for too long to delete themselves, and long ones to shorten their journals (I9). The read model only knows whom to ask; the
 * session decides by its own clock, so that one which has moved meanwhile stays. A command that got lost is sent again at the next clean-up.
 */
import { SESSION_COMPACT, SESSION_DELETE, type SessionCompact, type SessionDelete } from "../contracts/messages.js";
import type { ConsoleConfig } from "./config.js";
import { envelopeFor } from "./envelopes.js";
import type { ConsoleDeps } from "./ports.js";
import type { ReadModel } from "./read-model/database.js";
import { idleSessions, longJournals } from "./read-model/sessions.js";

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

/** What the session erases is here by then: it is told how far the read model has followed. Returns how many were asked. */
export async function compactLong(db: ReadModel, retention: ConsoleConfig["retention"], deps: Pick<ConsoleDeps, "tasks" | "clock">): Promise<number> {
  const nowMs = deps.clock.nowMs();
  const { journalEntries, journalMs, batch } = retention;
  const long = await longJournals(db, { entries: Math.ceil(journalEntries * 1.5), openedBeforeMs: nowMs - journalMs }, batch);
  for (const { actor_id, tenant, session_id, rev, head_rev } of long) {
    const data: SessionCompact = { projectedRev: head_rev, keepEntries: journalEntries, olderThanMs: journalMs };
    await deps.tasks.publish(envelopeFor({ id: `compact:${actor_id}:${String(rev)}:${String(nowMs)}`, type: SESSION_COMPACT, tenant, sessionId: session_id, data, atMs: nowMs }));
  }
  return long.length;
}
