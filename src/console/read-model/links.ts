/** Owns: the table of one-time links. The link itself is signed and kept by whoever got it; here is whether it was used, and for what. */
import type { Kysely } from "kysely";
import type { LinkRow, ReadModel, Tables } from "./database.js";

export type NewLink = Pick<LinkRow, "link_id" | "tenant" | "approval_id" | "principal_id" | "made_by" | "created_at" | "expires_at">;

/** The same link again is the same row. True: it was not there. */
export async function addLink(db: Kysely<Tables>, link: NewLink): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db.insertInto("one_time_links").values({ ...link, used_at: null, decision_id: null, verdict: null }).onConflict((oc) => oc.column("link_id").doNothing()).executeTakeFirst();
  return numInsertedOrUpdatedRows === 1n;
}

export function findLink(db: ReadModel, linkId: string): Promise<LinkRow | undefined> {
  return db.selectFrom("one_time_links").selectAll().where("link_id", "=", linkId).executeTakeFirst();
}

/** Uses a link for one decision. The same decision may be asked about again until its verdict is known; anything else finds the link used. */
export async function useLink(db: ReadModel, linkId: string, decisionId: string, nowMs: number): Promise<boolean> {
  const { numUpdatedRows } = await db.updateTable("one_time_links").set({ used_at: nowMs, decision_id: decisionId }).where("link_id", "=", linkId)
    .where((eb) => eb.or([eb("used_at", "is", null), eb.and([eb("decision_id", "=", decisionId), eb("verdict", "is", null)])])).executeTakeFirst();
  return numUpdatedRows === 1n;
}

export async function noteLinkVerdict(db: ReadModel, linkId: string, verdict: string): Promise<void> {
  await db.updateTable("one_time_links").set({ verdict }).where("link_id", "=", linkId).execute();
}

/** Nothing was sent: the link is as good as before. */
export async function giveLinkBack(db: ReadModel, linkId: string, decisionId: string): Promise<void> {
  await db.updateTable("one_time_links").set({ used_at: null, decision_id: null }).where("link_id", "=", linkId).where("decision_id", "=", decisionId).where("verdict", "is", null).execute();
}
