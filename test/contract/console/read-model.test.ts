/** What the read model promises, the same on SQLite and on PostgreSQL: the projector's rows, the lists, sums that count everything once, and reading it all again. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JournalAppended, SessionEvent } from "../../../src/contracts/journal.js";
import { ConsoleConfig } from "../../../src/console/config.js";
import { createProjector } from "../../../src/console/intake/projector.js";
import { listApprovals, putPending } from "../../../src/console/read-model/approvals.js";
import { addAudit, listAudit } from "../../../src/console/read-model/audit.js";
import { costsOf, ruleHitsOf } from "../../../src/console/read-model/costs.js";
import type { ReadModel } from "../../../src/console/read-model/database.js";
import { openReadModel } from "../../../src/console/read-model/open.js";
import { claimRedrive, discardDeadLetter, listDeadLetters, putDeadLetter } from "../../../src/console/read-model/dead-letters.js";
import { countLetters, groupsOf, letterCounts, lettersAfter } from "../../../src/console/read-model/letter-groups.js";
import { noteMade, putRedrive, usedOtherwise } from "../../../src/console/read-model/redrives.js";
import { overviewOf, projectionOf } from "../../../src/console/read-model/overview.js";
import { forgetOld } from "../../../src/console/read-model/retention.js";
import { forgetHistory } from "../../../src/console/read-model/schema.js";
import { listSessions, putSummaries } from "../../../src/console/read-model/sessions.js";
import { createLogger } from "../../../src/platform/log.js";
import { actorIdOf } from "../../../src/contracts/ids.js";
import { AUDIT_CHECKPOINT } from "../../../src/contracts/audit.js";
import { READ_MODEL_DATABASES, type ReadModelDatabase } from "../../support/console-database.js";
import { entryOf, FakeSessions, pendingOf, recordOf, START_MS, summaryOf } from "../../support/console-fakes.js";
import { madeJournal } from "../../support/journal-made.js";

const logger = createLogger("console", "silent");
const PAGE = { limit: 50, after: undefined };
const HISTORY = ["runs", "steps", "tool_calls", "cost_days", "rule_days", "words"] as const;

describe.each(READ_MODEL_DATABASES)("the read model on %s", (_name, make) => {
  let home: ReadModelDatabase;
  let db: ReadModel;
  let tenants = 0;
  const sessions = new FakeSessions();
  const clock = { ms: START_MS, nowMs() { return this.ms; } };
  beforeAll(async () => { home = await make(); db = openReadModel(home.target); });
  afterAll(async () => { await db.destroy(); await home.drop(); });

  /** Every test has a tenant of its own. */
  const world = (options: { sessions?: number; modelCalls?: number } = {}) => {
    tenants += 1;
    const tenant = `t${String(tenants)}`;
    const projector = createProjector(db, sessions, { logger, clock, quietMs: 5_000 });
    const journals = Array.from({ length: options.sessions ?? 4 }, (_, index) => madeJournal({ index, modelCalls: options.modelCalls ?? 3, startMs: START_MS + index * 60_000, tenant }));
    for (const journal of journals) sessions.journals.set(journal[0]?.entry.actorId ?? "", journal.map(({ entry }) => entry));
    return { tenant, projector, journals };
  };
  const history = async (tenant: string) => Object.fromEntries(await Promise.all(HISTORY.map(async (table) => [table, (await db.selectFrom(table).selectAll().where("tenant", "=", tenant).execute()).map((row) => JSON.stringify(row)).sort()] as const)));

  it("counts everything once: in batches, one by one, twice, backwards, with gaps, and read again from the journals", async () => {
    const { tenant, projector, journals } = world();
    const all = journals.flat();
    await projector.project(all);
    const expected = await history(tenant);
    expect(expected["steps"]).toHaveLength(12);
    expect(expected["tool_calls"]).toHaveLength(8);
    expect((await costsOf(db, tenant, 0)).days).toMatchObject([{ calls: 12, inputTokens: 10_800, outputTokens: 720 }]);
    expect(await ruleHitsOf(db, tenant, 0)).toMatchObject([{ rule: "read-only", verdict: "allow", hits: 8 }]);
    await projector.project(all);
    await projector.project([...all].reverse());
    expect(await history(tenant), "repeated").toEqual(expected);
    const orders: [string, (entries: JournalAppended[]) => JournalAppended[][]][] = [
      ["one by one", (entries) => entries.map((entry) => [entry])], ["backwards", (entries) => [...entries].reverse().map((entry) => [entry])],
      ["with gaps", (entries) => entries.filter((_, index) => index % 3 !== 1).map((entry) => [entry])], ["only the last", (entries) => [entries.slice(-1)]],
    ];
    for (const [order, batches] of orders) {
      for (const table of HISTORY) await db.deleteFrom(table).where("tenant", "=", tenant).execute();
      await db.deleteFrom("journal_heads").where("actor_id", "in", journals.map((journal) => journal[0]?.entry.actorId ?? "")).execute();
      for (const journal of journals) for (const batch of batches(journal)) await projector.project(batch);
      expect(await history(tenant), order).toEqual(expected);
    }
    await db.transaction().execute((trx) => forgetHistory(trx));
    expect((await history(tenant))["runs"]).toEqual([]);
    expect((await projectionOf(db, clock.nowMs())).gaps).toBeGreaterThan(0);
    while (await projector.repairGaps(100) > 0);
    expect(await history(tenant), "rebuilt").toEqual(expected);
  });

  it("goes on where a process stopped: in the middle of the journals, and in the middle of reading them all again", async () => {
    const { tenant, projector, journals } = world();
    const all = journals.flat();
    await projector.project(all);
    const expected = await history(tenant);
    const actorIds = journals.map((journal) => journal[0]?.entry.actorId ?? "");
    for (const table of HISTORY) await db.deleteFrom(table).where("tenant", "=", tenant).execute();
    await db.deleteFrom("journal_heads").where("actor_id", "in", actorIds).execute();
    /** Another process: it knows what is in the database, and nothing else. */
    const next = async <T>(work: (heir: ReturnType<typeof createProjector>) => Promise<T>): Promise<T> => {
      const own = openReadModel(home.target);
      try { return await work(createProjector(own, sessions, { logger, clock, quietMs: 5_000 })); } finally { await own.destroy(); }
    };
    const middle = Math.floor(all.length / 2);
    await next((heir) => heir.project(all.slice(0, middle)));
    expect(await history(tenant)).not.toEqual(expected);
    // What was not acked when the process stopped comes again.
    await next((heir) => heir.project(all.slice(middle - 3)));
    expect(await history(tenant)).toEqual(expected);
    await db.transaction().execute((trx) => forgetHistory(trx));
    expect(await next((heir) => heir.repairGaps(1))).toBe(1);
    const left = (await projectionOf(db, clock.nowMs())).gaps;
    expect(left, "it stopped too early to be a test").toBeGreaterThan(0);
    while (await next((heir) => heir.repairGaps(100)) > 0);
    expect((await projectionOf(db, clock.nowMs())).gaps).toBe(0);
    expect(await history(tenant)).toEqual(expected);
  });

  it("what two consoles project at once counts once", async () => {
    const { tenant, projector, journals } = world();
    await Promise.allSettled(journals.flatMap((journal) => [projector.project(journal), projector.project(journal)]));
    for (const journal of journals) await projector.project(journal);
    expect((await costsOf(db, tenant, 0)).days).toMatchObject([{ calls: 12 }]);
  });

  it("lists sessions page by page, by status, agent and words, newest first", async () => {
    const { tenant, projector, journals } = world({ sessions: 30, modelCalls: 1 });
    await projector.project(journals.flat());
    const list = async (filter: object) => (await listSessions(db, { ...PAGE, tenant, ...filter })).items.map((one) => one.sessionId);
    const all = await list({});
    expect(all).toHaveLength(30);
    expect(all[0]).toBe("case-000029");
    const [first, second] = [await listSessions(db, { ...PAGE, limit: 20, tenant }), undefined];
    expect(second).toBeUndefined();
    const cursor = JSON.parse(Buffer.from(first.nextCursor ?? "", "base64url").toString()) as [number, string];
    expect([...first.items.map((one) => one.sessionId), ...(await listSessions(db, { limit: 20, after: cursor, tenant })).items.map((one) => one.sessionId)]).toEqual(all);
    expect(await list({ statuses: ["CLOSED"] })).toEqual(["case-000026", "case-000016", "case-000006"]);
    expect(await list({ agent: "support", statuses: ["IDLE"], limit: 2 })).toEqual(["case-000023", "case-000015"]);
    expect(await list({ text: "case-000007" })).toEqual(["case-000007"]);
    expect(await list({ text: "WARRANT" }), "by the beginning of a word of a message").toEqual(["case-000029", "case-000021", "case-000013", "case-000005"]);
    expect(await list({ text: "warranty support" })).toEqual([]);
    expect(await list({ text: "warranty order-triage" })).toHaveLength(4);
    expect(await list({ text: "%_'\"" })).toEqual([]);
    expect((await overviewOf(db, tenant, false)).sessions["CLOSED"]).toBe(3);
  });

  it("finds sessions by common words and every other filter together, page by page, wherever in time they are", async () => {
    const { tenant } = world({ sessions: 0 });
    const statuses = ["IDLE", "IDLE", "CLOSED", "ESCALATED", "DELETED"] as const;
    // `even` and the status CLOSED never go together but in the oldest; `old` is a word of none of the newest 1,000.
    const made = Array.from({ length: 3_400 }, (_, index) => {
      const sessionId = `s-${String(index).padStart(4, "0")}`;
      const status = statuses[index % statuses.length] ?? "IDLE";
      return {
        words: ["common", ...(index % 2 === 0 && (status !== "CLOSED" || index < 60) ? ["even"] : []), ...(index < 2_300 ? ["oldest"] : []), ...(index % 3 !== 0 ? ["thirds"] : [])],
        summary: summaryOf({ tenant, sessionId, actorId: actorIdOf(tenant, sessionId), status, agent: index % 4 === 0 ? "support" : "orders", rev: 1, updatedAtMs: START_MS + Math.floor(index / 3) * 1_000, ...(index % 100 === 0 ? { quarantine: { reason: "unrepairable" as const, message: "m", sinceMs: START_MS } } : {}) }),
      };
    });
    await putSummaries(db, made.map(({ summary }) => summary));
    const words = made.flatMap(({ words: own, summary }) => own.map((word) => ({ tenant, word, actor_id: summary.actorId })));
    for (let from = 0; from < words.length; from += 500) await db.insertInto("words").values(words.slice(from, from + 500)).execute();
    const pages = async (filter: { text: string; statuses?: string[]; agent?: string; quarantined?: boolean }): Promise<string[]> => {
      const ids: string[] = [];
      for (let after: [number, string] | undefined, more = true; more;) {
        const page = await listSessions(db, { tenant, limit: 400, after, ...filter });
        ids.push(...page.items.map((one) => one.actorId));
        after = page.nextCursor === undefined ? undefined : JSON.parse(Buffer.from(page.nextCursor, "base64url").toString()) as [number, string];
        more = after !== undefined;
      }
      return ids;
    };
    const expected = (filter: { text: string; statuses?: string[]; agent?: string; quarantined?: boolean }): string[] => made
      .filter(({ words: own, summary }) => filter.text.split(" ").every((asked) => own.some((word) => word.startsWith(asked)))
        && (filter.statuses?.includes(summary.status) ?? summary.status !== "DELETED") && (filter.agent === undefined || summary.agent === filter.agent) && (filter.quarantined !== true || summary.quarantine !== undefined))
      .map(({ summary }) => summary).sort((a, b) => b.updatedAtMs - a.updatedAtMs || (a.actorId < b.actorId ? -1 : 1)).map((summary) => summary.actorId);
    for (const filter of [
      { text: "common" }, { text: "old" }, { text: "even", statuses: ["CLOSED"] }, { text: "common", statuses: ["CLOSED", "ESCALATED"] }, { text: "common", agent: "support" }, { text: "thirds old" }, { text: "old", agent: "support", statuses: ["IDLE"] },
      { text: "thirds", quarantined: true }, { text: "common", statuses: ["AWAITING_APPROVAL"] }, { text: "old thirds common", agent: "nobody" },
    ]) expect(await pages(filter), JSON.stringify(filter)).toEqual(expected(filter));
    expect(expected({ text: "even", statuses: ["CLOSED"] }), "some, and only old ones").toHaveLength(6);
  });

  it("an approval is shown once it is known, by urgency, and tells who decided", async () => {
    const { tenant, projector } = world({ sessions: 0 });
    const actorId = actorIdOf(tenant, "ord-1");
    const records = [1, 2].map((n) => recordOf({ approvalId: `${tenant}_${String(n)}`, expiresAtMs: START_MS + n * 1_000 }));
    const entry = (rev: number, events: SessionEvent[]): JournalAppended => ({ entry: entryOf(rev, events, actorId), summary: summaryOf({ tenant, actorId, rev }) });
    for (const record of [...records].reverse()) await putPending(db, pendingOf(record, { tenant, actorId }));
    await projector.project([entry(1, records.map((record) => ({ type: "ApprovalOpened", record })))]);
    const ids = async (state: "open" | "decided") => (await listApprovals(db, { ...PAGE, tenant, state })).items.map((item) => item.pending.record.approvalId);
    expect(await ids("open")).toEqual([`${tenant}_1`, `${tenant}_2`]);
    await projector.project([entry(2, [{ type: "DecisionRecorded", approvalId: `${tenant}_1`, decisionId: "dec_1", kind: "approve", principal: { id: "ann", class: "person", roles: [] }, via: "cli", final: true }])]);
    expect(await ids("open")).toEqual([`${tenant}_2`]);
    expect((await listApprovals(db, { ...PAGE, tenant, state: "decided" })).items).toMatchObject([{ decidedBy: "ann", decision: "approve" }]);
  });

  it("dead letters: once each, grouped, in the order they died, claimed by one", async () => {
    const { tenant } = world({ sessions: 0 });
    const letter = (n: number) => ({
      deadLetterId: `dl_${tenant}_${String(n)}`, kind: "event" as const, reason: n === 3 ? "too_old" : "mailbox_full", message: `no room for ${String(n)}`, topic: "t", app: "sessions", tries: 1, tenant, payload: "{}", payloadEncoding: "utf8" as const, firstFailedAtMs: 1, lastFailedAtMs: 1,
    });
    for (const n of [1, 2, 3, 1]) await putDeadLetter(db, letter(n), START_MS);
    const scope = { tenant, orphans: false };
    expect((await groupsOf(db, scope, {})).map((group) => [group.reason, group.count, group.dead])).toEqual([["mailbox_full", 2, 2], ["too_old", 1, 1]]);
    expect(await groupsOf(db, { tenant: "nobody", orphans: false }, {})).toEqual([]);
    const order = await lettersAfter(db, scope, { reason: "mailbox_full" }, { after: 0, limit: 10 });
    expect(order.map(({ item }) => item.letter.deadLetterId)).toEqual([`dl_${tenant}_1`, `dl_${tenant}_2`]);
    expect((await lettersAfter(db, scope, {}, { after: order[0]?.place ?? 0, limit: 1 })).map(({ item }) => item.letter.deadLetterId)).toEqual([`dl_${tenant}_2`]);
    const used = (content: string) => db.transaction().execute(async (trx) => {
      const other = await usedOtherwise(trx, { id: `dl_${tenant}_3`, redrive: 1, content });
      if (other !== undefined) return `refused, ${other.made?.principal_id ?? "nobody"} was first`;
      await claimRedrive(trx, `dl_${tenant}_3`, 1);
      await noteMade(trx, { dead_letter_id: `dl_${tenant}_3`, redrive: 1, content, principal_id: content, at: START_MS });
      const isFirst = await putRedrive(trx, { command_id: `redrive:dl_${tenant}_3:1`, dead_letter_id: `dl_${tenant}_3`, actor_id: "a", event_key: "k", command: content, attempts: 1, due_at: START_MS });
      return isFirst ? "sent first" : "sent again";
    });
    const answers = await Promise.all(["ann", "ben", "ann", "ben"].map(used));
    const sent = answers.filter((answer) => answer.startsWith("sent")).sort();
    expect([sent, answers.filter((answer) => answer.startsWith("refused")).length], "one number, one content, one row").toEqual([["sent again", "sent first"], 2]);
    expect([["ann", [0, 2]], ["ben", [1, 3]]], "and one person's").toContainEqual([/refused, (\w+)/.exec(answers.find((answer) => answer.startsWith("refused")) ?? "")?.[1], answers.flatMap((answer, n) => (answer.startsWith("sent") ? [n] : []))]);
    expect(await Promise.all([claimRedrive(db, `dl_${tenant}_1`, 1), claimRedrive(db, `dl_${tenant}_1`, 1)])).toEqual(expect.arrayContaining([true, false]));
    expect(await discardDeadLetter(db, `dl_${tenant}_2`, START_MS)).toBe(true);
    expect(await countLetters(db, scope, { state: "dead" })).toBe(2);
    expect((await listDeadLetters(db, { ...PAGE, tenant, orphans: false, state: "discarded" })).items).toHaveLength(1);
    expect((await letterCounts(db)).find((one) => one.reason === "too_old")).toMatchObject({ state: "dead", count: 1, oldestAtMs: START_MS });
  });

  it("a deleted session's words, runs and calls are gone; what its days cost stays", async () => {
    const { tenant, projector, journals } = world({ sessions: 2 });
    await projector.project(journals.flat());
    const [{ entry, summary }] = journals[0]?.slice(-1) as [JournalAppended];
    const rev = entry.rev + 1;
    const deleted: SessionEvent = { type: "SessionDeleted", tenant, sessionId: summary.sessionId, actorId: entry.actorId, agent: summary.agent, agentVersion: "1", createdAtMs: START_MS, generation: 1, erase: { fromRev: 1, toRev: rev - 1, dueAtMs: START_MS }, reason: "asked for" };
    await projector.project([{ entry: { ...entry, rev, events: [deleted] }, summary: { ...summary, status: "DELETED", rev } }]);
    expect((await listSessions(db, { ...PAGE, tenant, text: "refund" })).items).toEqual([]);
    expect((await history(tenant))["runs"]).toHaveLength(1);
    expect((await costsOf(db, tenant, 0)).days).toMatchObject([{ calls: 6 }]);
  });

  it("the audit is listed newest first; what is too old is forgotten, behind a row that says so", async () => {
    const { tenant } = world({ sessions: 0 });
    const row = { tenant, principalId: "ann", keyId: "k", action: "session.cancel", target: "s", outcome: "published", reason: "", detail: { runId: 1 }, ip: "" };
    await addAudit(db, { ...row, atMs: 1 });
    await addAudit(db, { ...row, atMs: START_MS, outcome: "requested" });
    expect((await listAudit(db, tenant, PAGE)).items.map((one) => one.outcome)).toEqual(["requested", "published"]);
    await forgetOld(db, ConsoleConfig.parse({}).retention, START_MS);
    expect((await listAudit(db, tenant, PAGE)).items.map((one) => [one.action, one.outcome])).toEqual([[AUDIT_CHECKPOINT, "forgotten"], ["session.cancel", "requested"]]);
  });
});
