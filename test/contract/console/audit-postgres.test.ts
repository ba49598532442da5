/** The audit chain on PostgreSQL, where the machine has one: what the database forbids, many consoles at once, and taking over older rows. */
import { sql } from "kysely";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addAudit, addHead, forgetAudit, listAudit } from "../../../src/console/read-model/audit.js";
import type { ReadModel } from "../../../src/console/read-model/database.js";
import { openReadModel } from "../../../src/console/read-model/open.js";
import { createDatabase, type TestDatabase } from "../../support/database.js";
import { hasPostgres } from "../../support/tools/postgres.js";

describe.skipIf(!hasPostgres())("on PostgreSQL", () => {
  let database: TestDatabase;
  let db: ReadModel;
  const row = (n: number, atMs = 1_000) => ({ atMs, tenant: "default", principalId: `p${String(n)}`, keyId: "k", action: "session.cancel", target: "s", outcome: "published", reason: "r", detail: { n }, ip: "" });

  beforeAll(async () => {
    database = await createDatabase();
    const before = new pg.Client(database.address);
    await before.connect();
    await before.query("create table audit (audit_id text primary key, at bigint not null, tenant text not null, principal_id text not null, key_id text not null, action text not null, target text not null, outcome text not null, reason text not null, detail text not null, ip text not null)");
    await before.query("insert into audit values ('b', 2, 'default', 'ann', 'k', 'a', 's', 'published', 'r', '{}', ''), ('c', 2, 'default', 'ann', 'k', 'a', 's', 'requested', 'r', '{}', '')");
    await before.end();
    db = openReadModel(database.address);
  });
  afterAll(async () => {
    await db.destroy();
    await database.drop();
  });

  it("takes over older rows, keeps one chain under many writers, forbids what must not be, and forgets behind a checkpoint", async () => {
    const others = Array.from({ length: 3 }, () => openReadModel(database.address));
    await Promise.all(others.flatMap((other) => Array.from({ length: 15 }, (_, n) => addAudit(other, row(n)))));
    await Promise.all(others.map((other) => other.destroy()));
    const { items } = await listAudit(db, "default", { limit: 100, after: undefined });
    expect(items.map(({ seq }) => seq)).toEqual(Array.from({ length: 48 }, (_, n) => 48 - n));
    expect(items.slice(-3).map(({ action, auditId }) => (action === "audit.taken-over" ? action : auditId))).toEqual(["audit.taken-over", "b", "c"]);
    await addHead(db, { seq: 48, hash: "h", at: 1, jws: "j" });
    for (const [statement, words] of [
      ["update audit_chain set content = '{}' where seq = 2", "never change"], ["delete from audit_chain where seq = 1", "kept until a checkpoint"], ["update audit_meta set installation = 'x'", "never changes"],
      ["insert into audit_chain select 60, hash, content_hash, hash, content, 'x', at, tenant, action, null from audit_chain where seq = 48", "must follow"], ["update audit_heads set jws = ''", "never change"], ["delete from audit_heads", "kept until a checkpoint"],
    ] as const) await expect(sql.raw(statement).execute(db), statement).rejects.toThrow(words);
    await addAudit(db, row(99, 5_000));
    expect(await forgetAudit(db, 4_000, 6_000)).toBe(48);
    expect((await listAudit(db, "default", { limit: 100, after: undefined })).items.map(({ seq, action }) => `${String(seq)} ${action}`)).toEqual(["50 audit.checkpoint", "49 session.cancel"]);
  });
});
