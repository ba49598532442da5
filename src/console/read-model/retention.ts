/** Owns: forgetting (I9). Open approvals and live sessions are never forgotten; dead letters that nobody settled are, after long. */
import type { ConsoleConfig } from "../config.js";
import type { ReadModel } from "./database.js";

export async function forgetOld(db: ReadModel, retention: ConsoleConfig["retention"], nowMs: number): Promise<void> {
  await db.deleteFrom("approvals").whereRef("closed_pos", ">", "opened_pos").where("closed_at", "<", nowMs - retention.decidedMs).execute();
  await db.deleteFrom("dead_letters").where("state", "=", "dead").where("received_at", "<", nowMs - retention.deadMs).execute();
  await db.deleteFrom("dead_letters").where("state", "!=", "dead").where("settled_at", "<", nowMs - retention.decidedMs).execute();
  await db.deleteFrom("approvals").where("actor_id", "in", db.selectFrom("sessions").select("actor_id").where("status", "=", "DELETED")).execute();
  // A tombstone is remembered until its journal is erased: until then it may need a nudge.
  await db.deleteFrom("sessions").where("status", "=", "DELETED").where("next_due_at", "is", null).execute();
  await db.deleteFrom("journal_heads").where("actor_id", "not in", db.selectFrom("sessions").select("actor_id")).execute();
  await db.deleteFrom("browsers").where("expires_at", "<", nowMs).execute();
  await db.deleteFrom("journal_checks").where("actor_id", "not in", db.selectFrom("sessions").select("actor_id")).execute();
  await db.deleteFrom("audit").where("at", "<", nowMs - retention.auditMs).execute();
}
