/**
 * Owns: folding journal entries into the read model. Each entry's changes win by revision, so that any order, gaps and
 * repetitions lead to the same tables. A gap is closed by reading the missing entries from the session itself; while
 * that fails the gap is remembered, and `repairGaps` tries again. A lost last entry leaves no gap (the sidecar can ack what
 * a dying console never got, DESIGN 7.10): so a session that has gone quiet is asked once how far its journal reaches.
 */
import { sql, type Kysely } from "kysely";
import type { JournalAppended, JournalEntry, SessionEvent, SessionSummary } from "../../contracts/journal.js";
import type { Clock } from "../../platform/clock.js";
import { errorFields, type Logger } from "../../platform/log.js";
import type { Sessions } from "../ports.js";
import { positionOf, putClosing, putOpening } from "../read-model/approvals.js";
import type { JournalCheckRow, JournalHeadRow, ReadModel, Tables } from "../read-model/database.js";
import { putSummary } from "../read-model/sessions.js";

const PAGE = 200;

export interface Projector {
  /** All of it or, where the database fails, nothing. */
  project(batch: readonly JournalAppended[]): Promise<void>;
  /** Tries to close the gaps that are left; at most `limit` sessions. */
  repairGaps(limit: number): Promise<void>;
  /** Compares sessions that have gone quiet with their journals; at most `limit`. A session that cannot be read is tried again after the quiet time. */
  checkHeads(limit: number): Promise<void>;
  /** Has every session checked that moved in the `sinceMs` before the newest entry: for a console that starts again. */
  checkRecent(sinceMs: number): Promise<void>;
}

export function createProjector(db: ReadModel, sessions: Pick<Sessions, "readJournal" | "readSession">, deps: { readonly logger: Logger; readonly clock: Clock; readonly quietMs: number }): Projector {
  const { logger, clock, quietMs } = deps;
  const checkHead = async ({ actor_id, due_at }: JournalCheckRow): Promise<void> => {
    try {
      const { max_rev } = await headOf(db, actor_id);
      const summary = (await sessions.readSession(actor_id))?.summary;
      if (summary !== undefined && summary.rev > max_rev) {
        logger.info({ actorId: actor_id, shown: max_rev, is: summary.rev }, "a session's last journal entries had not arrived; they are read from the session");
        await db.updateTable("journal_heads").set({ max_rev: sql<number>`max(max_rev, ${summary.rev})` }).where("actor_id", "=", actor_id).execute();
        await closeGap(db, sessions, actor_id);
        await putSummary(db, summary);
      }
      await db.deleteFrom("journal_checks").where("actor_id", "=", actor_id).where("due_at", "=", due_at).execute();
    } catch (error) {
      logger.warn({ actorId: actor_id, ...errorFields(error) }, "a session's journal could not be checked for now");
      await checkLater(db, actor_id, clock.nowMs() + quietMs);
    }
  };
  const catchUp = async (actorId: string): Promise<void> => {
    try {
      await closeGap(db, sessions, actorId);
    } catch (error) {
      logger.warn({ actorId, ...errorFields(error) }, "a gap in a session's journal stays open for now");
    }
  };
  return {
    async project(batch) {
      const heads = new Map<string, JournalHeadRow>();
      await db.transaction().execute(async (trx) => {
        for (const { entry } of batch) {
          await applyEntry(trx, entry);
          heads.set(entry.actorId, advanced(heads.get(entry.actorId) ?? await headOf(trx, entry.actorId), entry.rev));
        }
        for (const summary of newestOf(batch)) await putSummary(trx, summary);
        for (const head of heads.values()) {
          await putHead(trx, head);
          await checkLater(trx, head.actor_id, clock.nowMs() + quietMs);
        }
      });
      for (const head of heads.values()) if (head.head_rev < head.max_rev) await catchUp(head.actor_id);
    },
    async repairGaps(limit) {
      const gaps = await db.selectFrom("journal_heads").selectAll().whereRef("head_rev", "<", "max_rev").limit(limit).execute();
      for (const gap of gaps) await catchUp(gap.actor_id);
    },
    async checkHeads(limit) {
      const due = await db.selectFrom("journal_checks").selectAll().where("due_at", "<=", clock.nowMs()).orderBy("due_at").limit(limit).execute();
      for (const row of due) await checkHead(row);
    },
    async checkRecent(sinceMs) {
      const newest = await db.selectFrom("sessions").select(({ fn }) => fn.max("updated_at").as("at")).executeTakeFirst();
      const dueAtMs = clock.nowMs() + quietMs;
      await db.insertInto("journal_checks").columns(["actor_id", "due_at"])
        .expression(db.selectFrom("sessions").select(["actor_id", sql<number>`${dueAtMs}`.as("due_at")]).where("updated_at", ">=", (newest?.at ?? 0) - sinceMs))
        .onConflict((oc) => oc.doNothing()).execute();
    },
  };
}

