/** Owns: forgetting (I9). Open approvals and live sessions are never forgotten; dead letters that nobody settled are, after long. */
import type { ConsoleConfig } from "../config.js";
import { forgetReports } from "./app-reports.js";
import { forgetAudit } from "./audit.js";
import type { ReadModel } from "./database.js";
import { dropHistoryOf } from "./history.js";
import { forgetNotices } from "./notices.js";

export async function forgetOld(db: ReadModel, retention: ConsoleConfig["retention"], nowMs: number): Promise<void> {
  await db.deleteFrom("approvals").whereRef("closed_pos", ">", "opened_pos").where("closed_at", "<", nowMs - retention.decidedMs).execute();
  await db.deleteFrom("approval_events").where("approval_id", "not in", db.selectFrom("approvals").select("approval_id")).execute();
  await forgetNotices(db, nowMs);
  await db.deleteFrom("dead_letters").where("state", "=", "dead").where("received_at", "<", nowMs - retention.deadMs).execute();
  await db.deleteFrom("dead_letters").where("state", "!=", "dead").where("settled_at", "<", nowMs - retention.decidedMs).execute();
  await db.deleteFrom("redrives_made").where("dead_letter_id", "not in", db.selectFrom("dead_letters").select("dead_letter_id")).execute();
  await db.deleteFrom("approvals").where("actor_id", "in", db.selectFrom("sessions").select("actor_id").where("status", "=", "DELETED")).execute();
  await dropHistoryOf(db, (await db.selectFrom("sessions").select("actor_id").where("status", "=", "DELETED").where("next_due_at", "is", null).limit(10_000).execute()).map((row) => row.actor_id));
  await db.deleteFrom("cost_days").where("day", "<", nowMs - retention.costsMs).execute();
  await db.deleteFrom("rule_days").where("day", "<", nowMs - retention.costsMs).execute();
  // A tombstone is remembered until its journal is erased: until then it may need a nudge.
  await db.deleteFrom("sessions").where("status", "=", "DELETED").where("next_due_at", "is", null).execute();
  await db.deleteFrom("journal_heads").where("actor_id", "not in", db.selectFrom("sessions").select("actor_id")).execute();
  await db.deleteFrom("browsers").where("expires_at", "<", nowMs).execute();
  await db.deleteFrom("sign_in_attempts").where("expires_at", "<", nowMs).execute();
  await db.deleteFrom("journal_checks").where("actor_id", "not in", db.selectFrom("sessions").select("actor_id")).execute();
  await forgetReports(db, nowMs);
  await forgetAudit(db, nowMs - retention.auditMs, nowMs);
}
