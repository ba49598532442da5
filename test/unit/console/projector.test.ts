import fc from "fast-check";
import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import type { SessionView } from "../../../src/contracts/api.js";
import { parseEnvelope } from "../../../src/contracts/cloudevent.js";
import { APPROVAL_PENDING } from "../../../src/contracts/decisions.js";
import { JOURNAL_APPENDED, type JournalEntry, type SessionEvent } from "../../../src/contracts/journal.js";
import { createIntake } from "../../../src/console/intake/intake.js";
import { createProjector } from "../../../src/console/intake/projector.js";
import type { ReadModel } from "../../../src/console/read-model/database.js";
import { openReadModel } from "../../../src/console/read-model/open.js";
import { createLogger } from "../../../src/platform/log.js";
import { ACTOR, entryOf, FakePublisher, FakeSessions, journalMessage, messageOf, pendingOf, recordOf, START_MS, summaryOf } from "../../support/console-fakes.js";

const logger = createLogger("console", "silent");
const QUIET_MS = 5_000;
const opened = (id: string, version = 1): SessionEvent => ({ type: "ApprovalOpened", record: recordOf({ approvalId: id, version }) });
const decided = (id: string, final = true): SessionEvent => ({ type: "DecisionRecorded", approvalId: id, decisionId: `dec_${id}`, kind: "approve", principal: { id: "ann", class: "person", roles: [] }, via: "cli", final });
const expired = (id: string): SessionEvent => ({ type: "ApprovalExpired", approvalId: id, action: "reject" });
const withdrawn = (id: string): SessionEvent => ({ type: "ApprovalWithdrawn", approvalId: id, reason: "cancelled" });

function world() {
  const db = openReadModel(":memory:");
  const sessions = new FakeSessions();
  const tasks = new FakePublisher();
  const time = { ms: START_MS };
  const clock = { nowMs: () => time.ms };
  const projector = createProjector(db, sessions, { logger, clock, quietMs: QUIET_MS });
  const intake = createIntake(db, projector, { tasks, receipts: tasks, logger, clock });
  return { db, sessions, tasks, projector, intake, time };
}

async function tables(db: ReadModel) {
  return {
    sessions: await db.selectFrom("sessions").selectAll().orderBy("actor_id").execute(),
    approvals: await db.selectFrom("approvals").selectAll().orderBy("approval_id").execute(),
    heads: await db.selectFrom("journal_heads").select(["actor_id", "head_rev", "max_rev"]).orderBy("actor_id").execute(),
  };
}

/** A journal in which approvals open, are signed, re-open in a newer version, and close in each way. */
const HISTORY: JournalEntry[] = [
  entryOf(1, [opened("apr_1"), opened("apr_2")]), entryOf(2, [decided("apr_1", false)]), entryOf(3, [decided("apr_1"), opened("apr_3")]),
  entryOf(4, [expired("apr_2"), opened("apr_4")]), entryOf(5, [withdrawn("apr_3")]), entryOf(6, [withdrawn("apr_4"), opened("apr_4", 2)]), entryOf(7, [opened("apr_5"), withdrawn("apr_5")]),
];
const PENDING = [pendingOf(recordOf({ approvalId: "apr_1" })), pendingOf(recordOf({ approvalId: "apr_2" })), pendingOf(recordOf({ approvalId: "apr_4" })), pendingOf(recordOf({ approvalId: "apr_4", version: 2 }), { args: '{"amount":60}' })];

type Delivery = { kind: "journal"; index: number } | { kind: "pending"; index: number };
const ALL: Delivery[] = [...HISTORY.map((_, index) => ({ kind: "journal" as const, index })), ...PENDING.map((_, index) => ({ kind: "pending" as const, index }))];
const textOf = (delivery: Delivery): string => delivery.kind === "journal"
  ? journalMessage(HISTORY[delivery.index]!, { waitingFor: `rev ${String(delivery.index + 1)}` })
  : messageOf(APPROVAL_PENDING, PENDING[delivery.index], { id: `p${String(delivery.index)}` });

async function run(deliveries: readonly Delivery[], sessionsAnswer: boolean, repair = true) {
  const { db, sessions, intake, projector } = world();
  sessions.journals.set(ACTOR, HISTORY);
  sessions.down = !sessionsAnswer;
  for (const delivery of deliveries) expect(await (delivery.kind === "journal" ? intake.handleJournal(textOf(delivery)) : intake.handleApprovalPending(textOf(delivery)))).toBe("SUCCESS");
  sessions.down = false;
  if (repair) await projector.repairGaps(10);
  const result = await tables(db);
  await db.destroy();
  return result;
}

