/** Owns: the sessions table: what lists show of each session, the newest revision winning. */
import { sql, type Kysely } from "kysely";
import { SessionSummary } from "../../contracts/journal.js";
import type { ReadModel, SessionRow, Tables } from "./database.js";
import { pageOfRows, type Page, type PageRequest } from "./page.js";

export interface SessionFilter extends PageRequest {
  readonly tenant: string; readonly statuses?: readonly string[] | undefined; readonly agent?: string | undefined;
  readonly quarantined?: boolean;
  /** Part of the session id. */
  readonly text?: string | undefined;
}

/** Takes a summary over unless a newer one is there. */
export async function putSummary(db: Kysely<Tables>, summary: SessionSummary): Promise<void> {
  const columns = {
    tenant: summary.tenant, session_id: summary.sessionId, agent: summary.agent, status: summary.status, rev: summary.rev, updated_at: summary.updatedAtMs,
    next_due_at: summary.nextDueAtMs ?? null, summary: JSON.stringify(summary), nudged_at: null, nudges: 0,
  };
  await db.insertInto("sessions").values({ actor_id: summary.actorId, ...columns })
    .onConflict((oc) => oc.column("actor_id").doUpdateSet(columns).where("sessions.rev", "<", summary.rev)).execute();
}

export async function listSessions(db: ReadModel, filter: SessionFilter): Promise<Page<SessionSummary>> {
  let query = db.selectFrom("sessions").selectAll().where("tenant", "=", filter.tenant).orderBy("updated_at", "desc").orderBy("actor_id").limit(filter.limit + 1);
  query = filter.statuses === undefined ? query.where("status", "!=", "DELETED") : query.where("status", "in", filter.statuses);
  if (filter.agent !== undefined) query = query.where("agent", "=", filter.agent);
  if (filter.quarantined === true) query = query.where(sql<boolean>`json_extract(summary, '$.quarantine.reason') is not null`);
  if (filter.text !== undefined) query = query.where(sql<boolean>`instr(lower(session_id), ${filter.text.toLowerCase()}) > 0`);
  const { after } = filter;
  if (after !== undefined) query = query.where((eb) => eb.or([eb("updated_at", "<", after[0]), eb.and([eb("updated_at", "=", after[0]), eb("actor_id", ">", after[1])])]));
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

export async function noteNudge(db: ReadModel, row: SessionRow, atMs: number): Promise<void> {
  await db.updateTable("sessions").set({ nudged_at: atMs, nudges: row.nudges + 1 }).where("actor_id", "=", row.actor_id).where("rev", "=", row.rev).execute();
}

function summaryOf(row: SessionRow): SessionSummary { return SessionSummary.parse(JSON.parse(row.summary)); }

/** Sessions at rest of one status in which nothing has happened since `beforeMs`, the oldest first. */
export async function idleSessions(db: ReadModel, status: "IDLE" | "CLOSED", beforeMs: number, limit: number): Promise<SessionRow[]> {
  return await db.selectFrom("sessions").selectAll().where("status", "=", status).where("updated_at", "<", beforeMs).where("next_due_at", "is", null).orderBy("updated_at").limit(limit).execute();
}
