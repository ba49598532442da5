/** The CLI covers what the console does: every route of the console, read from its router, is reached by a command, or is an exception with its reason. */
import { mkdtempSync, rmSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { EXIT } from "../../../src/cli/exit.js";
import { APPROVAL_PENDING } from "../../../src/contracts/decisions.js";
import { argsDigest } from "../../../src/contracts/ids.js";
import { DEAD_LETTERED, PROMPT_RECEIVED } from "../../../src/contracts/messages.js";
import { ensureDevKeys, loadSigner, loadTrust, type Signer, type Trust } from "../../../src/platform/keys.js";
import { docket } from "../../support/cli-fakes.js";
import { ACTOR, entryOf, messageOf, pendingOf, recordOf, START_MS, startConsole, summaryOf, viewOf, type ConsoleWorld } from "../../support/console-fakes.js";
import { noticesText, settingsFor, startReceiver, type Receiver } from "../../support/notices.js";
import { routesOf } from "../../support/routes.js";

const ARGS = '{"amount":50}';
const reason = ["--reason", "because"];

/** A command for each route. A route that is neither here nor among the exceptions fails the test: write the command, or say why there is none. */
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  "GET /v1/sessions": ["session", "list"], "GET /v1/sessions/:id": ["session", "show", "ord-1"], "GET /v1/sessions/:id/journal": ["session", "journal", "ord-1"],
  "GET /v1/sessions/:id/state": ["session", "state", "ord-1"], "GET /v1/sessions/:id/export": ["session", "export", "ord-1"],
  "POST /v1/sessions/:id/cancel": ["session", "cancel", "ord-1", ...reason], "POST /v1/sessions/:id/close": ["session", "close", "ord-1", ...reason], "POST /v1/sessions/:id/delete": ["session", "delete", "ord-1", "--yes", ...reason],
  "POST /v1/sessions/:id/release": ["session", "release", "ord-1", ...reason], "POST /v1/sessions/:id/allowances/:allowance/revoke": ["session", "revoke", "ord-1", "alw_1", ...reason],
  "GET /v1/approvals": ["approval", "list"], "GET /v1/approvals/:id": ["approval", "show", "apr_1"], "GET /v1/approvals/:id/similar": ["approval", "similar", "apr_1"],
  "POST /v1/approvals/:id/decisions": ["approval", "approve", "apr_1", "--yes", ...reason], "POST /v1/approvals/decisions": ["approval", "approve", "apr_1", "apr_2", "--yes", ...reason],
  "POST /v1/approvals/:id/assign": ["approval", "assign", "apr_1", "ben", ...reason], "POST /v1/approvals/:id/snooze": ["approval", "snooze", "apr_1", "2h", ...reason],
  "GET /v1/approvals/:id/notices": ["approval", "notices", "apr_1"], "POST /v1/approvals/:id/notices/:notice/resend": ["approval", "resend", "apr_1", "ntc_1", ...reason], "POST /v1/approvals/:id/links": ["approval", "link", "apr_1", "ann"],
  "GET /v1/dead-letters": ["dlq", "list"], "GET /v1/dead-letters/groups": ["dlq", "groups"], "GET /v1/dead-letters/:id": ["dlq", "show", "dl_1"],
  "POST /v1/dead-letters/:id/redrive": ["dlq", "redrive", "dl_1", ...reason], "POST /v1/dead-letters/redrive": ["dlq", "redrive", "--all", ...reason],
  "POST /v1/dead-letters/:id/discard": ["dlq", "discard", "dl_1", ...reason], "POST /v1/dead-letters/discard": ["dlq", "discard", "--all", ...reason],
  "GET /v1/policy": ["policy", "list"], "POST /v1/policy/try": ["policy", "try", "--tool", "refund", "--args", ARGS],
  "GET /v1/agents": ["agent", "list"], "GET /v1/agents/running": ["agent", "running"], "GET /v1/costs": ["costs"],
  "GET /v1/system": ["system", "show"], "GET /v1/diagnosis": ["system", "diagnosis"], "GET /v1/overview": ["system", "overview"], "GET /v1/notices": ["system", "notices"],
  "GET /v1/views": ["view", "list"], "POST /v1/views": ["view", "save", "mine", "/sessions?status=IDLE"], "DELETE /v1/views/:id": ["view", "remove", "mine"],
  "GET /v1/audit": ["audit", "list"], "GET /v1/audit/chain": ["audit", "state"], "GET /v1/audit/export": ["audit", "export"], "POST /v1/read-model/rebuild": ["lists", "rebuild", ...reason],
};
/** Routes without a command, and why. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  "POST /v1/sessions/:id/messages": "`session send` sends the same message through the gateway, which can also begin a session",
  "POST /v1/links/open": "a one-time link is for a person with a browser and no key; with a key `approval show` shows it",
  "POST /v1/links/decisions": "likewise; with a key `approval approve` decides it",
  "POST /hooks/slack": "Slack calls it, with Slack's signature",
  "GET /session": "a browser's sign-in; the CLI sends its key with every request", "POST /session": "likewise", "DELETE /session": "likewise", "GET /session/ways": "likewise",
  "GET /assets/{*path}": "the pages themselves", "GET /": "the pages themselves", "GET /healthz": "for whoever starts the process", "GET /metrics": "for Prometheus, with a key of its own",
};

let dir: string;
let keys: { signer: Signer; trust: Trust };
let receiver: Receiver;
let world: ConsoleWorld;
const asked: string[] = [];
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "docket-verbs-"));
  await ensureDevKeys(dir);
  keys = { signer: await loadSigner(dir, "console"), trust: await loadTrust(dir) };
});
afterAll(() => { rmSync(dir, { recursive: true }); });
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: START_MS }); // the command line reads the clock, and the console's stands still
  receiver = await startReceiver();
  world = await startConsole(keys, (url) => ({ notices: settingsFor(noticesText(), receiver, url), noticeTiming: { refusals: 1 } }));
  world.http.server.on("request", (req: IncomingMessage) => { asked.push(`${req.method ?? ""} ${new URL(req.url ?? "/", "http://x").pathname}`); });
  asked.length = 0;
  const records = ["apr_1", "apr_2"].map((approvalId) => recordOf({ approvalId, risk: "medium", argsDigest: argsDigest(ARGS) }));
  for (const record of records) await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf(record, { args: ARGS }), { id: record.approvalId }));
  world.sessions.views.set(ACTOR, viewOf(records, summaryOf()));
  world.sessions.journals.set(ACTOR, [entryOf(1, [{ type: "SessionOpened", tenant: "default", sessionId: "ord-1", actorId: ACTOR, agent: "orders", agentVersion: "1" }])]);
  const payload = messageOf(PROMPT_RECEIVED, { text: "hello" }, { agent: "orders", source: "urn:x" });
  await world.console.handleDeadLetter(messageOf(DEAD_LETTERED, { deadLetterId: "dl_1", kind: "event", reason: "expired", message: "m", topic: "t", app: "sessions", tries: 1, tenant: "default", sessionId: "ord-1", payload, payloadEncoding: "utf8", firstFailedAtMs: START_MS, lastFailedAtMs: START_MS }));
  await world.call("POST", "/v1/views", { key: world.key(["admin"]), body: { name: "mine", address: "/sessions" } });
});
afterEach(async () => { vi.useRealTimers(); await world.close(); await receiver.close(); });

const run = (command: readonly string[]) => docket(command, { env: { DOCKET_CONSOLE_URL: world.http.url, DOCKET_API_KEY: world.key(["admin"]) } });
/** What the server refuses for what these sessions are: the request came, and was understood. */
const STATE: Readonly<Record<string, number>> = {
  "session delete": EXIT.conflict, "session release": EXIT.invalid, "session revoke": EXIT.timeout, "approval assign": EXIT.timeout, "approval snooze": EXIT.timeout, "approval resend": EXIT.notFound,
};

