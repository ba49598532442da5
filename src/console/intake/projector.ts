/**
 * Owns: folding journal entries into the read model. Sessions and approvals win by revision, so that any order, gaps and repetitions lead to
 * the same rows, and they are shown at once. Runs, calls, costs and words are sums: an entry is taken exactly once, in order, in the transaction that
 * moves the session's head. A gap is closed by reading from the session itself; while that fails it is remembered, and
 * `repairGaps` tries again. A lost last entry leaves no gap (the sidecar can ack what a dying console never got, DESIGN 7.10): so a
 * session that has gone quiet is asked once how far its journal reaches. All journals read again is nothing but a gap of each.
 */
import { sql, type Kysely } from "kysely";
import type { JournalAppended, JournalEntry, SessionEvent, SessionSummary } from "../../contracts/journal.js";
import type { Clock } from "../../platform/clock.js";
import { errorFields, type Logger } from "../../platform/log.js";
import { count } from "../../platform/telemetry/metrics.js";
import type { Sessions } from "../ports.js";
import { approvalEventOf } from "./approval-events.js";
import { positionOf, putApprovalEvent, putAssignment, putClosing, putOpening, putSnooze } from "../read-model/approvals.js";
import type { JournalCheckRow, ReadModel, Tables } from "../read-model/database.js";
import { sharesRows } from "../read-model/open.js";
import { headsOf, putHeads, type Head } from "../read-model/heads.js";
import { History, type Owner } from "../read-model/history.js";
import { insertMissing, mergeRows } from "../read-model/bulk.js";
import { putSummaries } from "../read-model/sessions.js";

const PAGE = 200;
/** Journals read at once. */
const READERS = 8;

export interface Projector {
  /** All of it or, where the database fails, nothing. */
  project(batch: readonly JournalAppended[]): Promise<void>;
  /** Tries to close the gaps that are left, those that failed longest ago first; at most `limit` sessions. Returns how many were closed. */
  repairGaps(limit: number): Promise<number>;
  /** Compares sessions that have gone quiet with their journals; at most `limit`. A session that cannot be read is tried again after the quiet time. */
  checkHeads(limit: number): Promise<void>;
  /** Has every session checked that moved in the `sinceMs` before the newest entry: for a console that starts again. */
  checkRecent(sinceMs: number): Promise<void>;
  /** How long after its commit the newest entry of the latest batch was in the lists; undefined before the first. */
  lagMs(): number | undefined;
  /** When that batch was taken. */
  tookAtMs(): number | undefined;
  /** Commit of the oldest entry that the database did not take, as long as it takes none; what a stuck projector's lag counts from. */
  heldSinceMs(): number | undefined;
}