describe("the projector", () => {
  it("ends with the state of each approval", async () => {
    const { approvals, heads, sessions } = await run(ALL, true);
    expect(approvals.map((row) => [row.approval_id, row.closed_pos > row.opened_pos ? row.closed_as : "open", row.version, row.decided_by])).toEqual([
      ["apr_1", "decided", 1, "ann"], ["apr_2", "expired", 1, null], ["apr_3", "withdrawn", 1, null], ["apr_4", "open", 2, null], ["apr_5", "withdrawn", 1, null],
    ]);
    expect(heads).toEqual([{ actor_id: ACTOR, head_rev: 7, max_rev: 7 }]);
    expect(sessions[0]).toMatchObject({ rev: 7 });
  });

  it("any order, any repetition, whether sessions answer or not: the same read model", async () => {
    const expected = await run(ALL, true);
    await fc.assert(fc.asyncProperty(fc.shuffledSubarray(ALL, { minLength: ALL.length }), fc.array(fc.constantFrom(...ALL), { maxLength: 8 }), fc.boolean(), fc.nat(30), async (order, repeated, answers, at) => {
      const deliveries = [...order.slice(0, at), ...repeated, ...order.slice(at)];
      expect(await run(deliveries, answers)).toEqual(expected);
    }), { numRuns: 60 });
  }, 30_000);

  it("entries that come together in one message count like those that come alone, and one that does not fit does not stop the others", async () => {
    const expected = await run(ALL, true);
    const { db, intake } = world();
    const items = HISTORY.map((_, index) => (JSON.parse(parseEnvelope(textOf({ kind: "journal", index })).data) as { appended: unknown[] }).appended[0]);
    for (const [index] of PENDING.entries()) await intake.handleApprovalPending(textOf({ kind: "pending", index }));
    expect(await intake.handleJournal(messageOf(JOURNAL_APPENDED, { appended: [items[0], { entry: { rev: "two" } }, ...items.slice(1)] }))).toBe("SUCCESS");
    expect(await tables(db)).toEqual(expected);
    const letters = await db.selectFrom("dead_letters").selectAll().execute();
    expect(letters).toHaveLength(1);
    const { payload } = JSON.parse(letters[0]!.letter) as { payload: string };
    expect(JSON.parse(parseEnvelope(payload).data), "the letter is a message of that entry alone").toEqual({ appended: [{ entry: { rev: "two" } }] });
    await db.destroy();
  });

  it("lost entries are read from the session: of all deliveries the last one is enough", async () => {
    const all = await run(ALL, true);
    const last = await run(ALL.filter((d) => d.kind === "pending" || d.index === HISTORY.length - 1), true);
    expect(last).toEqual(all);
  });

  it("reads nothing from the session while entries come in order", async () => {
    const { sessions, intake, db } = world();
    for (const [index] of HISTORY.entries()) await intake.handleJournal(textOf({ kind: "journal", index }));
    expect(sessions.journalReads).toBe(0);
    await db.destroy();
  });

  it("a gap whose entries are gone for ever is given up instead of asked for again and again", async () => {
    const { sessions, intake, projector, db } = world();
    await intake.handleJournal(journalMessage(entryOf(50, [opened("apr_9")])));
    expect(sessions.journalReads).toBe(1);
    await projector.repairGaps(10);
    expect(sessions.journalReads).toBe(1);
    expect((await tables(db)).heads).toEqual([{ actor_id: ACTOR, head_rev: 50, max_rev: 50 }]);
    await db.destroy();
  });
});

