/**
 * Owns: that a redrive arrives. A publish that returned proves nothing (DESIGN 7.10): a command stays in the table until the session
 * tells an outcome of what it carries, and is published again, same id, with growing pauses. One that nobody ever takes makes its
 * letter dead again, so that it is seen.
 */
import { parseEnvelope, MAX_COMMAND_BYTES } from "../contracts/cloudevent.js";
import { errorFields } from "../platform/log.js";
import type { ConsoleConfig } from "./config.js";
import type { ConsoleDeps } from "./ports.js";
import type { ReadModel, RedriveRow } from "./read-model/database.js";
import { reviveLetter, settleRedrive } from "./read-model/dead-letters.js";
import { dropRedrive, dueRedrives, noteResent } from "./read-model/redrives.js";

type Deps = Pick<ConsoleDeps, "sessions" | "tasks" | "clock" | "logger">;

/** One look. A failure of the way leaves the rest for the next one. */
export async function resendRedrives(db: ReadModel, config: ConsoleConfig["redrive"], deps: Deps): Promise<void> {
  for (const row of await dueRedrives(db, deps.clock.nowMs(), config.batch)) await resend(db, config, { ...deps, row });
}

async function resend(db: ReadModel, config: ConsoleConfig["redrive"], { sessions, tasks, clock, logger, row }: Deps & { row: RedriveRow }): Promise<void> {
  const nowMs = clock.nowMs();
  try {
    if ((await sessions.readOutcome(row.actor_id, row.event_key)).state !== "unknown") {
      await dropRedrive(db, row.command_id);
      await settleRedrive(db, row.dead_letter_id, nowMs);
      return;
    }
    if (row.attempts >= config.attempts) {
      await dropRedrive(db, row.command_id);
      await reviveLetter(db, row.dead_letter_id);
      logger.error({ deadLetterId: row.dead_letter_id, attempts: row.attempts }, "no session took a redrive: its letter is dead again");
      return;
    }
    // Noted first: a crash in between only costs a pause.
    await noteResent(db, row.command_id, { attempts: row.attempts + 1, dueAtMs: nowMs + Math.min(config.confirmMs * 2 ** row.attempts, config.backoffCapMs) });
    await tasks.publish(parseEnvelope(row.command, MAX_COMMAND_BYTES));
  } catch (error) {
    logger.warn({ deadLetterId: row.dead_letter_id, ...errorFields(error) }, "whether a redrive has arrived could not be found out; the next look tries again");
  }
}
