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

  it("modify --set and --unset change what they name, keep everything else to the digit, and show what changes before it is sent", async () => {
    const ran = await as(["approver"], ["approval", "modify", "apr_1", "--set", "amount=40.00", "--set", 'to.name="Ann"', "--yes"]);
    expect(ran).toMatchObject({ code: 6, err: expect.stringContaining("--set to: the arguments have nothing there") as string });
    const args = '{"id":9007199254740993,"items":[{"sku":"a"},{"sku":"b"}],"note":"hi","amount":50}';
    const open2 = (): Promise<void> => open({ approvalId: "apr_5", argsDigest: argsDigest(args) }, args);
    await open2();
    const set = await as(["approver"], ["approval", "modify", "apr_5", "--set", "amount=9007199254740995", "--set", 'items[1].sku="c"', "--set", 'items[2]={"sku":"d"}', "--unset", "note", "--yes"]);
    expect(set.code, set.err).toBe(0);
    expect((await claims()).args).toBe('{"amount":9007199254740995,"id":9007199254740993,"items":[{"sku":"a"},{"sku":"c"},{"sku":"d"}]}');
    expect(set.err).toMatch(/changes +4\namount +50 -> 9007199254740995\nitems\[1\]\.sku +"b" -> "c"\nitems\[2\] +added \{"sku":"d"\}\nnote +removed, was "hi"\n/);
    await open2();
    const whole = await as(["approver"], ["approval", "modify", "apr_5", "--args", '{"id":"9007199254740993","amount":50}'], { interactive: true, answer: "n" });
    expect(whole).toMatchObject({ code: 1, asked: ["modify refund of session ord-1? [y/N] "] });
    expect(whole.err).toMatch(/id +9007199254740993 -> "9007199254740993" +\(was a number, is a string\)\nitems +removed/);
    expect(world.decisions.sent).toHaveLength(1);
  });

  it.each([
    [["--set", "amout=4"], 0, ""], [["--set", "amount=forty"], 6, 'a text is written in quotes: --set \'amount="forty"\''], [["--set", "amount"], 2, "expected PATH=JSON"], [["--set", "amount[0]=1"], 6, "is a number, and has no numbered items"],
    [["--set", "=1"], 2, "expected it to begin with a path"], [["--unset", "amout"], 6, "did you mean amount?"], [["--unset", "amount=1"], 2, "expected a path"], [["--set", "amount=50"], 2, "nothing would change"], [[], 2, "nothing to modify"], [["--args", ARGS], 2, "nothing would change"],
  ])("modify %j ends with %i and says why", async (flags, code, words) => {
    expect(await as(["approver"], ["approval", "modify", "apr_1", "--yes", ...flags])).toMatchObject({ code, err: expect.stringContaining(words) as string });
    expect(world.decisions.sent).toHaveLength(code === 0 ? 1 : 0);
  });

  it("a refusal names the places in the arguments that do not fit", async () => {
    world.decisions.onSend = (envelope) => { void verifyDecision(keys.trust, (JSON.parse(envelope.data) as { decision: string }).decision, START_MS).then(({ jti }) => { world.sessions.verdicts.set(jti, "arguments_invalid"); }); };
    const ran = await as(["approver"], ["approval", "modify", "apr_1", "--yes", "--set", 'amount="many"', "--set", "colour=7"]);
    expect(ran.code).toBe(6);
    expect(ran.err).toMatch(/do not fit the tool's schema\n(.*\n)* {2}amount: got "many" \(a string\), expected: it must be integer\n/);
    expect(ran.err).toContain("  colour: is no argument of this tool\n");
    expect(ran.err).toContain("code:  arguments_invalid\n");
    const json = JSON.parse((await as(["approver"], ["approval", "modify", "apr_1", "--yes", "--set", "amount=null", "-o", "json"])).out) as { errors: object[] };
    expect(json.errors).toContainEqual({ path: "amount", message: "got null (null), expected: it must be integer" });
  });

  it("--reason goes to the session with every decision that has no text of its own", async () => {
    const because = ["--yes", "--reason", "seen with the customer"];
    const decide = async (overrides: Partial<ApprovalRecord>, args: string[]): Promise<unknown> => {
      await open({ version: world.decisions.sent.length + 1, ...overrides });
      expect(await as(["approver"], ["approval", ...args, ...because])).toMatchObject({ code: 0 });
      return (await claims(world.decisions.sent.length - 1)).text;
    };
    expect(await decide({}, ["approve", "apr_1"])).toBe("seen with the customer");
    expect(await decide({}, ["modify", "apr_1", "--set", "amount=1"])).toBe("seen with the customer");
    expect(await decide({}, ["reject", "apr_1"])).toBe("seen with the customer");
    for (const kind of ["raise", "retry", "give_up"] as const) expect(await decide({ allowed: [kind], kind: "escalation" }, [kind.replace("_", "-"), "apr_1", ...(kind === "raise" ? ["--steps", "9"] : [])])).toBe("seen with the customer");
    const audit = await as(["admin"], ["audit", "list"]);
    expect(audit.out.match(/approval\.approve .*seen with the customer/g)?.length).toBeGreaterThan(0);
  });

  it.each([[["snooze", "apr_1", "99d"], "FOR: got 99d, expected 30d at most"], [["link", "apr_1", "ann", "--expires", "8d"], "--expires: got 8d, expected 7d at most"], [["link", "apr_1", "ann", "--expires", "5s"], "expected 1m at least"], [["approve", "apr_1", "--yes", "--for-session", "8d"], "--for-session: got 8d, expected 7d at most"]])("%j names the bound", async (args, words) => {
    expect(await as(["admin"], ["approval", ...args])).toMatchObject({ code: 2, err: expect.stringContaining(words) as string });
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
    world.patience(100);
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
    expect((await as(["viewer"], ["dlq", "show", "dl_1"])).out).toContain("redriven 2 times");
  });

  it("what happened once is said to have happened once", async () => {
    const letter: DeadLetter = { deadLetterId: "dl_2", kind: "event", reason: "expired", message: "too late", topic: "t", app: "sessions", tries: 1, tenant: "default", sessionId: "ord-1", payload: serializeEnvelope({ specversion: "1.0", id: "e2", source: "/shop", type: "com.shop.order", subject: "ord-1", tenant: "default", data: "{}" }), payloadEncoding: "utf8", firstFailedAtMs: START_MS, lastFailedAtMs: START_MS };
    await world.console.handleDeadLetter(messageOf(DEAD_LETTERED, letter));
    await as(["operator"], ["dlq", "redrive", "dl_2", "--reason", "r"]);
    expect((await as(["viewer"], ["dlq", "show", "dl_2"])).out).toMatch(/redriven once\n/);
    expect((await as(["operator"], ["dlq", "redrive", "dl_2", "--reason", "r"])).err).toContain("was redriven once");
  });
});

describe("docket lists", () => {
  it("status says how far they are, rebuild has all journals read again, and names sessions that are not there", async () => {
    await world.console.handleJournal(journalMessage(entryOf(1, [])));
    expect((await as(["viewer"], ["lists", "status"])).out).toMatch(/journals +1\n.*with a gap +0\n/s);
    expect((await as(["operator"], ["lists", "rebuild", "--reason", "x"])).code).toBe(5);
    expect(await as(["admin"], ["lists", "rebuild", "--reason", "after the restore"])).toMatchObject({ code: 0, out: expect.stringMatching(/journals to read +1/) as string });
    expect(await as(["admin"], ["lists", "rebuild", "--session", "nobody", "--reason", "x"])).toMatchObject({ code: 3, out: expect.stringMatching(/no such session +nobody/) as string });
  });
});
