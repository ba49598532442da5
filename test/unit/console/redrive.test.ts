/** Redrives of every kind and by the hundred: new events with a causation link, each once, audited; groups of one cause; numbers; forgetting. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { serializeEnvelope } from "../../../src/contracts/cloudevent.js";
import { APPROVAL_PENDING, DECISION_MADE } from "../../../src/contracts/decisions.js";
import { eventKeyOf } from "../../../src/contracts/ids.js";
import { JOURNAL_APPENDED } from "../../../src/contracts/journal.js";
import { SESSION_REDRIVE, type DeadLetter } from "../../../src/contracts/messages.js";
import { Problem } from "../../../src/contracts/problems.js";
import { TOOL_COMPLETED, TOOL_REQUESTED } from "../../../src/contracts/tools.js";
import { fingerprintOf } from "../../../src/console/fingerprint.js";
import { openReadModel } from "../../../src/console/read-model/open.js";
import { ensureDevKeys, loadSigner, loadTrust, type Signer, type Trust } from "../../../src/platform/keys.js";
import { signDecision } from "../../../src/platform/signing.js";
import { docket } from "../../support/cli-fakes.js";
import { ACTOR, entryOf, messageOf, pendingOf, START_MS, startConsole, summaryOf, type ConsoleWorld } from "../../support/console-fakes.js";
import { event, lettersIn } from "../../support/console-letters.js";

let dir: string;
let keys: { signer: Signer; trust: Trust };
let world: ConsoleWorld;
let admin: string, operator: string, viewer: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "docket-redrive-"));
  await ensureDevKeys(dir);
  keys = { signer: await loadSigner(dir, "console"), trust: await loadTrust(dir) };
});
afterAll(() => rm(dir, { recursive: true }));
beforeEach(async () => {
  world = await startConsole(keys);
  [admin, operator, viewer] = [world.key(["admin"]), world.key(["operator"], { id: "otto" }), world.key(["viewer"])];
});
afterEach(() => world.close());

const { dead, one, many, commands } = lettersIn(() => world, () => operator);
const groups = async (query = "") => ((await world.call("GET", `/v1/dead-letters/groups${query}`, { key: viewer })).body["items"] as Record<string, unknown>[]);

describe("a redrive of each kind", () => {
  const addressed = { tenant: "default", sessionId: "ord-1", actorId: ACTOR };
  const result = messageOf(TOOL_COMPLETED, { ...addressed, callId: "c", proof: "x" }, { id: "result-1" });
  const decision = async (exp: number): Promise<string> => messageOf(DECISION_MADE, { ...addressed, approvalId: "apr_1", decision: await signDecision(keys.signer, {
    iss: "docket/console", aud: "docket/sessions", sub: ACTOR, jti: "dec_1", approvalId: "apr_1", version: 1, argsDigest: "d", kind: "approve", principal: { id: "ann", class: "person", roles: [] }, via: "cli", iat: 1, exp,
  }) }, { id: "dec_1" });

  it.each<[string, () => Promise<Partial<DeadLetter>>, string, string | undefined]>([
    ["event", async () => ({ payload: serializeEnvelope(event("e")) }), "event", "e"],
    ["tool request that holds its event", async () => ({ kind: "tool_request" as const, payload: JSON.stringify({ tool: "refund", event: serializeEnvelope(event("e")) }) }), "event", "e"],
    ["tool result", async () => ({ kind: "tool_result" as const, payload: result }), "tool_result", "result-1"],
    ["decision that is still valid", async () => ({ kind: "decision" as const, payload: await decision(START_MS / 1000 + 60) }), "decision", "dec_1"],
    ["event that came as bytes", async () => ({ payload: Buffer.from(serializeEnvelope(event("e"))).toString("base64"), payloadEncoding: "base64" as const }), "event", "e"],
  ])("%s: a command to its session, with what died and the cause", async (_name, make, as, cause) => {
    const about = await make();
    const id = await dead(about);
    expect(await one(id)).toMatchObject({ status: 202, body: { action: "send", sessionId: "ord-1" } });
    expect(commands()).toMatchObject([{ id: `redrive:${id}:1`, type: SESSION_REDRIVE, subject: "ord-1", deadLetterId: id, as, causationid: cause, redrive: 1 }]);
  });

  it("tool request of the worker's, which names only its run: the event is found in the session's journal", async () => {
    const request = messageOf(TOOL_REQUESTED, { ...addressed, callId: "c" });
    const runId = "run_1";
    world.sessions.journals.set(ACTOR, [entryOf(1, []), entryOf(2, [{ type: "EventReceived", key: "k", source: "/shop", id: "e-7", eventType: "com.shop.order.placed", mode: "enqueue", runId, correlationId: runId, data: { text: '{"n":9007199254740993}', truncated: false } }])]);
    const id = await dead({ kind: "tool_request", reason: "bad_signature", app: "tools", payload: request, actorId: ACTOR, runId });
    expect(await one(id)).toMatchObject({ status: 202 });
    expect(JSON.parse(commands()[0]!.event)).toMatchObject({ id: "e-7", source: "/shop", type: "com.shop.order.placed", subject: "ord-1" });
    expect(commands()[0]!.event).toContain("9007199254740993");
    expect(await one(await dead({ kind: "tool_request", payload: request, actorId: ACTOR, runId: "run_gone" }))).toMatchObject({ status: 422 });
    world.sessions.down = true;
    expect(await one(await dead({ kind: "tool_request", payload: request, actorId: ACTOR, runId }))).toMatchObject({ status: 503 });
  });

  it("decision that has run out: refused, with what to do", async () => {
    const id = await dead({ kind: "decision", payload: await decision(START_MS / 1000 - 1) });
    expect(await one(id)).toMatchObject({ status: 410, body: { code: "expired", hint: "decide again: docket approval show apr_1" } });
    expect(world.tasks.sent).toEqual([]);
  });

  it("what is signed cannot be edited", async () => {
    expect(await one(await dead({ kind: "tool_result", payload: result }), { payload: result }, admin)).toMatchObject({ status: 422, body: { detail: expect.stringContaining("signed") as unknown } });
  });

  it("journal event and approval: taken in where they fit by now, and left dead where they do not", async () => {
    const journal = messageOf(JOURNAL_APPENDED, { appended: [{ entry: entryOf(1, []), summary: summaryOf() }] });
    const approval = messageOf(APPROVAL_PENDING, pendingOf());
    for (const [kind, payload] of [["journal", journal], ["approval", approval]] as const) {
      const id = await dead({ kind, payload });
      expect(await one(id)).toMatchObject({ status: 202, body: { action: "take-in" } });
      const unfit = await dead({ kind, payload: "{}" });
      expect(await one(unfit)).toMatchObject({ status: 422, body: { code: "validation_failed" } });
      expect((await world.call("GET", `/v1/dead-letters/${unfit}`, { key: viewer })).body).toMatchObject({ state: "dead" });
      expect(await one(unfit, { payload }, admin)).toMatchObject({ status: 202 });
    }
    expect((await world.call("GET", "/v1/sessions", { key: viewer })).body["items"]).toHaveLength(1);
    expect((await world.call("GET", "/v1/approvals", { key: viewer })).body["items"]).toHaveLength(1);
  });
});

describe("a bulk redrive", () => {
  it("counts first, then sends the oldest first, page by page; asked for again it sends nothing", async () => {
    const ids: string[] = [];
    for (let n = 0; n < 7; n += 1) ids.push(await dead());
    const other = await dead({ reason: "expired", message: "too late" });
    expect(await many({ filter: { reason: "mailbox_full" }, dryRun: true })).toMatchObject({ status: 200, body: { dryRun: true, matched: 7, redriven: 7, byKind: { event: 7 }, skipped: [] } });
    expect(world.tasks.sent).toEqual([]);
    const matched: unknown[] = [];
    let cursor: unknown;
    do {
      const page = await many({ filter: { reason: "mailbox_full" }, limit: 3, ...(cursor === undefined ? {} : { cursor }) });
      expect(page.status).toBe(202);
      matched.push(page.body["matched"]);
      cursor = page.body["nextCursor"];
    } while (cursor !== undefined);
    expect(matched).toEqual([7, 4, 1]);
    expect(commands().map((command) => command.deadLetterId)).toEqual(ids);
    expect((await many({ filter: { reason: "mailbox_full" } })).body).toMatchObject({ matched: 0, redriven: 0 });
    expect(world.tasks.sent).toHaveLength(7);
    expect((await many({ all: true })).body).toMatchObject({ matched: 1, redriven: 1 });
    expect(commands().at(-1)?.deadLetterId).toBe(other);
  });

  it("asked for by two people at once sends each letter under one id", async () => {
    for (let n = 0; n < 5; n += 1) await dead();
    const answers = await Promise.all([many({ all: true }), many({ all: true }, admin)]);
    expect(answers.map((answer) => answer.status)).toEqual([202, 202]);
    expect(new Set(commands().map((command) => command.id)).size).toBe(5);
    expect(commands().every((command) => command.redrive === 1)).toBe(true);
  });

  it("leaves out what cannot be redriven, says why, and goes on", async () => {
    await dead();
    const unreadable = await dead({ kind: "unreadable", reason: "not_json", payload: "{" });
    await dead();
    expect((await many({ all: true })).body).toMatchObject({ matched: 3, redriven: 2, skipped: [{ deadLetterId: unreadable, code: "not_a_cloudevent" }] });
    expect((await world.call("GET", `/v1/dead-letters/${unreadable}`, { key: viewer })).body).toMatchObject({ state: "dead", redriveCount: 0 });
  });

  it("stops where the broker is gone, and goes on under the same ids", async () => {
    for (let n = 0; n < 4; n += 1) await dead();
    world.tasks.onSend = () => { world.tasks.down = world.tasks.sent.length === 2; };
    expect(await many({ all: true })).toMatchObject({ status: 503, body: { code: "broker_unavailable" } });
    world.tasks.down = false;
    world.tasks.onSend = () => undefined;
    expect((await many({ all: true })).body).toMatchObject({ matched: 2, redriven: 2 });
    expect(commands().every((command) => command.redrive === 1)).toBe(true);
    expect(new Set(commands().map((command) => command.deadLetterId)).size).toBe(4);
  });

  it.each<[string, object, number]>([["without a filter", {}, 400], ["without a reason", { reason: "", all: true }, 422], ["with an unknown filter", { filter: { colour: "red" } }, 422], ["of a viewer", { all: true }, 403]])("%s is refused", async (name, body, status) => {
    await dead();
    expect(await many(body, name === "of a viewer" ? viewer : operator)).toMatchObject({ status });
    expect(world.tasks.sent).toEqual([]);
  });

  it("touches one tenant only", async () => {
    await dead({ tenant: "other" });
    expect((await many({ all: true })).body).toMatchObject({ matched: 0 });
  });

  it("is audited letter by letter, with who and why", async () => {
    const ids = [await dead(), await dead()];
    await many({ all: true });
    const rows = ((await world.call("GET", "/v1/audit", { key: admin })).body["items"] as { action: string; target: string; outcome: string; principalId: string; reason: string }[]).filter((row) => row.action === "dead-letter.redrive");
    expect(rows.map((row) => `${row.target} ${row.outcome} ${row.principalId} ${row.reason}`).sort()).toEqual(ids.flatMap((id) => [`${id} redriven otto again`, `${id} requested otto again`]).sort());
  });

  it("by the command: groups, dry run, edit, and what was skipped as exit code", async () => {
    const cli = (args: string[], roles = ["operator"]) => docket(args, { cwd: dir, env: { DOCKET_CONSOLE_URL: world.http.url, DOCKET_API_KEY: world.key(roles) } });
    for (let n = 0; n < 3; n += 1) await dead();
    const odd = await dead({ kind: "unreadable", reason: "not_json", message: "x", payload: "{" });
    const listed = (await cli(["dlq", "groups"])).out;
    const fingerprint = /(fp_[0-9a-f]{16}) +3 +3 +event +mailbox_full/.exec(listed)?.[1];
    expect(fingerprint).toBeDefined();
    expect((await cli(["dlq", "redrive", "--reason", "r"])).code).toBe(2);
    expect((await cli(["dlq", "redrive", odd, "--all", "--reason", "r"])).code).toBe(2);
    expect((await cli(["dlq", "redrive", "--all", "--reason", "r", "--since", "yesterday-ish"])).code).toBe(2);
    const dry = await cli(["dlq", "redrive", "--fingerprint", fingerprint!, "--since", "2020-01-01", "--reason", "r", "--dry-run"]);
    expect(dry).toMatchObject({ code: 0, out: expect.stringMatching(/would be redriven +3, 3 event/) as unknown });
    expect(world.tasks.sent).toEqual([]);
    expect(JSON.parse((await cli(["dlq", "redrive", "--all", "--reason", "r", "-o", "json"])).out)).toMatchObject({ matched: 4, redriven: 3, skipped: [{ deadLetterId: odd }] });
    expect((await cli(["dlq", "redrive", "--all", "--reason", "r"])).code).toBe(8);
    await writeFile(join(dir, "event.json"), serializeEnvelope(event("mended", { data: '{"total":7}' })));
    expect((await cli(["dlq", "redrive", odd, "--reason", "mended", "--edit", "event.json"])).code).toBe(5);
    expect((await cli(["dlq", "redrive", odd, "--reason", "mended", "--edit", "event.json"], ["admin"])).code).toBe(0);
    expect(JSON.parse(commands().at(-1)!.event)).toMatchObject({ id: "mended", data: { total: 7 } });
  });
});

describe("a bulk discard", () => {
  const discard = (body: object, key = operator) => world.call("POST", "/v1/dead-letters/discard", { key, body });
  it("counts first and changes nothing, then settles page by page what the filter names, each with its row and reason", async () => {
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) ids.push(await dead());
    const other = await dead({ reason: "expired", message: "too late" });
    expect(await discard({ filter: { reason: "mailbox_full" }, dryRun: true })).toMatchObject({ status: 200, body: { dryRun: true, matched: 5, discarded: 5 } });
    expect((await world.call("GET", "/v1/dead-letters?state=dead", { key: viewer })).body["items"]).toHaveLength(6);
    expect((await world.call("GET", "/v1/audit", { key: admin })).body["items"]).toEqual([]);
    const sums: unknown[] = [];
    let cursor: unknown;
    do {
      const { body } = await discard({ reason: "shop was rebuilt", filter: { reason: "mailbox_full" }, limit: 2, ...(cursor === undefined ? {} : { cursor }) });
      sums.push([body["matched"], body["discarded"]]);
      cursor = body["nextCursor"];
    } while (cursor !== undefined);
    expect(sums).toEqual([[5, 2], [3, 2], [1, 1]]);
    expect(world.tasks.sent).toEqual([]);
    expect((await world.call("GET", `/v1/dead-letters/${other}`, { key: viewer })).body).toMatchObject({ state: "dead" });
    const rows = ((await world.call("GET", "/v1/audit", { key: admin })).body["items"] as { action: string; target: string; outcome: string; principalId: string; reason: string }[]);
    expect(rows.filter(({ outcome }) => outcome === "discarded").map((row) => `${row.action} ${row.target} ${row.principalId} ${row.reason}`).sort()).toEqual(ids.map((id) => `dead-letter.discard ${id} otto shop was rebuilt`).sort());
  });

  it("leaves alone what is settled, and another tenant's", async () => {
    const settled = await dead();
    await one(settled);
    await dead({ tenant: "other" });
    expect((await discard({ reason: "r", all: true })).body).toMatchObject({ matched: 0, discarded: 0 });
    expect((await world.call("GET", `/v1/dead-letters/${settled}`, { key: viewer })).body).toMatchObject({ state: "redriven" });
  });

  it.each<[string, object, number]>([["without a filter", { reason: "r" }, 400], ["without a reason", { all: true }, 422], ["of a viewer", { reason: "r", all: true }, 403]])("%s is refused", async (name, body, status) => {
    const id = await dead();
    expect(await discard(body, name === "of a viewer" ? viewer : operator)).toMatchObject({ status });
    expect((await world.call("GET", `/v1/dead-letters/${id}`, { key: viewer })).body).toMatchObject({ state: "dead" });
  });

  it("by the command: one, a dry run, and all that a filter names", async () => {
    const cli = (args: string[]) => docket(args, { cwd: dir, env: { DOCKET_CONSOLE_URL: world.http.url, DOCKET_API_KEY: operator } });
    const [first] = [await dead(), await dead(), await dead()];
    expect((await cli(["dlq", "discard", "--reason", "r"])).code).toBe(2);
    expect((await cli(["dlq", "discard", first, "--all", "--reason", "r"])).code).toBe(2);
    expect(await cli(["dlq", "discard", first, "--reason", "r"])).toMatchObject({ code: 0, out: expect.stringContaining("discarded") as unknown });
    expect(JSON.parse((await cli(["dlq", "discard", "--code", "mailbox_full", "--reason", "r", "--dry-run", "-o", "json"])).out)).toEqual({ dryRun: true, matched: 2, discarded: 2 });
    expect(JSON.parse((await cli(["dlq", "discard", "--code", "mailbox_full", "--reason", "r", "-o", "json"])).out)).toEqual({ dryRun: false, matched: 2, discarded: 2 });
  });
});

describe("a redrive that does not arrive", () => {
  const outcomes = new Map<string, string>();
  const look = async (afterMs: number): Promise<number> => { world.clock.ms += afterMs; await world.console.lookAround(); return world.tasks.sent.length; };
  const stateOf = async (id: string): Promise<unknown> => (await world.call("GET", `/v1/dead-letters/${id}`, { key: world.key(["viewer"]) })).body["state"];
  beforeEach(() => {
    outcomes.clear();
    world.sessions.readOutcome = async (actorId: string, key: string) => ({ state: outcomes.has(`${actorId}/${key}`) ? "ended" as const : "unknown" as const });
  });

  it("is sent again, same id, ever more rarely, until the session knows what it carries", async () => {
    const id = await dead({ payload: serializeEnvelope(event("lost")) });
    await one(id);
    expect(await look(14_000)).toBe(1);
    expect(await look(2_000)).toBe(2);
    expect(await look(29_000)).toBe(2);
    expect(await look(2_000)).toBe(3);
    expect(new Set(commands().map((command) => command.id))).toEqual(new Set([`redrive:${id}:1`]));
    expect(world.tasks.sent[2]).toEqual(world.tasks.sent[0]);
    outcomes.set(`${ACTOR}/${eventKeyOf("/shop", "lost#redrive-1")}`, "ended");
    expect(await look(3_600_000)).toBe(3);
    outcomes.clear();
    expect(await look(3_600_000)).toBe(3);
    expect(await stateOf(id)).toBe("redriven");
  });

  it("of what is signed has arrived when its command has an outcome", async () => {
    const id = await dead({ kind: "tool_result", payload: messageOf(TOOL_COMPLETED, { tenant: "default", sessionId: "ord-1", actorId: ACTOR, callId: "c" }) });
    await one(id);
    outcomes.set(`${ACTOR}/${eventKeyOf("/docket/console", `redrive:${id}:1`)}`, "ended");
    expect(await look(60_000)).toBe(1);
  });

  it("is sent by the next process where the first one died before its publish", async () => {
    const id = await dead();
    world.tasks.publish = () => new Promise(() => undefined); // dies here
    void one(id).catch(() => undefined);
    await expect.poll(async () => (await world.call("GET", `/v1/dead-letters/${id}`, { key: viewer })).body["redriveCount"]).toBe(1);
    world.tasks.publish = async (envelope) => { world.tasks.sent.push(envelope); };
    await expect.poll(() => look(16_000)).toBe(1);
    expect(commands()).toMatchObject([{ id: `redrive:${id}:1` }]);
    outcomes.set(`${ACTOR}/${eventKeyOf("/shop", `${(JSON.parse(commands()[0]!.event) as { id: string }).id}#redrive-1`)}`, "ended");
    await look(600_000);
    expect(await stateOf(id)).toBe("redriven");
  });

  it("waits while no actor answers, and is never sent where the broker refused it", async () => {
    await one(await dead());
    world.sessions.readOutcome = async () => { throw new Problem("actor_unavailable", "down"); };
    expect(await look(60_000)).toBe(1);
    world.sessions.readOutcome = async () => ({ state: "unknown" });
    expect(await look(60_000)).toBe(2);
    world.tasks.down = true;
    expect(await one(await dead())).toMatchObject({ status: 503 });
    world.tasks.down = false;
    world.sessions.readOutcome = async () => ({ state: "ended" });
    expect(await look(3_600_000)).toBe(2);
  });

  it("is given up in the end, and its letter is dead again", async () => {
    const id = await dead();
    await one(id);
    for (let n = 0; n < 40; n += 1) await look(600_000);
    expect(world.tasks.sent).toHaveLength(30);
    expect(await stateOf(id)).toBe("dead");
    expect(await one(id)).toMatchObject({ status: 202, body: { eventId: `redrive:${id}:1` } });
  });
});

describe("groups", () => {
  it("take together what differs only in ids, numbers and quoted values, the most numerous first", async () => {
    for (let n = 0; n < 3; n += 1) await dead();
    for (const who of ['"ann"', '"bob\'s"', '"c"']) await dead({ reason: "agent_unknown", message: `no agent takes event 0b24a2ba-8e6f-40a6-92cd-f16bdce6706d: no agent is named ${who}` });
    await dead({ reason: "agent_unknown", message: "another thing" });
    await dead({ tenant: "other" });
    await many({ filter: { reason: "mailbox_full" }, limit: 1 });
    const all = await groups();
    expect(all.map((group) => [group["reason"], group["count"], group["dead"]])).toEqual([["agent_unknown", 3, 3], ["mailbox_full", 3, 2], ["agent_unknown", 1, 1]]);
    expect(await groups("?state=dead&reason=mailbox_full")).toMatchObject([{ count: 2, firstAtMs: START_MS }]);
    const listed = await world.call("GET", `/v1/dead-letters?fingerprint=${String(all[0]!["fingerprint"])}`, { key: viewer });
    expect(listed.body["items"]).toHaveLength(3);
    expect(await world.call("GET", "/v1/dead-letters/groups?colour=red", { key: viewer })).toMatchObject({ status: 422 });
  });

  it("are the same for letters whose own ids have no digit", () => {
    const of = (word: string): DeadLetter => ({ deadLetterId: `dl_${word}`, kind: "event", reason: "agent_unknown", message: `no agent takes event wanted-${word} of session ${word}`, topic: "t", app: "sessions", tries: 1, payload: "", payloadEncoding: "utf8", firstFailedAtMs: 1, lastFailedAtMs: 1, sessionId: word, envelope: { id: `wanted-${word}`, type: "x", subject: word } });
    expect(fingerprintOf(of("invoice"))).toBe(fingerprintOf(of("refund-a1")));
    expect(fingerprintOf({ ...of("invoice"), message: "no agent takes event wanted-invoice of this tenant" })).not.toBe(fingerprintOf(of("invoice")));
  });

  it("tell apart what has another reason, tool, or event type", () => {
    const base: DeadLetter = { deadLetterId: "a", kind: "event", reason: "r", message: "m 1", topic: "t", app: "sessions", tries: 1, payload: "", payloadEncoding: "utf8", firstFailedAtMs: 1, lastFailedAtMs: 1 };
    const others: Partial<DeadLetter>[] = [{ reason: "s" }, { kind: "journal" }, { tool: "refund" }, { envelope: { type: "x" } }, { message: "n 1" }, { app: "tools" }];
    expect(fingerprintOf({ ...base, deadLetterId: "b", message: "m 2", payload: "other", tries: 5, sessionId: "s" })).toBe(fingerprintOf(base));
    for (const other of others) expect(fingerprintOf({ ...base, ...other }), JSON.stringify(other)).not.toBe(fingerprintOf(base));
  });

  it("are there for letters that an older version kept", async () => {
    const file = join(dir, "old.db");
    const old = new Database(file);
    old.exec("create table dead_letters (dead_letter_id text primary key, tenant text, session_id text, kind text not null, reason text not null, state text not null, received_at integer not null, redrive_count integer not null default 0, settled_at integer, letter text not null)");
    const kept: DeadLetter = { deadLetterId: "dl_old", kind: "event", reason: "expired", message: "m", topic: "t", app: "sessions", tries: 1, payload: "x", payloadEncoding: "utf8", firstFailedAtMs: 1, lastFailedAtMs: 1 };
    old.prepare("insert into dead_letters values ('dl_old', 'default', null, 'event', 'expired', 'dead', 1, 0, null, ?)").run(JSON.stringify(kept));
    old.close();
    for (let n = 0; n < 2; n += 1) {
      const db = openReadModel(file);
      expect(await db.selectFrom("dead_letters").select("fingerprint").execute()).toEqual([{ fingerprint: fingerprintOf(kept) }]);
      await db.destroy();
    }
  });
});

describe("numbers", () => {
  it("tell a scraper how many there are by kind, reason and state, and how old the oldest unsettled one is", async () => {
    for (let n = 0; n < 3; n += 1) await dead();
    await dead({ tenant: "other", kind: "tool_request", reason: 'evil"} 1\ndocket_dead_letters{x="' });
    await many({ all: true, limit: 1 });
    world.clock.ms += 90_000;
    const key = world.key(["admin"], { scopes: ["console:metrics"] });
    const response = await fetch(`${world.http.url}/metrics`, { headers: { authorization: `Bearer ${key}` } });
    expect(response.headers.get("content-type")).toContain("version=0.0.4");
    expect((await response.text()).split("\n").filter((line) => !line.startsWith("#")).sort()).toEqual([
      "", 'docket_dead_letter_oldest_seconds{kind="event"} 90', 'docket_dead_letter_oldest_seconds{kind="tool_request"} 90',
      'docket_dead_letters{kind="event",reason="mailbox_full",state="dead"} 2', 'docket_dead_letters{kind="event",reason="mailbox_full",state="redriven"} 1', 'docket_dead_letters{kind="tool_request",reason="other",state="dead"} 1',
    ]);
    expect(await world.call("GET", "/v1/dead-letters", { key })).toMatchObject({ status: 403 });
    expect(await world.call("GET", "/metrics", { key: operator })).toMatchObject({ status: 403 });
    expect(await world.call("GET", "/metrics")).toMatchObject({ status: 401 });
  });
});

describe("retention", () => {
  it("forgets settled letters after 90 days, unsettled ones after 180, and never sooner", async () => {
    const day = 86_400_000;
    const [settled, open] = [await dead(), await dead()];
    await one(settled);
    const left = async (days: number) => {
      world.clock.ms = START_MS + days * day;
      await world.console.lookAround();
      return ((await world.call("GET", "/v1/dead-letters", { key: world.key(["viewer"]) })).body["items"] as { letter: DeadLetter }[]).map((item) => item.letter.deadLetterId).sort();
    };
    expect(await left(89.9)).toEqual([settled, open].sort());
    expect(await left(90.1)).toEqual([open]);
    expect(await left(179.9)).toEqual([open]);
    expect(await left(180.1)).toEqual([]);
  });
});