it("every route of the console has a command or a reason", () => {
  expect(routesOf(world.console.publicApp).sort()).toEqual([...Object.keys(COMMANDS), ...Object.keys(EXCEPTIONS)].sort());
});

it.each(Object.entries(COMMANDS))("%s is reached by its command, which understands the answer", async (route, command) => {
  const expected = STATE[command.slice(0, 2).join(" ")] ?? EXIT.ok;
  if (expected === EXIT.timeout) world.patience(100);
  const ran = await run(command);
  const [method, path = ""] = route.split(" ");
  expect(asked, ran.err).toContainEqual(expect.stringMatching(new RegExp(`^${method ?? ""} ${path.replace(/:\w+/g, "[^/]+")}$`)));
  expect(ran.code, ran.err).toBe(expected);
});

it.each(Object.values(COMMANDS).filter((command) => !["export"].includes(command[1] ?? "") && STATE[command.slice(0, 2).join(" ")] === undefined))("%j gives JSON with -o json, alone on stdout", async (...command) => {
  const { code, out } = await run([...command, "-o", "json"]);
  expect(code).toBe(EXIT.ok);
  expect(() => { JSON.parse(out); }, out).not.toThrow();
});

it("tool show has the schema of the arguments, and a slip of the pen is answered with the name that was meant", async () => {
  expect((await run(["tool", "show", "refund"])).out).toMatch(/tool +refund[\s\S]*"amount"/);
  expect(await run(["tool", "show", "refnd"])).toMatchObject({ code: EXIT.notFound, err: expect.stringContaining('did you mean "refund"') as string });
  expect((await run(["agent", "show", "orders"])).out).toMatch(/instructions +Be careful\./);
  expect((await run(["tool", "list"])).out).toMatch(/refund +high +once +ask/);
});

