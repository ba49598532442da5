import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { serializeEnvelope, type Envelope } from "../../../src/contracts/cloudevent.js";
import { APPROVAL_PENDING } from "../../../src/contracts/decisions.js";
import { DEAD_LETTERED, SESSION_CANCEL, SESSION_CLOSE, SESSION_COMPACT, SESSION_DELETE, SESSION_NUDGE, SESSION_REDRIVE, SESSION_RELEASE, type DeadLetter } from "../../../src/contracts/messages.js";
import type { SessionSummary } from "../../../src/contracts/journal.js";
import { ensureDevKeys, loadSigner, loadTrust, type Signer, type Trust } from "../../../src/platform/keys.js";
import { letterReceiptIn } from "../../../src/platform/letter-box.js";
import { ACTOR, entryOf, journalMessage, messageOf, pendingOf, recordOf, START_MS, startConsole, summaryOf, viewOf, type ConsoleWorld } from "../../support/console-fakes.js";

let dir: string;
let keys: { signer: Signer; trust: Trust };
let world: ConsoleWorld;
let admin: string, operator: string, viewer: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "docket-console-"));
  await ensureDevKeys(dir);
  keys = { signer: await loadSigner(dir, "console"), trust: await loadTrust(dir) };
});
afterAll(() => rm(dir, { recursive: true }));
beforeEach(async () => {
  world = await startConsole(keys);
  [admin, operator, viewer] = [world.key(["admin"]), world.key(["operator"], { id: "otto" }), world.key(["viewer"])];
});
afterEach(() => world.close());
const get = (path: string, key = viewer) => world.call("GET", path, { key });
const ids = (answer: { body: Record<string, unknown> }, pick: (item: Record<string, never>) => unknown) => (answer.body["items"] as Record<string, never>[]).map(pick);

describe("sessions", () => {
  beforeEach(async () => {
    for (let i = 1; i <= 5; i += 1) {
      await world.console.handleJournal(journalMessage(entryOf(1, [], `default_s-${String(i)}`), { sessionId: `s-${String(i)}`, updatedAtMs: START_MS + Math.ceil(i / 2), status: i % 2 === 0 ? "IDLE" : "PLANNING", agent: i > 3 ? "mail" : "orders" }));
    }
    await world.console.handleJournal(journalMessage(entryOf(1, [], "other_x"), { tenant: "other", sessionId: "x" }));
  });

  it("are listed newest first, page by page, each once, and only those of the tenant", async () => {
    const seen: unknown[] = [];
    let cursor = "";
    do {
      const page = await get(`/v1/sessions?limit=2${cursor}`);
      seen.push(...ids(page, (s) => s["sessionId"]));
      cursor = typeof page.body["nextCursor"] === "string" ? `&cursor=${page.body["nextCursor"]}` : "";
    } while (cursor !== "");
    expect(seen).toEqual(["s-5", "s-3", "s-4", "s-1", "s-2"]);
  });

  it.each([["status=IDLE", ["s-4", "s-2"]], ["status=IDLE,PLANNING&agent=mail", ["s-5", "s-4"]], ["q=S-3", ["s-3"]], ["q=%25", []]])("are filtered by %s", async (query, expected) => {
    expect(ids(await get(`/v1/sessions?${query}`), (s) => s["sessionId"])).toEqual(expected);
  });

  it.each([["status=idle", 422], ["colour=red", 422], ["limit=5000", 422]])("refuse the filter %s", async (query, status) => {
    expect(await get(`/v1/sessions?${query}`)).toMatchObject({ status, body: { code: "validation_failed" } });
  });

  it("one is shown as its actor sees it, or from the read model marked stale", async () => {
    world.sessions.views.set("default_s-1", viewOf([], summaryOf({ sessionId: "s-1", rev: 9 })));
    expect((await get("/v1/sessions/s-1")).body).toMatchObject({ stale: false, summary: { rev: 9 } });
    world.sessions.down = true;
    expect((await get("/v1/sessions/s-1")).body).toMatchObject({ stale: true, summary: { rev: 1 } });
    expect(await get("/v1/sessions/unknown")).toMatchObject({ status: 503, body: { code: "actor_unavailable" } });
    world.sessions.down = false;
    expect(await get("/v1/sessions/unknown")).toMatchObject({ status: 404, body: { code: "session_not_found" } });
    expect(await get(`/v1/sessions/${encodeURIComponent("a\u0000b")}`)).toMatchObject({ status: 400 });
  });

  it("the journal is read through the actor", async () => {
    world.sessions.journals.set("default_s-1", [entryOf(1, []), entryOf(2, []), entryOf(3, [])]);
    expect((await get("/v1/sessions/s-1/journal?after=1&limit=1")).body).toMatchObject({ headRev: 3, entries: [{ rev: 2 }] });
    expect(await get("/v1/sessions/none/journal")).toMatchObject({ status: 404 });
  });

  it("cancel goes out as a command of the operator, audited; viewers may not", async () => {
    world.sessions.views.set("default_s-1", viewOf([]));
    expect(await world.call("POST", "/v1/sessions/s-1/cancel", { key: viewer, body: { reason: "x" } })).toMatchObject({ status: 403, body: { code: "forbidden" } });
    expect(await world.call("POST", "/v1/sessions/nobody/cancel", { key: operator, body: {} })).toMatchObject({ status: 404 });
    expect(await world.call("POST", "/v1/sessions/s-1/cancel", { key: operator, body: { reason: "wrong order", runId: "run_1" }, headers: { "idempotency-key": "k1" } })).toMatchObject({ status: 202, body: { eventId: "k1" } });
    const commands = world.tasks.sent.filter((e) => e.type === SESSION_CANCEL);
    expect(commands).toMatchObject([{ id: "k1", subject: "s-1", tenant: "default", data: '{"runId":"run_1","reason":"wrong order"}' }]);
    expect(JSON.parse(commands[0]!.principal!)).toMatchObject({ id: "otto", class: "person" });
    expect(ids(await get("/v1/audit", admin), (r) => r["outcome"]).sort()).toEqual(["forbidden", "published", "requested", "session_not_found"]);
  });
});