export function createProjector(db: ReadModel, sessions: Pick<Sessions, "readJournal" | "readSession">, deps: { readonly logger: Logger; readonly clock: Clock; readonly quietMs: number }): Projector {
  const { logger, clock, quietMs } = deps;
  let lagMs: number | undefined;
  let tookAtMs: number | undefined;
  let heldSinceMs: number | undefined;
  const checkHead = async ({ actor_id, due_at }: JournalCheckRow): Promise<void> => {
    try {
      const shown = (await headsOf(db, [actor_id])).get(actor_id)?.max_rev ?? 0;
      const summary = (await sessions.readSession(actor_id))?.summary;
      if (summary !== undefined && summary.rev > shown) {
        logger.info({ actorId: actor_id, shown, is: summary.rev }, "a session's last journal entries had not arrived; they are read from the session");
        await putHeads(db, [{ actor_id, head_rev: 0, max_rev: summary.rev }]);
        await closeGap(db, sessions, actor_id);
        await putSummaries(db, [summary]);
      }
      await db.deleteFrom("journal_checks").where("actor_id", "=", actor_id).where("due_at", "=", due_at).execute();
    } catch (error) {
      logger.warn({ actorId: actor_id, ...errorFields(error) }, "a session's journal could not be checked for now");
      await checkLater(db, [actor_id], clock.nowMs() + quietMs);
    }
  };
  const catchUp = async (actorId: string): Promise<boolean> => {
    try {
      await closeGap(db, sessions, actorId);
      return true;
    } catch (error) {
      logger.warn({ actorId, ...errorFields(error) }, "a gap in a session's journal stays open for now");
      await db.updateTable("journal_heads").set({ tried_at: clock.nowMs() }).where("actor_id", "=", actorId).execute();
      return false;
    }
  };
  /** Returns the sessions that have a gap then. */
  const store = async (batch: readonly JournalAppended[]): Promise<string[]> => {
    const journals = inOrder(batch);
    const actorIds = [...journals.keys()].sort();
    const gaps: string[] = [];
    await db.transaction().execute(async (trx) => {
      const heads = await lockedHeads(trx, actorIds, sharesRows(db));
      const history = new History();
      const moved = actorIds.map((actorId) => {
        const { entries = [], summary } = journals.get(actorId) ?? {};
        const owner = { actorId, tenant: summary?.tenant ?? "", agent: summary?.agent ?? "" };
        const before = heads.get(actorId) ?? newHead(actorId);
        if (before.head_rev === 0) history.begin(owner, summary?.sessionId ?? "");
        const head = take(history, before, owner, entries);
        if (head.head_rev < head.max_rev) gaps.push(actorId);
        return head;
      });
      for (const { entry } of batch) await applyToApprovals(trx, entry);
      await history.write(trx);
      await putSummaries(trx, actorIds.flatMap((actorId) => journals.get(actorId)?.summary ?? []));
      await putHeads(trx, moved);
      await checkLater(trx, actorIds, clock.nowMs() + quietMs);
    });
    return gaps;
  };
  return {
    async project(batch) {
      const gaps = await store(batch).catch((error: unknown) => {
        heldSinceMs ??= Math.min(...batch.map(({ entry }) => entry.atMs));
        throw error;
      });
      heldSinceMs = undefined;
      count("docket.projector.entries", batch.length);
      tookAtMs = clock.nowMs();
      lagMs = Math.max(0, tookAtMs - Math.max(...batch.map(({ entry }) => entry.atMs)));
      for (const actorId of gaps) await catchUp(actorId);
    },
    async repairGaps(limit) {
      const gaps = await db.selectFrom("journal_heads").select("actor_id").whereRef("head_rev", "<", "max_rev").orderBy("tried_at").limit(limit).execute();
      let closed = 0;
      const queue = gaps.map((gap) => gap.actor_id);
      await Promise.all(Array.from({ length: READERS }, async () => {
        for (let actorId = queue.shift(); actorId !== undefined; actorId = queue.shift()) if (await catchUp(actorId)) closed += 1;
      }));
      return closed;
    },
    async checkHeads(limit) {
      const due = await db.selectFrom("journal_checks").selectAll().where("due_at", "<=", clock.nowMs()).orderBy("due_at").limit(limit).execute();
      for (const row of due) await checkHead(row);
    },
    async checkRecent(sinceMs) {
      const newest = await db.selectFrom("sessions").select(({ fn }) => fn.max("updated_at").as("at")).executeTakeFirst();
      const dueAtMs = clock.nowMs() + quietMs;
      await db.insertInto("journal_checks").columns(["actor_id", "due_at"])
        .expression(db.selectFrom("sessions").select(["actor_id", sql<number>`cast(${dueAtMs} as bigint)`.as("due_at")]).where("updated_at", ">=", (newest?.at ?? 0) - sinceMs))
        .onConflict((oc) => oc.doNothing()).execute();
    },
    lagMs: () => lagMs,
    tookAtMs: () => tookAtMs,
    heldSinceMs: () => heldSinceMs,
  };
}

/** Each session's entries in order, and its newest summary. */
function inOrder(batch: readonly JournalAppended[]): Map<string, { readonly entries: JournalEntry[]; summary: SessionSummary }> {
  const journals = new Map<string, { readonly entries: JournalEntry[]; summary: SessionSummary }>();
  for (const { entry, summary } of batch) {
    const known = journals.get(entry.actorId);
    if (known === undefined) journals.set(entry.actorId, { entries: [entry], summary });
    else {
      known.entries.push(entry);
      if (summary.rev > known.summary.rev) known.summary = summary;
    }
  }
  for (const { entries } of journals.values()) entries.sort((a, b) => a.rev - b.rev);
  return journals;
}

