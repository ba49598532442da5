/** The operator's commands against the real console API, over HTTP. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { serializeEnvelope } from "../../../src/contracts/cloudevent.js";
import { APPROVAL_PENDING, type ApprovalRecord } from "../../../src/contracts/decisions.js";
import { argsDigest } from "../../../src/contracts/ids.js";
import { DEAD_LETTERED, type DeadLetter } from "../../../src/contracts/messages.js";
import { ensureDevKeys, loadSigner, loadTrust, type Signer, type Trust } from "../../../src/platform/keys.js";
import { verifyDecision } from "../../../src/platform/signing.js";
import { docket, type RunOptions } from "../../support/cli-fakes.js";
import { ACTOR, entryOf, journalMessage, messageOf, pendingOf, recordOf, START_MS, startConsole, summaryOf, viewOf, type ConsoleWorld } from "../../support/console-fakes.js";

let dir: string;
let keys: { signer: Signer; trust: Trust };
let world: ConsoleWorld;
const ARGS = '{"amount":50,"id":9007199254740993}';
const DIGEST = argsDigest(ARGS);
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "docket-operate-"));
  await ensureDevKeys(dir);
  keys = { signer: await loadSigner(dir, "console"), trust: await loadTrust(dir) };
});
afterAll(() => rm(dir, { recursive: true }));
beforeEach(async () => { world = await startConsole(keys); await open(); });
afterEach(() => world.close());

async function open(overrides: Partial<ApprovalRecord> = {}, args = ARGS): Promise<void> {
  const record = recordOf({ argsDigest: DIGEST, ...overrides });
  world.sessions.views.set(ACTOR, viewOf([record]));
  await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf(record, { args }), { id: `p${String(record.version)}` }));
}
const as = (roles: string[], args: string[], options: RunOptions = {}) => docket(args, { ...options, env: { DOCKET_CONSOLE_URL: world.http.url, DOCKET_API_KEY: world.key(roles) } });
const claims = async (index = 0) => verifyDecision(keys.trust, (JSON.parse(world.decisions.sent[index]!.data) as { decision: string }).decision, START_MS);

describe("docket approval", () => {
  it("list shows what waits, show its exact arguments and digest", async () => {
    expect((await as(["viewer"], ["approval", "list"])).out).toMatch(/APPROVAL .*\napr_1 +ord-1 +refund +high/);
    const shown = (await as(["viewer"], ["approval", "show", "apr_1"])).out;
    expect(shown).toContain(`arguments     ${ARGS}\n`);
    expect(shown).toContain(`digest        ${DIGEST}\n`);
    expect((await as(["viewer"], ["approval", "list", "-o", "jsonl"])).out).toMatch(/^\{"pending":.*\}\n$/);
  });

  it("approve shows the arguments, asks, and sends the version and digest that it showed", async () => {
    const ran = await as(["approver"], ["approval", "approve", "apr_1"], { interactive: true, answer: "y" });
    expect(ran).toMatchObject({ code: 0, out: "approved\n", asked: ["approve refund of session ord-1? [y/N] "] });
    expect(ran.err).toContain(ARGS);
    expect(await claims()).toMatchObject({ kind: "approve", version: 1, argsDigest: DIGEST, via: "cli" });
  });

  it.each([["n"], [""], ["yesss"]])("the answer %j sends nothing", async (answer) => {
    expect(await as(["approver"], ["approval", "approve", "apr_1"], { interactive: true, answer })).toMatchObject({ code: 1, out: "" });
    expect(world.decisions.sent).toEqual([]);
  });

  it("without a terminal it needs --yes", async () => {
    expect(await as(["approver"], ["approval", "approve", "apr_1"])).toMatchObject({ code: 2, err: expect.stringContaining("--yes") as unknown });
    expect(world.decisions.sent).toEqual([]);
    expect(await as(["approver"], ["approval", "approve", "apr_1", "--yes", "--digest", DIGEST, "-o", "json"])).toMatchObject({ code: 0, out: expect.stringContaining('"verdict": "approved"') as unknown });
  });

  it("modify, reject and respond carry their content", async () => {
    expect((await as(["approver"], ["approval", "modify", "apr_1", "--args", '{ "id": 9007199254740993, "amount": 40.00 }', "--yes"])).out).toBe("modified\n");
    expect((await claims()).args).toBe('{"amount":40.00,"id":9007199254740993}');
    await open();
    expect((await as(["approver"], ["approval", "reject", "apr_1", "--reason", "too much", "--yes"])).code).toBe(0);
    expect(await claims(1)).toMatchObject({ kind: "reject", text: "too much" });
    await open({ allowed: ["respond"] });
    expect((await as(["approver"], ["approval", "respond", "apr_1", "--text", "blue", "--yes"])).code).toBe(0);
    await open({ allowed: ["raise"], kind: "escalation" });
    expect((await as(["approver"], ["approval", "raise", "apr_1", "--budget", "2.5", "--yes"])).code).toBe(0);
    expect(await claims(3)).toMatchObject({ kind: "raise", raise: { budgetUsd: 2.5 } });
    expect((await as(["approver"], ["approval", "raise", "apr_1", "--yes"])).code).toBe(2);
    expect((await as(["approver"], ["approval", "modify", "apr_1", "--args", "{oops", "--yes"])).code).toBe(6);
  });

  it("a digest that was named and is not the one asked about is a conflict", async () => {
    expect((await as(["approver"], ["approval", "approve", "apr_1", "--yes", "--digest", "sha256:old"])).code).toBe(4);
    expect(world.decisions.sent).toEqual([]);
  });

  it("a console that shows other arguments than the digest is for is not trusted", async () => {
    await open({ approvalId: "apr_2" }, '{"amount":1}');
    for (const command of [["show", "apr_2"], ["approve", "apr_2", "--yes"]]) expect(await as(["approver"], ["approval", ...command])).toMatchObject({ code: 4, err: expect.stringContaining("digest_mismatch") as unknown });
    expect(world.decisions.sent).toEqual([]);
  });

  it("refusals have their exit codes: role, expiry, decided, unknown, not known yet, broker down", async () => {
    const approve = ["approval", "approve", "apr_1", "--yes"];
    expect((await as(["viewer"], approve)).code).toBe(5);
    expect((await as(["approver"], ["approval", "approve", "apr_9", "--yes"])).code).toBe(3);
    await open({ expiresAtMs: START_MS - 1 });
    expect((await as(["approver"], approve)).code).toBe(4);
    world.decisions.onSend = () => undefined;
    expect(await as(["approver"], approve)).toMatchObject({ code: 124, err: expect.stringContaining("not_known_yet") as unknown });
    world.decisions.down = true;
    expect((await as(["approver"], approve)).code).toBe(7);
    await world.console.handleJournal(journalMessage(entryOf(2, [{ type: "ApprovalOpened", record: recordOf({ argsDigest: DIGEST }) }, { type: "DecisionRecorded", approvalId: "apr_1", decisionId: "d", kind: "reject", principal: { id: "eve", class: "person", roles: [] }, via: "web", final: true }])));
    expect(await as(["approver"], approve)).toMatchObject({ code: 4, err: expect.stringContaining("decided: reject by eve") as unknown });
  });

  it("arguments that hide characters are shown with them spelled out", async () => {
    const args = '{"to":"ann\u202egro.live\u200b"}';
    await open({ approvalId: "apr_3", argsDigest: argsDigest(args) }, args);
    expect((await as(["viewer"], ["approval", "show", "apr_3"])).out).toContain('{"to":"ann\\u202egro.live\\u200b"}');
  });
});

describe("docket session and dlq", () => {
  it("list, show and cancel", async () => {
    await world.console.handleJournal(journalMessage(entryOf(1, []), { waitingFor: "approval of refund" }));
    expect((await as(["viewer"], ["session", "list", "--status", "AWAITING_APPROVAL"])).out).toMatch(/SESSION .*\nord-1 +orders +AWAITING_APPROVAL +approval of refund/);
    expect((await as(["viewer"], ["session", "list", "--status", "IDLE"]))).toMatchObject({ code: 0, out: "", err: expect.stringContaining("no sessions") as unknown });
    expect((await as(["viewer"], ["session", "show", "ord-1"])).out).toMatch(/approval +apr_1 refund risk high/);
    world.sessions.down = true;
    expect((await as(["viewer"], ["session", "show", "ord-1"])).err).toContain("does not answer");
    world.sessions.down = false;
    world.sessions.views.set(ACTOR, viewOf([], summaryOf()));
    expect((await as(["operator"], ["session", "cancel", "ord-1", "--reason", "x"])).code).toBe(0);
    expect((await as(["viewer"], ["session", "cancel", "ord-1"])).code).toBe(5);
  });

  it("dlq list, show, dry run, redrive, and again only by number", async () => {
    const event = serializeEnvelope({ specversion: "1.0", id: "e1", source: "/shop", type: "com.shop.order", subject: "ord-1", tenant: "default", data: "{}" });
    const letter: DeadLetter = { deadLetterId: "dl_1", kind: "event", reason: "expired", message: "too late", topic: "agent.tasks.incoming", app: "sessions", tries: 3, tenant: "default", sessionId: "ord-1", payload: event, payloadEncoding: "utf8", firstFailedAtMs: START_MS, lastFailedAtMs: START_MS };
    await world.console.handleDeadLetter(messageOf(DEAD_LETTERED, letter));
    expect((await as(["viewer"], ["dlq", "list"])).out).toMatch(/dl_1 +event +expired +ord-1 +3 +dead/);
    expect((await as(["viewer"], ["dlq", "show", "dl_1"])).out).toContain(event);
    const sent = () => world.tasks.sent.filter((e) => e.type.includes("redrive")).length;
    expect((await as(["operator"], ["dlq", "redrive", "dl_1", "--reason", "r", "--dry-run"])).out).toMatch(/dry run/);
    expect(sent()).toBe(0);
    expect((await as(["operator"], ["dlq", "redrive", "dl_1", "--reason", "r"])).code).toBe(0);
    expect((await as(["operator"], ["dlq", "redrive", "dl_1", "--reason", "r"])).code).toBe(4);
    expect((await as(["operator"], ["dlq", "redrive", "dl_1", "--reason", "r", "--redrive", "2"])).code).toBe(0);
    expect((await as(["viewer"], ["dlq", "redrive", "dl_1", "--reason", "r"])).code).toBe(5);
    expect(sent()).toBe(2);
  });
});
