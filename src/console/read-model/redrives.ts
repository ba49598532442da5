/**
 * Owns: the tables of redrives: commands on their way, kept from before the publish until the session is known to have them; and what each
 * number of a letter sent. One number stands for one content: the session takes a number once, so another content under it would do nothing.
 */
import { sha256Hex } from "../../contracts/ids.js";
import type { ReadModel, RedriveMadeRow, RedriveRow } from "./database.js";
import { sharesRows } from "./open.js";

/** The content of a redrive that nobody edited. */
export const AS_IT_WAS = "as it was";

export function contentOf(payload: string | undefined): string { return payload === undefined ? AS_IT_WAS : sha256Hex(payload); }

/** What a number was used for. `made` is undefined where an older version of Docket made it, and noted nothing. */
export interface NumberUsed { readonly made: RedriveMadeRow | undefined }

/**
 * Undefined: the number is free for this content, or was used for the very same. Used it is also where its redrive seems to have got nowhere: a publish that
 * failed may have arrived all the same, its answer lost. In a transaction the letter stays locked until its end.
 */
export async function usedOtherwise(db: ReadModel, about: { readonly id: string; readonly redrive: number; readonly content: string }): Promise<NumberUsed | undefined> {
  const { id, redrive, content } = about;
  let find = db.selectFrom("dead_letters").select("redrive_count").where("dead_letter_id", "=", id);
  if (db.isTransaction && sharesRows(db)) find = find.forUpdate();
  const letter = await find.executeTakeFirst();
  if (letter === undefined || redrive > letter.redrive_count) return undefined;
  const made = await db.selectFrom("redrives_made").selectAll().where("dead_letter_id", "=", id).where("redrive", "=", redrive).executeTakeFirst();
  return (made?.content ?? AS_IT_WAS) === content ? undefined : { made };
}

/** The first who asked for it stays the one who did. */
export async function noteMade(db: ReadModel, row: RedriveMadeRow): Promise<void> {
  await db.insertInto("redrives_made").values(row).onConflict((oc) => oc.columns(["dead_letter_id", "redrive"]).doNothing()).execute();
}

/** A repetition of a command changes nothing. False: an earlier one is still on its way. */
export async function putRedrive(db: ReadModel, row: RedriveRow): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db.insertInto("redrives").values(row).onConflict((oc) => oc.column("command_id").doNothing()).executeTakeFirst();
  return numInsertedOrUpdatedRows === 1n;
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
