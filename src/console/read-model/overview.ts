/** Owns: counting: what the console's navigation and its System page show at a glance. */
import { sql } from "kysely";
import type { ReadModel } from "./database.js";

export interface Overview {
  readonly sessions: Readonly<Record<string, number>>;
  readonly approvalsOpen: number;
  readonly deadLetters: number;
}

const total = sql<number>`count(*)`;

/** `orphans`: count dead letters without tenant too (admins see them). */
export async function overviewOf(db: ReadModel, tenant: string, orphans: boolean): Promise<Overview> {
  const sessions = await db.selectFrom("sessions").select(["status", total.as("n")]).where("tenant", "=", tenant).groupBy("status").execute();
  const approvals = await db.selectFrom("approvals").select(total.as("n")).where("tenant", "=", tenant).where("pending", "is not", null).whereRef("closed_pos", "<=", "opened_pos").executeTakeFirstOrThrow();
  const letters = await db.selectFrom("dead_letters").select(total.as("n")).where("state", "=", "dead")
    .where((eb) => eb.or([eb("tenant", "=", tenant), ...(orphans ? [eb("tenant", "is", null)] : [])])).executeTakeFirstOrThrow();
  return { sessions: Object.fromEntries(sessions.map((row) => [row.status, row.n])), approvalsOpen: approvals.n, deadLetters: letters.n };
}

/** How far the projection is behind what it knows of: sessions with a gap in their journal, entries missing in all, and sessions past their due time. */
export interface Behind { readonly gaps: number; readonly entriesMissing: number; readonly overdue: number }
export interface Projection extends Behind { readonly journals: number; /** Sessions with a time of their own to be looked at again. */ readonly due: number; readonly nextDueAtMs: number | null; readonly newestAtMs: number | null }

/** Every page asks for it: it reads what is behind, not what is there. */
export async function behindOf(db: ReadModel, overdueBeforeMs: number): Promise<Behind> {
  const gaps = await db.selectFrom("journal_heads").select([total.as("n"), sql<number | null>`sum(max_rev - head_rev)`.as("missing")]).whereRef("head_rev", "<", "max_rev").executeTakeFirstOrThrow();
  const overdue = await db.selectFrom("sessions").select(total.as("n")).where("next_due_at", "<", overdueBeforeMs).where("status", "!=", "CLOSED").executeTakeFirstOrThrow();
  return { gaps: gaps.n, entriesMissing: gaps.missing ?? 0, overdue: overdue.n };
}

export async function projectionOf(db: ReadModel, overdueBeforeMs: number): Promise<Projection> {
  const behind = await behindOf(db, overdueBeforeMs);
  const journals = await db.selectFrom("journal_heads").select(total.as("n")).executeTakeFirstOrThrow();
  const due = await db.selectFrom("sessions").select([total.as("n"), sql<number | null>`min(next_due_at)`.as("at")]).where("next_due_at", "is not", null).executeTakeFirstOrThrow();
  const newest = await db.selectFrom("sessions").select(sql<number | null>`max(updated_at)`.as("at")).executeTakeFirstOrThrow();
  return { ...behind, journals: journals.n, due: due.n, nextDueAtMs: due.at, newestAtMs: newest.at };
}