it("policy list has the rules in their order, try the verdict with the arguments that would run", async () => {
  expect((await run(["policy", "list"])).out).toMatch(/large +deny +all +args\.amount > 1000 +0 +test\.yaml:3 +too much\nmoney +ask/);
  expect((await run(["policy", "try", "--tool", "refund", "--args", ARGS])).out).toMatch(/verdict +ask\nrule +money\n[\s\S]*arguments +\{"amount":50,"note":""\}/);
  expect((await run(["policy", "try", "--tool", "refund", "--args", '{"amount":5000}', "--expect", "ask"])).code).toBe(EXIT.negative);
  expect(await run(["policy", "try", "--tool", "refund", "--args", '{"amount":"x"}'])).toMatchObject({ code: EXIT.invalid });
});

it("several approvals are decided by one click, each with its own verdict; what is not alike is refused as a whole", async () => {
  const ran = await docket(["approval", "approve", "apr_1", "apr_2", "--reason", "both seen"], { interactive: true, answer: "y", env: { DOCKET_CONSOLE_URL: world.http.url, DOCKET_API_KEY: world.key(["approver"]) } });
  expect(ran).toMatchObject({ code: EXIT.ok, asked: ["approve these 2? [y/N] "] });
  expect(ran.out).toMatch(/apr_1 +approved\n?.*\napr_2 +approved/);
  expect(world.decisions.sent).toHaveLength(2);
  expect((await run(["approval", "reject", "apr_1", "apr_2", "--yes", "--reason", "x", "--digest", "sha256:x"])).code).toBe(EXIT.usage);
  await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf(recordOf({ approvalId: "apr_3", risk: "high", argsDigest: argsDigest(ARGS) }), { args: ARGS }), { id: "p3" }));
  await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf(recordOf({ approvalId: "apr_4", risk: "low", argsDigest: argsDigest(ARGS) }), { args: ARGS }), { id: "p4" }));
  expect(await run(["approval", "approve", "apr_3", "apr_4", "--yes"])).toMatchObject({ code: EXIT.notAllowed, err: expect.stringContaining("apr_3 is of high risk") as string });
  expect(world.decisions.sent).toHaveLength(2);
});
