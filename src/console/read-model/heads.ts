/** Owns: how far each journal was projected. Heads only ever grow, whoever writes them in whatever order; only forgetting everything sets them back. */
import { sql, type Kysely } from "kysely";
import { chunked } from "./bulk.js";
import type { JournalHeadRow, Tables } from "./database.js";

export type Head = Pick<JournalHeadRow, "actor_id" | "head_rev" | "max_rev">;

const PER_STATEMENT = 1_000;

/** `lock`: until the transaction ends nobody else reads these heads for writing. */
export async function headsOf(db: Kysely<Tables>, actorIds: readonly string[], lock = false): Promise<Map<string, Head>> {
  const heads = new Map<string, Head>();
  for (const part of chunked(actorIds, PER_STATEMENT)) {
    let query = db.selectFrom("journal_heads").select(["actor_id", "head_rev", "max_rev"]).where("actor_id", "in", part).orderBy("actor_id");
    if (lock) query = query.forUpdate();
    for (const head of await query.execute()) heads.set(head.actor_id, head);
  }
  return heads;
}

export async function putHeads(db: Kysely<Tables>, heads: readonly Head[]): Promise<void> {
  const higher = (column: "head_rev" | "max_rev") => sql<number>`case when ${sql.ref(`excluded.${column}`)} > ${sql.ref(`journal_heads.${column}`)} then ${sql.ref(`excluded.${column}`)} else ${sql.ref(`journal_heads.${column}`)} end`;
  for (const part of chunked(heads, PER_STATEMENT)) {
    await db.insertInto("journal_heads").values(part.map((head) => ({ ...head, tried_at: 0 }))).onConflict((oc) => oc.column("actor_id").doUpdateSet({ head_rev: higher("head_rev"), max_rev: higher("max_rev"), tried_at: 0 })).execute();
  }
}
