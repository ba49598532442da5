/**
 * Owns: the tables of the audit chain, what the database itself forbids on them, and taking over the rows of older versions.
 *
 * - The database refuses to change a row, to delete one above the newest checkpoint, and to add one that does not follow the last.
 *   Whoever owns the database can drop the triggers; then the hashes and the signed heads tell (docs/audit.md).
 */
import { randomUUID } from "node:crypto";
import { sql, type Kysely } from "kysely";
import { contentHashOf, genesisOf, rowHashOf, type AuditContent } from "../../contracts/audit.js";
import type { AuditRow, Tables } from "./database.js";

export type Dialect = "sqlite" | "postgres";

const tables = (dialect: Dialect): string[] => [
  "create table if not exists audit_meta (one integer primary key check (one = 1), installation text not null)",
  `create table if not exists audit_chain (seq ${dialect === "sqlite" ? "integer" : "bigint"} primary key, prev text not null, content_hash text not null, hash text not null, content text not null,
    audit_id text not null unique, at bigint not null, tenant text not null, action text not null, upto_seq bigint)`,
  "create index if not exists audit_chain_recent on audit_chain (tenant, seq desc)",
  "create index if not exists audit_chain_checkpoints on audit_chain (upto_seq) where upto_seq is not null",
  "create table if not exists audit_heads (seq bigint primary key, hash text not null, at bigint not null, jws text not null)",
];

const CHECKPOINT = "coalesce((select max(upto_seq) from audit_chain where upto_seq is not null), 0)";

/** What the database refuses; `old` is the row that was there, `new` the one to come. */
const RULES: readonly { readonly name: string; readonly table: string; readonly on: "insert" | "update" | "delete"; readonly when?: string; readonly says: string }[] = [
  { name: "audit_meta_kept", table: "audit_meta", on: "delete", says: "the audit''s installation id is never deleted" },
  { name: "audit_meta_fixed", table: "audit_meta", on: "update", says: "the audit''s installation id never changes" },
  { name: "audit_chain_fixed", table: "audit_chain", on: "update", says: "audit rows never change" },
  { name: "audit_chain_kept", table: "audit_chain", on: "delete", when: `old.seq > ${CHECKPOINT}`, says: "audit rows are kept until a checkpoint stands for them" },
  {
    name: "audit_chain_follows", table: "audit_chain", on: "insert", says: "an audit row must follow the last one",
    when: "new.seq <> coalesce((select max(seq) from audit_chain), 0) + 1 or new.prev <> coalesce((select hash from audit_chain order by seq desc limit 1), new.prev)",
  },
  { name: "audit_heads_fixed", table: "audit_heads", on: "update", says: "signed heads never change" },
  { name: "audit_heads_kept", table: "audit_heads", on: "delete", when: `old.seq > ${CHECKPOINT}`, says: "signed heads are kept until a checkpoint stands for them" },
];

function triggers(dialect: Dialect): string[] {
  return RULES.flatMap(({ name, table, on, when, says }) => {
    if (dialect === "sqlite") return [`create trigger if not exists ${name} before ${on} on ${table} ${when === undefined ? "" : `when ${when} `}begin select raise(abort, '${says}'); end`];
    const passed = on === "delete" ? "old" : "new";
    return [
      `create or replace function ${name}() returns trigger language plpgsql as $$ begin if ${when ?? "true"} then raise exception '${says}'; end if; return ${passed}; end $$`,
      `create or replace trigger ${name} before ${on} on ${table} for each row execute function ${name}()`,
    ];
  });
}

/** Makes what is missing, in the caller's transaction. Rows of a version without chain are taken into it, in their order; a row says that they were not chained when they were written. */
export async function ensureAuditChain(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  for (const statement of [...tables(dialect), ...triggers(dialect)]) await sql.raw(statement).execute(db);
  await sql`insert into audit_meta (one, installation) values (1, ${randomUUID()}) on conflict do nothing`.execute(db);
  const { installation } = await db.selectFrom("audit_meta").select("installation").executeTakeFirstOrThrow();
  await takeOver(db, dialect, installation);
}

interface OldRow { audit_id: string; at: number; tenant: string; principal_id: string; key_id: string; action: string; target: string; outcome: string; reason: string; detail: string; ip: string }

async function takeOver(db: Kysely<Tables>, dialect: Dialect, installation: string): Promise<void> {
  const there = dialect === "sqlite" ? sql`select 1 from sqlite_master where type = 'table' and name = 'audit'` : sql`select 1 from information_schema.tables where table_schema = current_schema() and table_name = 'audit'`;
  if ((await there.execute(db)).rows.length === 0) return;
  const last = await db.selectFrom("audit_chain").select(["seq", "hash"]).orderBy("seq", "desc").limit(1).executeTakeFirst();
  let seq = last?.seq ?? 0, prev = last?.hash ?? genesisOf(installation), newestAt = 0;
  const add = async (content: AuditContent): Promise<void> => {
    const row = chainedRow(content, seq + 1, prev);
    await db.insertInto("audit_chain").values(row).execute();
    seq = row.seq;
    prev = row.hash;
  };
  const { rows } = await sql<OldRow>`select * from audit order by at, ${sql.raw(dialect === "sqlite" ? "rowid" : "case outcome when 'requested' then 0 else 1 end, audit_id")}`.execute(db);
  for (const old of rows) {
    await add({
      auditId: old.audit_id, atMs: old.at, tenant: old.tenant, principalId: old.principal_id, keyId: old.key_id, action: old.action, target: old.target, outcome: old.outcome,
      reason: old.reason, detail: JSON.parse(old.detail) as Record<string, unknown>, ip: old.ip,
    });
    newestAt = old.at;
  }
  if (rows.length > 0) await add({ auditId: randomUUID(), atMs: newestAt, tenant: "", principalId: "docket/console", keyId: "", action: "audit.taken-over", target: "", outcome: "chained", reason: "rows of a version without chain", detail: { rows: rows.length }, ip: "" });
  await sql`drop table audit`.execute(db);
}

/** The row that says `content`, behind `prev`. */
export function chainedRow(content: AuditContent, seq: number, prev: string, uptoSeq: number | null = null): AuditRow {
  const text = JSON.stringify(content);
  const content_hash = contentHashOf(text);
  return { seq, prev, content_hash, hash: rowHashOf({ seq, prev, contentHash: content_hash }), content: text, audit_id: content.auditId, at: content.atMs, tenant: content.tenant, action: content.action, upto_seq: uptoSeq };
}