describe("an operator's orders to a session", () => {
  const sent = (type: string) => world.tasks.sent.filter((e) => e.type === type);
  const order = (what: string, key: string, id = "s-1") => world.call("POST", `/v1/sessions/${id}/${what}`, { key, body: { reason: "so it must be" }, headers: { "idempotency-key": "k1" } });
  const known = (about: Partial<SessionSummary>) => { world.sessions.views.set("default_s-1", viewOf([], summaryOf({ sessionId: "s-1", ...about }))); };
  const quarantine = { reason: "journal_gap", message: "journal entry 3 of 9 is missing", sinceMs: START_MS } as const;

  it("close is an operator's, release and delete an administrator's; each is audited", async () => {
    known({ status: "IDLE", quarantine });
    expect(await order("release", operator)).toMatchObject({ status: 403, body: { code: "forbidden" } });
    expect(await order("delete", operator)).toMatchObject({ status: 403, body: { code: "forbidden" } });
    expect(await order("close", viewer)).toMatchObject({ status: 403, body: { code: "forbidden" } });
    expect(world.tasks.sent).toEqual([]);
    expect(await order("release", admin)).toMatchObject({ status: 202, body: { eventId: "k1" } });
    expect(await order("close", operator)).toMatchObject({ status: 202 });
    known({ status: "CLOSED" });
    expect(await order("delete", admin)).toMatchObject({ status: 202 });
    for (const type of [SESSION_RELEASE, SESSION_CLOSE, SESSION_DELETE]) expect(sent(type)).toMatchObject([{ id: "k1", subject: "s-1", tenant: "default", data: '{"reason":"so it must be"}' }]);
    expect(ids(await get("/v1/audit", admin), (r) => `${String(r["action"])} ${String(r["outcome"])}`).sort()).toEqual(
      [...["close", "delete", "release"].map((what) => `POST /v1/sessions/:id/${what} forbidden`), ...["close", "delete", "release"].flatMap((what) => [`session.${what} published`, `session.${what} requested`])]);
  });

  it("delete is refused for a session that works or is quarantined, release for one that is not; nothing is sent", async () => {
    known({ status: "AWAITING_APPROVAL" });
    expect(await order("delete", admin)).toMatchObject({ status: 409, body: { code: "session_busy" } });
    expect(await order("release", admin)).toMatchObject({ status: 400 });
    known({ status: "IDLE", quarantine });
    expect(await order("delete", admin)).toMatchObject({ status: 409, body: { code: "session_quarantined" } });
    expect(await order("delete", admin, "nobody")).toMatchObject({ status: 404 });
    expect(world.tasks.sent).toEqual([]);
  });

  it("quarantined sessions are found, deleted ones are gone", async () => {
    for (const [id, about] of [["a", { quarantine }], ["b", {}], ["c", { status: "DELETED" }]] as const) await world.console.handleJournal(journalMessage(entryOf(1, [], `default_${id}`), { sessionId: id, ...about }));
    expect(ids(await get("/v1/sessions?quarantined=true"), (s) => s["sessionId"])).toEqual(["a"]);
    expect(ids(await get("/v1/sessions"), (s) => s["sessionId"]).sort()).toEqual(["a", "b"]);
    world.sessions.views.set("default_c", viewOf([], summaryOf({ sessionId: "c", status: "DELETED" })));
    expect(await get("/v1/sessions/c")).toMatchObject({ status: 404 });
  });
});

