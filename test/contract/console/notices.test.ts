/** The outbox of notices, the same on SQLite and on PostgreSQL: nothing is lost or made twice, by a crash at any place or by several consoles. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JournalAppended, SessionEvent } from "../../../src/contracts/journal.js";
import { createProjector } from "../../../src/console/intake/projector.js";
import { planNotices } from "../../../src/console/notices/planner.js";
import { createSender } from "../../../src/console/notices/sender.js";
import type { NoticeSettings } from "../../../src/console/notices/settings.js";
import { ConsoleConfig } from "../../../src/console/config.js";
import { putPending } from "../../../src/console/read-model/approvals.js";
import type { ReadModel } from "../../../src/console/read-model/database.js";
import { addLink, findLink, giveLinkBack, noteLinkVerdict, useLink } from "../../../src/console/read-model/links.js";
import { beginAttempt, dueNotices, forgetNotices, markedApprovals, markForNotices, noticeCounts, noticesOf, noteFailed, takeCallback, unmark } from "../../../src/console/read-model/notices.js";
import { openReadModel } from "../../../src/console/read-model/open.js";
import { actorIdOf } from "../../../src/contracts/ids.js";
import { createLogger } from "../../../src/platform/log.js";
import { READ_MODEL_DATABASES, type ReadModelDatabase } from "../../support/console-database.js";
import { entryOf, FakeSessions, pendingOf, recordOf, START_MS, summaryOf } from "../../support/console-fakes.js";
import { noticesText, settingsFor, startReceiver, type Receiver } from "../../support/notices.js";

const logger = createLogger("console", "silent");
const timing = ConsoleConfig.parse({}).noticeTiming;

describe.each(READ_MODEL_DATABASES)("the outbox of notices on %s", (_name, make) => {
  let home: ReadModelDatabase;
  let db: ReadModel;
  let receiver: Receiver;
  let settings: NoticeSettings;
  let tenants = 0;
  const clock = { ms: START_MS, nowMs() { return this.ms; } };
  beforeAll(async () => {
    home = await make();
    db = openReadModel(home.target);
    receiver = await startReceiver();
    settings = settingsFor(noticesText({ routes: "routes:\n  - { to: [chat] }" }), receiver, "https://docket.example.com");
  });
  afterAll(async () => { await db.destroy(); await home.drop(); await receiver.close(); });

  /** Every test has a tenant of its own. */
  const world = () => {
    tenants += 1;
    const tenant = `t${String(tenants)}`, actorId = actorIdOf(tenant, "ord-1"), approvalId = `apr_${tenant}`;
    const projector = createProjector(db, new FakeSessions(), { logger, clock, quietMs: 5_000 });
    const mine: NoticeSettings = { ...settings, routes: settings.routes.map((route) => ({ ...route, match: { ...route.match, tenant } })) };
    let rev = 0;
    const journal = (...events: SessionEvent[]): Promise<void> => {
      rev += 1;
      const appended: JournalAppended = { entry: entryOf(rev, events, actorId), summary: summaryOf({ tenant, actorId, rev }) };
      return projector.project([appended]);
    };
    const record = recordOf({ approvalId });
    const rows = async (): Promise<string[]> => (await noticesOf(db, approvalId)).map((row) => `${row.event} ${row.state} ${String(row.attempts)}`);
    return { approvalId, mine, rows, pending: () => putPending(db, pendingOf(record, { tenant, actorId })), opened: () => journal({ type: "ApprovalOpened", record }), plan: () => planNotices(db, mine, clock.ms),
      decided: () => journal({ type: "DecisionRecorded", approvalId, decisionId: "dec_1", kind: "approve", principal: { id: "ann", class: "person", roles: [] }, via: "web", final: true }) };
  };
  const sender = (mine: NoticeSettings) => createSender(db, mine, mine.channels.find(({ name }) => name === "chat")!, { timing, deps: { clock, logger, random: () => 0.5, noticeSigner: {} as never } });

  it("whatever comes first, in whatever order and however often it is planned, a channel is told once", async () => {
    for (const order of [["pending", "opened"], ["opened", "pending"]] as const) {
      const w = world();
      for (const step of order) { await w[step](); await w.plan(); }
      await w.pending();
      await Promise.all([w.plan(), w.plan()]);
      expect(await w.rows()).toEqual(["opened waiting 0"]);
    }
  });

  it("what happens while a mark is being worked on keeps its own mark", async () => {
    const w = world();
    await w.pending();
    const read = (await markedApprovals(db, 100)).find(({ approval_id }) => approval_id === w.approvalId)!;
    await markForNotices(db, w.approvalId);
    await unmark(db, read);
    await w.plan();
    expect(await w.rows()).toEqual(["opened waiting 0"]);
    expect((await markedApprovals(db, 100)).some(({ approval_id }) => approval_id === w.approvalId)).toBe(false);
  });

  it("an attempt is counted before it is made and belongs to one console; a crash in the middle is another attempt, later, of the same notice", async () => {
    const w = world();
    await w.pending();
    await w.plan();
    const [row] = await noticesOf(db, w.approvalId);
    const begun = await Promise.all([1, 2, 3].map(() => beginAttempt(db, row!, clock.ms + 60_000)));
    expect(begun.filter(Boolean)).toHaveLength(1);
    const due = async (): Promise<boolean> => (await dueNotices(db, "chat", clock.ms, 100)).some(({ approval_id }) => approval_id === w.approvalId);
    expect(await due()).toBe(false);
    clock.ms += 60_000;
    expect(await due()).toBe(true);
    await sender(w.mine).deliver();
    expect(await w.rows()).toEqual(["opened sent 2"]);
  });

  it("a restart resets nothing: attempts, due time and what was refused are in the database", async () => {
    const w = world();
    await w.pending();
    await w.plan();
    const [row] = await noticesOf(db, w.approvalId);
    await beginAttempt(db, row!, clock.ms + 5_000);
    await noteFailed(db, row!.notice_id, { note: "HTTP 503", dueAtMs: clock.ms + 77_000, refusals: 3 });
    if (home.target !== ":memory:") { await db.destroy(); db = openReadModel(home.target); }
    await w.plan();
    expect(await noticesOf(db, w.approvalId)).toMatchObject([{ attempts: 1, due_at: clock.ms + 77_000, refusals: 3, note: "HTTP 503", state: "waiting" }]);
  });

  it("decided: the copy is locked by its id and the channel is told, planned once and again", async () => {
    const w = world();
    await w.pending();
    await w.opened();
    await w.plan();
    await sender(w.mine).deliver();
    await w.decided();
    await w.plan();
    await markForNotices(db, w.approvalId);
    await w.plan();
    expect((await w.rows()).sort()).toEqual(["locked waiting 0", "opened sent 1", "settled waiting 0"]);
    clock.ms += 1;
    await sender(w.mine).deliver();
    expect((await w.rows()).sort()).toEqual(["locked sent 1", "opened sent 1", "settled sent 1"]);
    expect(receiver.received.at(-1)?.text ?? "").toContain("approved by ann");
  });

  it("a link is used once, for one decision, until its verdict is known", async () => {
    const link = { link_id: `lnk_${String(tenants)}_${_name}`, tenant: "default", approval_id: "a", principal_id: "ann", made_by: "root", created_at: 1, expires_at: 2 };
    expect([await addLink(db, link), await addLink(db, link)]).toEqual([true, false]);
    expect((await Promise.all(["d1", "d2", "d3"].map((decision) => useLink(db, link.link_id, decision, 1)))).filter(Boolean)).toHaveLength(1);
    const { decision_id: taken } = (await findLink(db, link.link_id))!;
    expect(await useLink(db, link.link_id, taken ?? "", 2)).toBe(true);
    await giveLinkBack(db, link.link_id, taken ?? "");
    expect(await useLink(db, link.link_id, "d4", 3)).toBe(true);
    await noteLinkVerdict(db, link.link_id, "approved");
    await giveLinkBack(db, link.link_id, "d4");
    expect(await useLink(db, link.link_id, "d4", 4)).toBe(false);
  });

  it("a callback is taken once, also by two consoles at once", async () => {
    const taken = await Promise.all([1, 2, 3].map(() => takeCallback(db, `hash-${_name}`, 1_000, 2_000)));
    expect(taken.filter(Boolean)).toHaveLength(1);
    expect(await takeCallback(db, `hash-${_name}`, 3_000, 4_000), "after its window the timestamp refuses it").toBe(true);
  });

  it("counts by channel and state, and forgets with the approvals", async () => {
    const w = world();
    await w.pending();
    await w.plan();
    expect(await noticeCounts(db, `t${String(tenants)}`)).toEqual([{ channel: "chat", state: "waiting", count: 1, oldestAtMs: clock.ms }]);
    await db.deleteFrom("approvals").where("approval_id", "=", w.approvalId).execute();
    await forgetNotices(db, clock.ms);
    expect(await noticesOf(db, w.approvalId)).toEqual([]);
  });
});
