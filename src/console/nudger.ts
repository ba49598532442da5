/**
 * Owns: the safety net for lost reminders (DESIGN 3, guard). The read model knows each session's next due time; one that
 * passed it by 5 s gets a nudge, again after 5, 10, 20 … s while nothing moves. A nudge is harmless: the session does what is due.
 * So does one with a question that nobody can be shown, since the session has had its receipt from a database that is gone: it asks again.
 */
import { SESSION_NUDGE } from "../contracts/messages.js";
import { errorFields } from "../platform/log.js";
import type { ConsoleConfig } from "./config.js";
import { envelopeFor } from "./envelopes.js";
import type { ConsoleDeps } from "./ports.js";
import type { ReadModel, SessionRow } from "./read-model/database.js";
import { noteNudge, overdueSessions, unshownSessions } from "./read-model/sessions.js";

/** What is to be shown of a question comes right behind it; a session repeats it after half a minute by itself. */
const SHOWN_MS = 40_000;

/** One look: nudges what is due for it. Returns how many. Never throws. */
export async function nudgeOverdue(db: ReadModel, config: ConsoleConfig["nudge"], deps: Pick<ConsoleDeps, "tasks" | "clock" | "logger">): Promise<number> {
  const nowMs = deps.clock.nowMs();
  let nudged = 0;
  try {
    // More rows than the batch: those still in their pause must not hide the others for ever.
    const limit = config.batch * 10;
    const rows = [...await overdueSessions(db, nowMs - config.overdueMs, limit), ...await unshownSessions(db, nowMs - SHOWN_MS, limit)];
    for (const row of new Map(rows.map((one) => [one.actor_id, one])).values()) {
      if (nudged >= config.batch) break;
      if (!isDue(row, config, nowMs)) continue;
      await deps.tasks.publish(envelopeFor({ id: `nudge:${row.actor_id}:${String(row.rev)}:${String(row.nudges + 1)}`, type: SESSION_NUDGE, tenant: row.tenant, sessionId: row.session_id, data: {}, atMs: nowMs }));
      await noteNudge(db, row, nowMs);
      nudged += 1;
    }
  } catch (error) {
    deps.logger.warn({ nudged, ...errorFields(error) }, "nudging overdue sessions stopped half-way; the next look goes on");
  }
  return nudged;
}

function isDue(row: SessionRow, config: ConsoleConfig["nudge"], nowMs: number): boolean {
  if (row.nudged_at === null) return true;
  return nowMs - row.nudged_at >= Math.min(config.backoffCapMs, config.overdueMs * 2 ** Math.min(row.nudges - 1, 20));
}