describe("retention", () => {
  it("asks sessions that have been at rest for too long to delete themselves, and forgets them when they are erased", async () => {
    const DAY_MS = 86_400_000;
    const young = START_MS + 80 * DAY_MS;
    for (const [id, about] of [["idle", { status: "IDLE" }], ["closed", { status: "CLOSED" }], ["asked", { status: "AWAITING_APPROVAL" }], ["young", { status: "IDLE", updatedAtMs: young }], ["young-closed", { status: "CLOSED", updatedAtMs: young }]] as const) {
      await world.console.handleJournal(journalMessage(entryOf(1, [], `default_${id}`), { sessionId: id, updatedAtMs: START_MS, ...about }));
    }
    world.clock.ms = START_MS + 100 * DAY_MS;
    await world.console.lookAround();
    const asked = world.tasks.sent.filter((e) => e.type === SESSION_DELETE);
    expect(asked.map((e) => [e.subject, (JSON.parse(e.data) as { idleForMs: number }).idleForMs])).toEqual([["idle", 90 * DAY_MS], ["closed", 30 * DAY_MS]]);
    expect(JSON.parse(asked[0]!.principal!)).toMatchObject({ class: "system" });

    await world.console.handleJournal(journalMessage(entryOf(2, [], "default_idle"), { sessionId: "idle", status: "DELETED", rev: 2 }));
    world.clock.ms += 3_600_000;
    await world.console.lookAround();
    expect(ids(await get("/v1/sessions?status=DELETED,IDLE"), (s) => s["sessionId"])).toEqual(["young"]);
  });

  it("asks long journals of sessions at rest to be shortened, and says how far it has followed them", async () => {
    const DAY_MS = 86_400_000;
    for (const [id, about] of [
      ["long", { rev: 1_600 }], ["short", { rev: 1_400 }], ["shortened", { rev: 3_000, journalFromRev: 2_000 }], ["busy", { rev: 1_600, status: "EXECUTING_TOOL" }], ["young", { rev: 1_600, createdAtMs: START_MS + 9 * DAY_MS }],
    ] as const) await world.console.handleJournal(journalMessage(entryOf(1, [], `default_${id}`), { sessionId: id, status: "IDLE", createdAtMs: START_MS, updatedAtMs: START_MS, ...about }));
    world.clock.ms = START_MS + 31 * DAY_MS;
    await world.console.lookAround();
    const asked = world.tasks.sent.filter((e) => e.type === SESSION_COMPACT);
    expect(asked.map((e) => e.subject)).toEqual(["long"]);
    expect(JSON.parse(asked[0]!.data)).toEqual({ projectedRev: 1, keepEntries: 1_000, olderThanMs: 30 * DAY_MS });
  });
});

const original: Envelope = { specversion: "1.0", id: "evt-1", source: "/shop", type: "com.shop.order.placed", subject: "ord-1", tenant: "default", data: '{"total":9007199254740993}' };
const letter = (overrides: Partial<DeadLetter> = {}): DeadLetter => ({
  deadLetterId: "dl_1", kind: "event", reason: "expired", message: "the event had expired", topic: "agent.tasks.incoming", app: "sessions", tries: 1, tenant: "default", sessionId: "ord-1",
  payload: serializeEnvelope(original), payloadEncoding: "utf8", firstFailedAtMs: START_MS, lastFailedAtMs: START_MS, ...overrides,
});
const redrive = (id: string, body: unknown, key = operator) => world.call("POST", `/v1/dead-letters/${id}/redrive`, { key, body });

