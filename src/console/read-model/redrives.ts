/** Owns: the table of redrive commands on their way: kept from before the publish until the session is known to have them. */
import type { ReadModel, RedriveRow } from "./database.js";

/** A repetition of a command changes nothing. */
export async function putRedrive(db: ReadModel, row: RedriveRow): Promise<void> {
  await db.insertInto("redrives").values(row).onConflict((oc) => oc.column("command_id").doNothing()).execute();
}

export async function dueRedrives(db: ReadModel, nowMs: number, limit: number): Promise<RedriveRow[]> {
  return db.selectFrom("redrives").selectAll().where("due_at", "<=", nowMs).orderBy("due_at").limit(limit).execute();
}

export async function noteResent(db: ReadModel, commandId: string, next: { readonly attempts: number; readonly dueAtMs: number }): Promise<void> {
  await db.updateTable("redrives").set({ attempts: next.attempts, due_at: next.dueAtMs }).where("command_id", "=", commandId).execute();
}

export async function dropRedrive(db: ReadModel, commandId: string): Promise<void> {
  await db.deleteFrom("redrives").where("command_id", "=", commandId).execute();
}
