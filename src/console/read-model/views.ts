/** Owns: the table of saved views. */
import type { ReadModel } from "./database.js";

export interface SavedView { readonly name: string; readonly address: string }

export async function listViews(db: ReadModel, tenant: string, principalId: string): Promise<SavedView[]> {
  return db.selectFrom("saved_views").select(["name", "address"]).where("tenant", "=", tenant).where("principal_id", "=", principalId).orderBy("name").execute();
}

/** The same name again replaces the address. */
export async function saveView(db: ReadModel, of: { readonly tenant: string; readonly principalId: string; readonly atMs: number }, { name, address }: SavedView): Promise<void> {
  const columns = { address, saved_at: of.atMs };
  await db.insertInto("saved_views").values({ tenant: of.tenant, principal_id: of.principalId, name, ...columns }).onConflict((oc) => oc.columns(["tenant", "principal_id", "name"]).doUpdateSet(columns)).execute();
}

export async function removeView(db: ReadModel, tenant: string, principalId: string, name: string): Promise<void> {
  await db.deleteFrom("saved_views").where("tenant", "=", tenant).where("principal_id", "=", principalId).where("name", "=", name).execute();
}