/** Takes what continues the head; what is above a gap waits for its closing. */
function take(history: History, head: Head, owner: Owner, entries: readonly JournalEntry[]): Head {
  let { head_rev, max_rev } = head;
  for (const entry of entries) {
    if (entry.rev === head_rev + 1) {
      history.take(owner, entry);
      head_rev = entry.rev;
    }
    max_rev = Math.max(max_rev, entry.rev);
  }
  return { actor_id: head.actor_id, head_rev, max_rev };
}

async function lockedHeads(trx: Kysely<Tables>, actorIds: readonly string[], shared: boolean): Promise<Map<string, Head>> {
  await insertMissing(trx, "journal_heads", ["actor_id"], actorIds.map((actor_id) => ({ actor_id, head_rev: 0, max_rev: 0 })));
  return headsOf(trx, actorIds, shared);
}

async function checkLater(db: Kysely<Tables>, actorIds: readonly string[], dueAtMs: number): Promise<void> {
  await mergeRows(db, "journal_checks", ["actor_id"], actorIds.map((actor_id) => ({ actor_id, due_at: dueAtMs })));
}

async function closeGap(db: ReadModel, sessions: Pick<Sessions, "readJournal">, actorId: string): Promise<void> {
  for (;;) {
    const head = (await headsOf(db, [actorId])).get(actorId) ?? newHead(actorId);
    if (head.head_rev >= head.max_rev) return;
    const entries = (await sessions.readJournal(actorId, head.head_rev, PAGE))?.entries ?? [];
    const last = entries[entries.length - 1]?.rev ?? 0;
    // Entries that no longer exist (retention, a deleted session) will not come: what is known stands.
    const reached = last > head.head_rev ? last : head.max_rev;
    await db.transaction().execute(async (trx) => {
      const current = (await lockedHeads(trx, [actorId], sharesRows(db))).get(actorId) ?? head;
      const session = await trx.selectFrom("sessions").select(["tenant", "agent", "session_id"]).where("actor_id", "=", actorId).executeTakeFirst();
      const owner = { actorId, tenant: session?.tenant ?? "", agent: session?.agent ?? "" };
      const history = new History();
      if (current.head_rev === 0) history.begin(owner, session?.session_id ?? "");
      for (const entry of entries) {
        await applyToApprovals(trx, entry);
        if (entry.rev > current.head_rev) history.take(owner, entry);
      }
      await history.write(trx);
      await putHeads(trx, [{ actor_id: actorId, head_rev: reached, max_rev: reached }]);
    });
  }
}

function newHead(actorId: string): Head { return { actor_id: actorId, head_rev: 0, max_rev: 0 }; }

async function applyToApprovals(db: Kysely<Tables>, entry: JournalEntry): Promise<void> {
  for (const [index, event] of entry.events.entries()) await applyEvent(db, entry, event, positionOf(entry.rev, index));
}

async function applyEvent(db: Kysely<Tables>, entry: JournalEntry, event: SessionEvent, position: number): Promise<void> {
  const closing = { actorId: entry.actorId, position, atMs: entry.atMs };
  const told = approvalEventOf(entry, event);
  if (told !== undefined) await putApprovalEvent(db, told.approvalId, position, told.line);
  if (event.type === "ApprovalAssigned") await putAssignment(db, event.approvalId, position, event.to);
  else if (event.type === "ApprovalSnoozed") await putSnooze(db, event.approvalId, position, event.untilMs);
  if (event.type === "ApprovalOpened" || event.type === "Escalated") await putOpening(db, entry.actorId, position, event.record);
  else if (event.type === "DecisionRecorded" && event.final) await putClosing(db, { ...closing, approvalId: event.approvalId, as: "decided", by: event.principal.id, decision: event.kind });
  else if (event.type === "ApprovalExpired") await putClosing(db, { ...closing, approvalId: event.approvalId, as: "expired", decision: event.action });
  else if (event.type === "ApprovalWithdrawn") await putClosing(db, { ...closing, approvalId: event.approvalId, as: "withdrawn", decision: event.reason });
}
