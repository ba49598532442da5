/** Owns: adding to the audit and reading it: who asked for what, when, why, and what came of it. Rows are added, never changed. */
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { sql } from "kysely";
import { AUDIT_CHECKPOINT, AuditContent, genesisOf } from "../../contracts/audit.js";
import { chainedRow } from "./audit-schema.js";
import type { AuditHeadRow, AuditRow, ReadModel } from "./database.js";
import { sharesRows } from "./open.js";
import { pageOfRows, type Page, type PageRequest } from "./page.js";

/** Another process adds rows too: whoever came second takes the next place. */
const TRIES = 50;

/** Adds one row behind the last. Throws where the database does not take it. */
export async function addAudit(db: ReadModel, entry: Omit<AuditContent, "auditId">): Promise<number> {
  return append(db, () => Promise.resolve({ content: { auditId: randomUUID(), ...entry }, uptoSeq: null }));
}

/** Adds a row whose id the caller gives, unless it is there: what is delivered again makes no second row. */
export async function addAuditOnce(db: ReadModel, content: AuditContent): Promise<number> {
  return append(db, async (trx) => {
    const found = await trx.selectFrom("audit_chain").select("seq").where("audit_id", "=", content.auditId).executeTakeFirst();
    return found === undefined ? { content, uptoSeq: null } : undefined;
  });
}

/** `make` runs in the transaction that adds the row; undefined adds none, and the number is 0. */
async function append(db: ReadModel, make: (trx: ReadModel) => Promise<{ content: AuditContent; uptoSeq: number | null } | undefined>): Promise<number> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await db.transaction().execute(async (trx) => {
        // One after the other, where several consoles share a server.
        if (sharesRows(db)) await sql`select pg_advisory_xact_lock(7302)`.execute(trx);
        const made = await make(trx);
        if (made === undefined) return 0;
        const last = await trx.selectFrom("audit_chain").select(["seq", "hash"]).orderBy("seq", "desc").limit(1).executeTakeFirst();
        const row = chainedRow(made.content, (last?.seq ?? 0) + 1, last?.hash ?? genesisOf(await installationOf(trx)), made.uptoSeq);
        await trx.insertInto("audit_chain").values(row).execute();
        return row.seq;
      });
    } catch (error) {
      if (tries >= TRIES || !cameSecond(error)) throw error;
      await pause(Math.random() * 5 * tries);
    }
  }
}

/** SQLite's codes; PostgreSQL's for a key that is taken, the chain's trigger, and two transactions in each other's way. */
const SECOND: ReadonlySet<string> = new Set(["SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_TRIGGER", "SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT", "23505", "P0001", "40001", "40P01"]);

function cameSecond(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && SECOND.has(code);
}

/** Rows of the tenant and of the installation itself, the newest first. */
export async function listAudit(db: ReadModel, tenant: string, page: PageRequest): Promise<Page<AuditContent & { seq: number }>> {
  let query = db.selectFrom("audit_chain").select(["seq", "content"]).where("tenant", "in", [tenant, ""]).orderBy("seq", "desc").limit(page.limit + 1);
  if (page.after !== undefined) query = query.where("seq", "<", page.after[0]);
  return pageOfRows(await query.execute(), page.limit, (row) => ({ seq: row.seq, ...contentOf(row) }), (row) => [row.seq, ""]);
}

function contentOf({ content }: Pick<AuditRow, "content">): AuditContent { return AuditContent.parse(JSON.parse(content)); }

export async function installationOf(db: ReadModel): Promise<string> {
  return (await db.selectFrom("audit_meta").select("installation").executeTakeFirstOrThrow()).installation;
}

export interface ChainEnds { readonly first: { readonly seq: number; readonly prev: string }; readonly last: { readonly seq: number; readonly hash: string } }

/** Undefined while there is no row. */
export async function chainEnds(db: ReadModel): Promise<ChainEnds | undefined> {
  const first = await db.selectFrom("audit_chain").select(["seq", "prev"]).orderBy("seq").limit(1).executeTakeFirst();
  const last = await db.selectFrom("audit_chain").select(["seq", "hash"]).orderBy("seq", "desc").limit(1).executeTakeFirst();
  return first === undefined || last === undefined ? undefined : { first, last };
}

/** What stands for the rows up to `uptoSeq`, if a checkpoint does. */
export async function checkpointAt(db: ReadModel, uptoSeq: number): Promise<AuditContent | undefined> {
  const row = await db.selectFrom("audit_chain").select("content").where("upto_seq", "=", uptoSeq).executeTakeFirst();
  return row === undefined ? undefined : contentOf(row);
}

/** Rows above `afterSeq` up to `uptoSeq`, in order. */
export function rowsAfter(db: ReadModel, afterSeq: number, uptoSeq: number, limit: number): Promise<AuditRow[]> {
  return db.selectFrom("audit_chain").selectAll().where("seq", ">", afterSeq).where("seq", "<=", uptoSeq).orderBy("seq").limit(limit).execute();
}

export async function addHead(db: ReadModel, head: AuditHeadRow): Promise<void> {
  await db.insertInto("audit_heads").values(head).onConflict((conflict) => conflict.doNothing()).execute();
}

export function newestHead(db: ReadModel): Promise<AuditHeadRow | undefined> {
  return db.selectFrom("audit_heads").selectAll().orderBy("seq", "desc").limit(1).executeTakeFirst();
}

export function headsBetween(db: ReadModel, fromSeq: number, uptoSeq: number): Promise<AuditHeadRow[]> {
  return db.selectFrom("audit_heads").selectAll().where("seq", ">=", fromSeq).where("seq", "<=", uptoSeq).orderBy("seq").execute();
}

/**
 * Forgets rows that are older than `beforeMs`, behind a checkpoint row that says how far they went and which hash they ended with, so that the
 * chain can still be checked. The last row is always kept. Returns how many went.
 */
export async function forgetAudit(db: ReadModel, beforeMs: number, nowMs: number): Promise<number> {
  let uptoSeq = 0, rows = 0;
  await append(db, async (trx) => {
    const kept = await trx.selectFrom("audit_chain").select("seq").where("at", ">=", beforeMs).orderBy("seq").limit(1).executeTakeFirst();
    const ends = await chainEnds(trx);
    if (ends === undefined) return undefined;
    uptoSeq = (kept?.seq ?? ends.last.seq) - 1;
    rows = uptoSeq - ends.first.seq + 1;
    if (rows < 1) return undefined;
    const last = await trx.selectFrom("audit_chain").select(["hash", "at"]).where("seq", "=", uptoSeq).executeTakeFirstOrThrow();
    const detail = { uptoSeq, hash: last.hash, rows, lastAtMs: last.at };
    return { uptoSeq, content: { auditId: randomUUID(), atMs: nowMs, tenant: "", principalId: "docket/console", keyId: "", action: AUDIT_CHECKPOINT, target: `rows up to ${String(uptoSeq)}`, outcome: "forgotten", reason: "their time is over", detail, ip: "" } };
  });
  if (rows < 1) return 0;
  await db.deleteFrom("audit_heads").where("seq", "<=", uptoSeq).execute();
  await db.deleteFrom("audit_chain").where("seq", "<=", uptoSeq).execute();
  return rows;
}