async function checkLater(db: Kysely<Tables>, actorId: string, dueAtMs: number): Promise<void> {
  await db.insertInto("journal_checks").values({ actor_id: actorId, due_at: dueAtMs }).onConflict((oc) => oc.column("actor_id").doUpdateSet({ due_at: dueAtMs })).execute();
}

async function closeGap(db: ReadModel, sessions: Pick<Sessions, "readJournal">, actorId: string): Promise<void> {
  for (;;) {
    const head = await headOf(db, actorId);
    if (head.head_rev >= head.max_rev) return;
    const page = await sessions.readJournal(actorId, head.head_rev, PAGE);
    const entries = page?.entries ?? [];
    const last = entries[entries.length - 1]?.rev ?? 0;
    // Entries that no longer exist (retention, a deleted session) will not come: what is known stands.
    const reached = last > head.head_rev ? last : head.max_rev;
    await db.transaction().execute(async (trx) => {
      for (const entry of entries) await applyEntry(trx, entry);
      await trx.updateTable("journal_heads").set({ head_rev: sql<number>`max(head_rev, ${reached})`, max_rev: sql<number>`max(max_rev, ${reached})` }).where("actor_id", "=", actorId).execute();
    });
  }
}

function advanced(head: JournalHeadRow, rev: number): JournalHeadRow {
  return { actor_id: head.actor_id, head_rev: rev === head.head_rev + 1 ? rev : head.head_rev, max_rev: Math.max(head.max_rev, rev) };
}

async function putHead(db: Kysely<Tables>, { actor_id, ...revs }: JournalHeadRow): Promise<void> {
  await db.insertInto("journal_heads").values({ actor_id, ...revs }).onConflict((oc) => oc.column("actor_id").doUpdateSet(revs)).execute();
}

/** One summary of each session. */
function newestOf(batch: readonly JournalAppended[]): SessionSummary[] {
  const newest = new Map<string, SessionSummary>();
  for (const { summary } of batch) if (summary.rev > (newest.get(summary.actorId)?.rev ?? 0)) newest.set(summary.actorId, summary);
  return [...newest.values()];
}

async function headOf(db: Kysely<Tables>, actorId: string): Promise<JournalHeadRow> {
  const row = await db.selectFrom("journal_heads").selectAll().where("actor_id", "=", actorId).executeTakeFirst();
  return row ?? { actor_id: actorId, head_rev: 0, max_rev: 0 };
}

async function applyEntry(db: Kysely<Tables>, entry: JournalEntry): Promise<void> {
  for (const [index, event] of entry.events.entries()) await applyEvent(db, entry, event, positionOf(entry.rev, index));
}

/** The events that change what lists show; the summary carries the rest. */
async function applyEvent(db: Kysely<Tables>, entry: JournalEntry, event: SessionEvent, position: number): Promise<void> {
  const closing = { actorId: entry.actorId, position, atMs: entry.atMs };
  if (event.type === "ApprovalOpened" || event.type === "Escalated") await putOpening(db, entry.actorId, position, event.record);
  else if (event.type === "DecisionRecorded" && event.final) await putClosing(db, { ...closing, approvalId: event.approvalId, as: "decided", by: event.principal.id, decision: event.kind });
  else if (event.type === "ApprovalExpired") await putClosing(db, { ...closing, approvalId: event.approvalId, as: "expired", decision: event.action });
  else if (event.type === "ApprovalWithdrawn") await putClosing(db, { ...closing, approvalId: event.approvalId, as: "withdrawn", decision: event.reason });
}