describe("dead letters", () => {
  it("are kept whole, once, whatever arrives: records, events that the sidecar forwarded, raw bytes", async () => {
    const deliveries = [messageOf(DEAD_LETTERED, letter()), messageOf(DEAD_LETTERED, letter()), serializeEnvelope(original), serializeEnvelope({ ...original, traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" }), "\u0001 not json", "\u0001 not json"];
    for (const text of deliveries) expect(await world.console.handleDeadLetter(text)).toBe("SUCCESS");
    const answer = await get("/v1/dead-letters", admin);
    expect(ids(answer, (i) => { const { letter: l } = i as unknown as { letter: DeadLetter }; return `${l.kind} ${l.reason} ${l.payload.slice(0, 10)}`; }).sort()).toEqual(['event expired {"datacont', 'event forwarded_by_sidecar {"datacont', "unreadable not_json \u0001 not json"]);
    expect(ids(await get("/v1/dead-letters", viewer), (i) => (i as unknown as { letter: DeadLetter }).letter.kind)).toEqual(["event", "event"]);
    expect(ids(await get("/v1/dead-letters", world.key(["viewer"], { tenant: "other" })), (i) => i)).toEqual([]);
  });

  it("have a receipt for the app that keeps them, each time they come; what the sidecar forwarded nobody keeps", async () => {
    world.receipts.down = true;
    expect(await world.console.handleDeadLetter(messageOf(DEAD_LETTERED, letter()))).toBe("RETRY");
    world.receipts.down = false;
    for (const text of [messageOf(DEAD_LETTERED, letter()), messageOf(DEAD_LETTERED, letter()), serializeEnvelope(original)]) expect(await world.console.handleDeadLetter(text)).toBe("SUCCESS");
    expect(world.receipts.sent.map((sent) => letterReceiptIn(serializeEnvelope(sent)))).toEqual([1, 2].map(() => ({ deadLetterId: "dl_1", app: letter().app })));
  });

  it("redrive sends the event as it was, as a command with an id of letter and number; repeating it has no second effect", async () => {
    await world.console.handleDeadLetter(messageOf(DEAD_LETTERED, letter()));
    expect(await redrive("dl_1", { reason: "shop is back", dryRun: true })).toMatchObject({ status: 200, body: { dryRun: true, action: "send", eventId: "redrive:dl_1:1" } });
    expect(world.tasks.sent).toEqual([]);
    expect(await redrive("dl_1", { reason: "shop is back", redrive: 1 })).toMatchObject({ status: 202, body: { redrive: 1 } });
    expect(await redrive("dl_1", { reason: "shop is back", redrive: 1 })).toMatchObject({ status: 202, body: { redrive: 1 } });
    expect(world.tasks.sent.map((e) => [e.id, e.type, e.subject, e.causationid])).toEqual([1, 1].map(() => ["redrive:dl_1:1", SESSION_REDRIVE, "ord-1", "evt-1"]));
    expect(JSON.parse(world.tasks.sent[0]!.data)).toEqual({ deadLetterId: "dl_1", event: letter().payload, redrive: 1, reason: "shop is back", as: "event" });
    expect((await get("/v1/dead-letters/dl_1")).body).toMatchObject({ state: "redriven", redriveCount: 1 });
    expect(await redrive("dl_1", { reason: "again" })).toMatchObject({ status: 409, body: { code: "version_mismatch" } });
    expect(await redrive("dl_1", { reason: "again", redrive: 2 })).toMatchObject({ status: 202, body: { redrive: 2 } });
    expect(await redrive("dl_1", { reason: "too far", redrive: 9 })).toMatchObject({ status: 409, body: { code: "version_mismatch" } });
  });

  it("a redrive that the broker did not take keeps its number", async () => {
    await world.console.handleDeadLetter(messageOf(DEAD_LETTERED, letter()));
    world.tasks.down = true;
    expect(await redrive("dl_1", { reason: "x" })).toMatchObject({ status: 503 });
    world.tasks.down = false;
    expect((await get("/v1/dead-letters/dl_1")).body).toMatchObject({ state: "dead" });
    expect(await redrive("dl_1", { reason: "x" })).toMatchObject({ status: 202, body: { eventId: "redrive:dl_1:1" } });
  });

  it("two operators at once make one redrive", async () => {
    await world.console.handleDeadLetter(messageOf(DEAD_LETTERED, letter()));
    const answers = await Promise.all([redrive("dl_1", { reason: "a" }), redrive("dl_1", { reason: "b" })]);
    expect(new Set(world.tasks.sent.map((e) => e.id))).toEqual(new Set(["redrive:dl_1:1"]));
    expect(answers.some((a) => a.status === 202)).toBe(true);
  });

  it("an edited event needs an approver, is sent in the editor's name, and cannot be one of Docket's own", async () => {
    await world.console.handleDeadLetter(messageOf(DEAD_LETTERED, letter()));
    const payload = serializeEnvelope({ ...original, tenant: "other", principal: '{"id":"root","class":"system","roles":["admin"]}', data: '{"total":5}' });
    expect(await redrive("dl_1", { reason: "x", payload })).toMatchObject({ status: 403 });
    expect(await redrive("dl_1", { reason: "x", payload: serializeEnvelope({ ...original, type: "com.docket.decision.made.v1" }) }, admin)).toMatchObject({ status: 403, body: { code: "reserved_type" } });
    expect(await redrive("dl_1", { reason: "x", payload: "{" }, admin)).toMatchObject({ status: 400 });
    expect(await redrive("dl_1", { reason: "x", payload }, admin)).toMatchObject({ status: 202 });
    const event = JSON.parse((JSON.parse(world.tasks.sent[0]!.data) as { event: string }).event) as Record<string, string>;
    expect(event).toMatchObject({ tenant: "default", data: { total: 5 } });
    expect(JSON.parse(event["principal"]!)).toMatchObject({ id: "ann" });
  });

  it.each([["tool_request", "docket session send ord-1"], ["tool_result", "ask the session anew"], ["decision", "ask the session anew"]] as const)("a dead %s that holds nothing to deliver is not redriven, and the answer says what to do instead", async (kind, hint) => {
    await world.console.handleDeadLetter(messageOf(DEAD_LETTERED, letter({ kind })));
    expect(await redrive("dl_1", { reason: "x" })).toMatchObject({ status: 422, body: { hint: expect.stringContaining(hint) as unknown } });
    expect(world.tasks.sent).toEqual([]);
  });

  it("a dead approval is taken in again", async () => {
    await world.console.handleDeadLetter(messageOf(DEAD_LETTERED, letter({ kind: "approval", payload: messageOf(APPROVAL_PENDING, pendingOf()) })));
    expect(await redrive("dl_1", { reason: "fixed" })).toMatchObject({ status: 202, body: { action: "take-in" } });
    expect((await get("/v1/approvals")).body["items"]).toHaveLength(1);
  });

  it.each([["no reason", {}, 422], ["a viewer", { reason: "x" }, 403]])("refuses a redrive with %s", async (name, body, status) => {
    await world.console.handleDeadLetter(messageOf(DEAD_LETTERED, letter()));
    expect(await redrive("dl_1", body, name === "a viewer" ? viewer : operator)).toMatchObject({ status });
    expect(await redrive("dl_none", { reason: "x" })).toMatchObject({ status: 404, body: { code: "dead_letter_not_found" } });
  });
});

describe("the look around", () => {
  const nudges = () => world.tasks.sent.filter((e) => e.type === SESSION_NUDGE).map((e) => e.id);
  const lookAt = async (ms: number) => { world.clock.ms = START_MS + ms; await world.console.lookAround(); };

  it("nudges a session five seconds after it missed its due time, then ever more rarely, and stops when it moves", async () => {
    await world.console.handleJournal(journalMessage(entryOf(3, []), { nextDueAtMs: START_MS }));
    await lookAt(5_000);
    expect(nudges()).toEqual([]);
    await lookAt(6_000);
    await lookAt(7_000);
    expect(nudges()).toEqual([`nudge:${ACTOR}:3:1`]);
    await lookAt(11_000);
    await lookAt(16_000);
    await lookAt(21_000);
    expect(nudges()).toHaveLength(3);
    await world.console.handleJournal(journalMessage(entryOf(4, [])));
    await lookAt(10_000_000);
    expect(nudges()).toHaveLength(3);
  });

  it("nudges a session whose open question cannot be shown, until what is to be shown comes or it is closed", async () => {
    const opened = (id: string) => ({ type: "ApprovalOpened" as const, record: recordOf({ approvalId: id, openedAtMs: START_MS }) });
    await world.console.handleJournal(journalMessage(entryOf(1, [opened("apr_1"), opened("apr_2")])));
    await lookAt(40_000);
    expect(nudges()).toEqual([]);
    await lookAt(41_000);
    await lookAt(42_000);
    expect(nudges()).toEqual([`nudge:${ACTOR}:1:1`]);
    await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf(recordOf({ approvalId: "apr_1", openedAtMs: START_MS }))));
    await lookAt(47_000);
    expect(nudges()).toHaveLength(2);
    await world.console.handleJournal(journalMessage(entryOf(2, [{ type: "ApprovalExpired", approvalId: "apr_2", action: "reject" }])));
    await lookAt(10_000_000);
    expect(nudges()).toHaveLength(2);
  });

  it("nudges a bounded number at one look", async () => {
    for (let i = 0; i < 60; i += 1) await world.console.handleJournal(journalMessage(entryOf(1, [], `default_n${String(i)}`), { sessionId: `n${String(i)}`, nextDueAtMs: START_MS + i }));
    world.clock.ms = START_MS + 100_000;
    await world.console.lookAround();
    expect(nudges()).toHaveLength(50);
    await world.console.lookAround();
    expect(nudges()).toHaveLength(60);
  });
});
