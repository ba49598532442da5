/** Owns: the sessions table: what lists show of each session, the newest revision winning. */
import { sql, type ExpressionBuilder, type Kysely, type SelectQueryBuilder } from "kysely";
import { SessionSummary } from "../../contracts/journal.js";
import { chunked } from "./bulk.js";
import type { ReadModel, SessionRow, Tables } from "./database.js";
import { sharesRows } from "./open.js";
import { pageOfRows, type Page, type PageRequest } from "./page.js";
import { holdsAll, matches, planSearch } from "./words.js";

const PER_STATEMENT = 500;
/** So many of the newest sessions are looked through for words that are common. */
const WALK = 1_000;

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
  return pageOfRows(await rowsFor(db, filter), filter.limit, summaryOf, (row) => [row.updated_at, row.actor_id]);
}

async function rowsFor(db: ReadModel, filter: SessionFilter): Promise<SessionRow[]> {
  const all = (): SelectQueryBuilder<Tables, "sessions", SessionRow> => db.selectFrom("sessions").selectAll().orderBy("updated_at", "desc").orderBy("actor_id");
  const page = all().where(fits(filter)).limit(filter.limit + 1);
  if (filter.text === undefined) return await page.execute();
  const search = await planSearch(db, filter.tenant, filter.text);
  if (search.rare !== undefined || search.words.length === 0 || !sharesRows(db)) return await page.where(matches(db, filter.tenant, search)).execute();
  // PostgreSQL looks each session of a walk up for 10 to 60 µs, and cannot know how far it has to walk where a word and the rest seldom or never go
  // together. So a walk ends after some; where they did not fill the page, what fits and what has the words are made whole and laid over each other.
  const newest = db.selectFrom("sessions").select(["actor_id", "updated_at"]).where(fits(filter)).orderBy("updated_at", "desc").orderBy("actor_id").limit(WALK);
  const walked = await all().where("actor_id", "in", db.selectFrom(newest.as("sessions")).select("sessions.actor_id").where(matches(db, filter.tenant, search)).orderBy("updated_at", "desc").orderBy("actor_id").limit(filter.limit + 1)).execute();
  if (walked.length > filter.limit) return walked;
  const found = db.selectFrom("sessions").select(["actor_id", "updated_at"]).where(fits(filter)).where(holdsAll(db, filter.tenant, search.words));
  return await db.with((cte) => cte("found").materialized(), () => found).selectFrom("sessions").selectAll("sessions")
    .where("sessions.actor_id", "in", (eb) => eb.selectFrom("found").select("found.actor_id").orderBy("found.updated_at", "desc").orderBy("found.actor_id").limit(filter.limit + 1))
    .orderBy("sessions.updated_at", "desc").orderBy("sessions.actor_id").execute();
}

/** All of the filter but its text. */
function fits({ tenant, statuses, agent, quarantined, after }: SessionFilter) {
  return (eb: ExpressionBuilder<Tables, "sessions">): ReturnType<typeof eb.and> => eb.and([
    eb("tenant", "=", tenant), statuses === undefined ? eb("status", "!=", "DELETED") : eb("status", "in", statuses),
    ...(agent === undefined ? [] : [eb("agent", "=", agent)]), ...(quarantined === true ? [eb("quarantined", "=", 1)] : []),
    ...(after === undefined ? [] : [eb("updated_at", "<=", after[0]), eb.or([eb("updated_at", "<", after[0]), eb("actor_id", ">", after[1])])]),
  ]);
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