describe("the end of a journal that never arrived", () => {
  const viewAt = (rev: number): SessionView => ({ summary: summaryOf({ rev, updatedAtMs: START_MS + rev, waitingFor: `rev ${String(rev)}` }), approvals: [], recentRuns: [], unknownCalls: [] });

  it("is read from the session once that has been quiet, and the check is then done with", async () => {
    const expected = await run(ALL, true);
    const { db, sessions, intake, projector, time } = world();
    sessions.journals.set(ACTOR, HISTORY);
    sessions.views.set(ACTOR, viewAt(HISTORY.length));
    for (const delivery of ALL.filter((d) => d.kind === "pending" || d.index < 3)) await (delivery.kind === "journal" ? intake.handleJournal(textOf(delivery)) : intake.handleApprovalPending(textOf(delivery)));
    time.ms += QUIET_MS - 1;
    await projector.checkHeads(10);
    expect((await tables(db)).heads).toEqual([{ actor_id: ACTOR, head_rev: 3, max_rev: 3 }]);
    time.ms += 1;
    await projector.checkHeads(10);
    expect(await tables(db)).toEqual(expected);
    expect(await db.selectFrom("journal_checks").selectAll().execute()).toEqual([]);
    await db.destroy();
  });

  it("is asked for again while the session does not answer, and not at all where nothing moved", async () => {
    const { db, sessions, intake, projector, time } = world();
    sessions.journals.set(ACTOR, HISTORY.slice(0, 2));
    sessions.views.set(ACTOR, viewAt(2));
    await intake.handleJournal(textOf({ kind: "journal", index: 0 }));
    time.ms += QUIET_MS;
    sessions.down = true;
    await projector.checkHeads(10);
    sessions.down = false;
    await projector.checkHeads(10);
    expect((await tables(db)).sessions[0]?.rev, "its next try is a quiet time away").toBe(1);
    time.ms += QUIET_MS;
    await projector.checkHeads(10);
    expect((await tables(db)).sessions[0]?.rev).toBe(2);
    expect(await db.selectFrom("journal_checks").selectAll().execute()).toEqual([]);
    await db.destroy();
  });

  it("is looked for at the start of a console that was away, in the sessions that moved last", async () => {
    const { db, sessions, intake, projector, time } = world();
    sessions.journals.set(ACTOR, HISTORY.slice(0, 2));
    sessions.views.set(ACTOR, viewAt(1));
    await intake.handleJournal(textOf({ kind: "journal", index: 0 }));
    time.ms += QUIET_MS;
    await projector.checkHeads(10);
    sessions.views.set(ACTOR, viewAt(2));
    await projector.checkRecent(60_000);
    time.ms += QUIET_MS;
    await projector.checkHeads(10);
    expect((await tables(db)).sessions[0]?.rev).toBe(2);
    await db.destroy();
  });
});

describe("deliveries", () => {
  it("each publication of a pending approval gets its own receipt", async () => {
    const { tasks, intake, db } = world();
    await intake.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf(), { id: "p1" }));
    await intake.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf(), { id: "p2" }));
    expect(tasks.sent.map((e) => [e.id, e.type, e.subject, e.data])).toEqual(["p1", "p2"].map((id) => [`received:${id}`, "com.docket.approval.received.v1", "ord-1", '{"approvalId":"apr_1","version":1}']));
    await db.destroy();
  });

  it("a receipt that cannot be sent makes the delivery come again", async () => {
    const { tasks, intake, db } = world();
    tasks.down = true;
    expect(await intake.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf()))).toBe("RETRY");
    await db.destroy();
  });

  it("what does not fit is kept as a dead letter and never blocks; a closed database is a RETRY", async () => {
    const { intake, db } = world();
    for (const text of ["", "{", "\u0000\ufffd", messageOf("com.docket.journal.appended.v1", { entry: 1 }), `{"a":"${"x".repeat(300_000)}"}`, "[".repeat(1000)]) {
      expect(await intake.handleJournal(text)).toBe("SUCCESS");
      expect(await intake.handleApprovalPending(text)).toBe("SUCCESS");
      expect(await intake.handleDeadLetter(text)).toBe("SUCCESS");
    }
    expect((await db.selectFrom("dead_letters").selectAll().execute()).length).toBeGreaterThan(4);
    expect((await tables(db)).sessions).toEqual([]);
    await db.destroy();
    expect(await intake.handleDeadLetter("x")).toBe("RETRY");
    expect(await intake.handleJournal(journalMessage(entryOf(1, []), summaryOf()))).toBe("RETRY");
  });
});

describe("how far the lists are behind", () => {
  it("counts from the oldest entry that the database did not take, until it takes one again", async () => {
    const { db, projector, intake, time } = world();
    await sql`create trigger held before insert on journal_heads begin select raise(abort, 'held back'); end`.execute(db);
    expect(projector.heldSinceMs()).toBeUndefined();
    for (const [index, entry] of HISTORY.slice(0, 2).entries()) {
      time.ms = entry.atMs + 60_000 * (index + 1);
      expect(await intake.handleJournal(journalMessage(entry))).toBe("RETRY");
      expect(projector.heldSinceMs()).toBe(HISTORY[0]?.atMs);
    }
    await sql`drop trigger held`.execute(db);
    expect(await intake.handleJournal(journalMessage(HISTORY[0]!))).toBe("SUCCESS");
    expect(projector.heldSinceMs()).toBeUndefined();
  });
});
