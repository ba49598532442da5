/** Owns: the sessions table: what lists show of each session, the newest revision winning. */
import { sql, type Kysely } from "kysely";
import { SessionSummary } from "../../contracts/journal.js";
import { chunked } from "./bulk.js";
import type { ReadModel, SessionRow, Tables } from "./database.js";
import { pageOfRows, type Page, type PageRequest } from "./page.js";
import { matches, planSearch } from "./words.js";

const PER_STATEMENT = 500;

export interface SessionFilter extends PageRequest {
  readonly tenant: string; readonly statuses?: readonly string[] | undefined; readonly agent?: string | undefined;
  readonly quarantined?: boolean;
  /** Words of the session's id, agent or messages, each by its beginning. */
  readonly text?: string | undefined;
}

/** Takes summaries over, unless newer ones are there. One of each session. */
export async function putSummaries(db: Kysely<Tables>, summaries: readonly SessionSummary[]): Promise<void> {
  for (const part of chunked(summaries, PER_STATEMENT)) {
    const rows = part.map((summary) => ({
      actor_id: summary.actorId, tenant: summary.tenant, session_id: summary.sessionId, agent: summary.agent, status: summary.status, rev: summary.rev, updated_at: summary.updatedAtMs,
      next_due_at: summary.nextDueAtMs ?? null, summary: JSON.stringify(summary), nudged_at: null, nudges: 0, quarantined: summary.quarantine === undefined ? 0 : 1, cost_usd: summary.costUsd,
      created_at: summary.createdAtMs, journal_from_rev: summary.journalFromRev ?? 1, agent_version: summary.agentVersion,
    }));
    const newer = Object.fromEntries(Object.keys(rows[0] ?? {}).filter((column) => column !== "actor_id").map((column) => [column, sql`${sql.ref(`excluded.${column}`)}`]));
    await db.insertInto("sessions").values(rows).onConflict((oc) => oc.column("actor_id").doUpdateSet(newer).whereRef("sessions.rev", "<", "excluded.rev")).execute();
  }
}

export async function listSessions(db: ReadModel, filter: SessionFilter): Promise<Page<SessionSummary>> {
  let query = db.selectFrom("sessions").selectAll().where("tenant", "=", filter.tenant).orderBy("updated_at", "desc").orderBy("actor_id").limit(filter.limit + 1);
  query = filter.statuses === undefined ? query.where("status", "!=", "DELETED") : query.where("status", "in", filter.statuses);
  if (filter.agent !== undefined) query = query.where("agent", "=", filter.agent);
  if (filter.quarantined === true) query = query.where("quarantined", "=", 1);
  if (filter.text !== undefined) {
    const search = await planSearch(db, filter.tenant, filter.text);
    query = query.where((eb) => matches(eb, filter.tenant, search));
  }
  const { after } = filter;
  if (after !== undefined) query = query.where((eb) => eb.and([eb("updated_at", "<=", after[0]), eb.or([eb("updated_at", "<", after[0]), eb("actor_id", ">", after[1])])]));
  return pageOfRows(await query.execute(), filter.limit, summaryOf, (row) => [row.updated_at, row.actor_id]);
}

export async function findSummary(db: ReadModel, actorId: string): Promise<SessionSummary | undefined> {
  const row = await db.selectFrom("sessions").selectAll().where("actor_id", "=", actorId).executeTakeFirst();
  return row === undefined ? undefined : summaryOf(row);
}

/** Sessions whose due time passed before `dueBeforeMs`, the longest overdue first, with when each was last nudged. */
export function overdueSessions(db: ReadModel, dueBeforeMs: number, limit: number): Promise<SessionRow[]> {
  return db.selectFrom("sessions").selectAll().where("next_due_at", "<", dueBeforeMs).where("status", "!=", "CLOSED").orderBy("next_due_at").limit(limit).execute();
}

/** Sessions with a question that was opened before then and of which what is to be shown never came, or went with an older database. */
export function unshownSessions(db: ReadModel, openedBeforeMs: number, limit: number): Promise<SessionRow[]> {
  const unshown = db.selectFrom("approvals").select("actor_id").where("pending", "is", null).whereRef("closed_pos", "<=", "opened_pos").where("opened_at", "<", openedBeforeMs);
  return db.selectFrom("sessions").selectAll().where("actor_id", "in", unshown).where("status", "!=", "CLOSED").orderBy("updated_at").limit(limit).execute();
}

export async function noteNudge(db: ReadModel, row: SessionRow, atMs: number): Promise<void> {
  await db.updateTable("sessions").set({ nudged_at: atMs, nudges: row.nudges + 1 }).where("actor_id", "=", row.actor_id).where("rev", "=", row.rev).execute();
}

function summaryOf(row: SessionRow): SessionSummary { return SessionSummary.parse(JSON.parse(row.summary)); }

/** Sessions at rest of one status in which nothing has happened since `beforeMs`, the oldest first. */
export async function idleSessions(db: ReadModel, status: "IDLE" | "CLOSED", beforeMs: number, limit: number): Promise<SessionRow[]> {
  return await db.selectFrom("sessions").selectAll().where("status", "=", status).where("updated_at", "<", beforeMs).where("next_due_at", "is", null).orderBy("updated_at").limit(limit).execute();
}

/** A session whose journal has become long, and up to where it is projected here. */
export interface LongJournal { readonly actor_id: string; readonly tenant: string; readonly session_id: string; readonly rev: number; readonly head_rev: number }

/** Sessions at rest that hold at least so many journal entries and were opened before `openedBeforeMs`, the longest untouched first. */
export async function longJournals(db: ReadModel, least: { readonly entries: number; readonly openedBeforeMs: number }, limit: number): Promise<LongJournal[]> {
  return await db.selectFrom("sessions").innerJoin("journal_heads", "journal_heads.actor_id", "sessions.actor_id")
    .select(["sessions.actor_id", "sessions.tenant", "sessions.session_id", "sessions.rev", "journal_heads.head_rev"])
    .where("status", "=", "IDLE").where("rev", ">=", least.entries).where("next_due_at", "is", null)
    .where(sql<boolean>`sessions.rev - sessions.journal_from_rev + 1 >= ${least.entries}`).where("created_at", "<", least.openedBeforeMs)
    .orderBy("updated_at").limit(limit).execute();
}
