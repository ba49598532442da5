/** What the web pages stand on: signing in by cookie (CSRF, throttling, revocation), the built pages with their content policy, and the routes they need. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { APPROVAL_PENDING } from "../../../src/contracts/decisions.js";
import { DEAD_LETTERED, PROMPT_RECEIVED, type DeadLetter } from "../../../src/contracts/messages.js";
import { ensureDevKeys, loadSigner, loadTrust, type Signer, type Trust } from "../../../src/platform/keys.js";
import { ACTOR, entryOf, journalMessage, messageOf, pendingOf, START_MS, startConsole, summaryOf, viewOf, type ConsoleWorld } from "../../support/console-fakes.js";

let dir: string;
let keys: { signer: Signer; trust: Trust };
let world: ConsoleWorld;
const PAGE = "<!doctype html><title>Docket</title>";
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "docket-web-"));
  await ensureDevKeys(dir);
  keys = { signer: await loadSigner(dir, "console"), trust: await loadTrust(dir) };
  mkdirSync(join(dir, "web", "assets"), { recursive: true });
  writeFileSync(join(dir, "web", "index.html"), PAGE);
  writeFileSync(join(dir, "web", "assets", "app-1a2b.js"), "export {};");
});
afterAll(() => { rmSync(dir, { recursive: true }); });
beforeEach(async () => { world = await startConsole(keys, { webDir: join(dir, "web"), signIn: { attempts: 3, lastsMs: 60_000, windowMs: 60_000 } }); });
afterEach(() => world.close());

const own = (): string => world.http.url;
const signIn = (apiKey: string, headers: Record<string, string> = { origin: own() }) => world.call("POST", "/session", { body: { apiKey }, headers });
async function cookieOf(apiKey: string): Promise<string> {
  const answer = await signIn(apiKey);
  expect(answer.status).toBe(201);
  return (answer.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
}

describe("signing in", () => {
  it("exchanges a key for a cookie that scripts cannot read and other sites cannot send; the key itself is never given back", async () => {
    const key = world.key(["approver"]);
    const answer = await signIn(key);
    expect(answer).toMatchObject({ status: 201, body: { principal: { id: "ann", roles: ["approver"] }, rights: ["read", "decide"] } });
    expect(answer.headers.get("set-cookie")).toMatch(/^docket=[A-Za-z0-9_-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=60$/);
    expect(JSON.stringify(answer.body)).not.toContain(key);
    const cookie = (answer.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    expect(await world.call("GET", "/session", { headers: { cookie } })).toMatchObject({ status: 200, body: { principal: { id: "ann" } } });
    expect((await world.call("GET", "/v1/approvals", { headers: { cookie } })).status).toBe(200);
    expect((await world.call("GET", "/v1/approvals", { headers: { cookie: `${cookie}x` } })).status).toBe(401);
  });

  it("a write by cookie must come from this very origin; one with a key need not", async () => {
    const cookie = await cookieOf(world.key(["operator"]));
    world.sessions.views.set(ACTOR, viewOf([]));
    const cancel = (headers: Record<string, string>) => world.call("POST", "/v1/sessions/ord-1/cancel", { body: { reason: "x" }, headers });
    for (const origin of [{}, { origin: "null" }, { origin: "https://evil.example" }, { origin: `${own()}.evil.example` }, { origin: own().replace("http:", "https:") }] as Record<string, string>[]) {
      expect(await cancel({ cookie, ...origin }), JSON.stringify(origin)).toMatchObject({ status: 403, body: { code: "forbidden" } });
    }
    expect(world.tasks.sent).toEqual([]);
    expect((await cancel({ cookie, origin: own() })).status).toBe(202);
    expect((await world.call("POST", "/v1/sessions/ord-1/cancel", { key: world.key(["operator"]), body: {} })).status).toBe(202);
    expect((await signIn(world.key(["viewer"]), { origin: "https://evil.example" })).status).toBe(403);
  });

  it("is throttled for each address behind a proxy that is counted, not for all who come through it", async () => {
    await world.close();
    world = await startConsole(keys, { webDir: join(dir, "web"), trustProxyHops: 1, signIn: { attempts: 1, lastsMs: 60_000, windowMs: 60_000 } });
    const from = async (address: string): Promise<number> => (await signIn("dk_0000_0000000000000000", { origin: own(), "x-forwarded-for": address })).status;
    expect([await from("203.0.113.1"), await from("203.0.113.1"), await from("203.0.113.2")]).toEqual([401, 429, 401]);
  });

  it("is throttled after failures, and only failures count", async () => {
    const key = world.key(["viewer"]);
    for (let i = 0; i < 5; i += 1) expect((await signIn(key)).status).toBe(201);
    for (let i = 0; i < 3; i += 1) expect((await signIn("dk_0000_0000000000000000")).status).toBe(401);
    expect(await signIn(key)).toMatchObject({ status: 429, body: { code: "rate_limited" } });
  });

  it("ends with its time, with a sign-out, and with its key", async () => {
    const headers = { cookie: await cookieOf(world.key(["viewer"])) };
    expect((await world.call("DELETE", "/session", { headers: { ...headers, origin: own() } })).status).toBe(204);
    expect((await world.call("GET", "/v1/overview", { headers })).status).toBe(401);
    const later = { cookie: await cookieOf(world.key(["viewer"])) };
    world.clock.ms += 59_000;
    expect((await world.call("GET", "/v1/overview", { headers: later })).status).toBe(200);
    world.clock.ms += 1_001;
    expect((await world.call("GET", "/v1/overview", { headers: later })).status).toBe(401);
    const revoked = { cookie: await cookieOf(world.key(["viewer"])) };
    world.revokeKeys();
    expect((await world.call("GET", "/v1/overview", { headers: revoked })).status).toBe(401);
  });

  it("leaves rows in the audit, and a decision by cookie says that it came from the web", async () => {
    await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf()));
    world.sessions.views.set(ACTOR, viewOf());
    const admin = world.key(["admin"]);
    const cookie = await cookieOf(admin);
    expect(await world.call("POST", "/v1/approvals/apr_1/decisions", { body: { kind: "approve", version: 1, argsDigest: "sha256:ab" }, headers: { cookie, origin: own() } })).toMatchObject({ status: 200, body: { verdict: "approved" } });
    const rows = (await world.call("GET", "/v1/audit", { key: admin })).body["items"] as { action: string; outcome: string; detail: { via?: string } }[];
    expect(rows.map((row) => `${row.action} ${row.outcome} ${row.detail.via ?? ""}`).sort()).toEqual(["approval.approve approved web", "approval.approve requested web", "browser.sign-in requested ", "browser.sign-in signed in "]);
  });
});

describe("the pages", () => {
  const page = { accept: "text/html,*/*" };
  it.each(["/", "/approvals", "/approvals/apr_1", "/sessions/a%2Fb.c", "/anything"])("%s is the page, under a policy without inline script or style and nothing from elsewhere", async (path) => {
    const response = await fetch(`${own()}${path}`, { headers: page });
    expect(await response.text()).toBe(PAGE);
    const policy = response.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self'");
    expect(policy).toContain("require-trusted-types-for 'script'");
    expect(policy).not.toMatch(/unsafe|\*|https?:|data:/);
    expect(response.headers.get("cache-control")).toBe("no-cache");
  });
  it.each(["GET", "HEAD"])("a one-time link is opened by whatever program it was sent to: %s that takes anything gets the page, one that takes no HTML is told so, and neither decides", async (method) => {
    await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf()));
    for (const headers of [{ accept: "*/*" }, { accept: "text/*" }] as Record<string, string>[]) {
      const response = await fetch(`${own()}/confirm`, { method, headers });
      expect([response.status, response.headers.get("content-type"), await response.text()], JSON.stringify(headers)).toEqual([200, "text/html; charset=utf-8", method === "GET" ? PAGE : ""]);
    }
    const refused = await fetch(`${own()}/confirm`, { method, headers: { accept: "application/json" } });
    expect([refused.status, refused.headers.get("content-type")]).toEqual([404, "application/problem+json; charset=utf-8"]);
    if (method === "GET") expect(await refused.json()).toMatchObject({ code: "not_found", detail: expect.stringContaining("/confirm is a page for people") as string });
    expect((await fetch(`${own()}/favicon.ico`, { method, headers: { accept: "*/*" } })).status, "what is no page is not there").toBe(404);
    expect(world.decisions.sent).toEqual([]);
  });
  it("assets are cached for ever, compressed, and missing ones are missing", async () => {
    const response = await fetch(`${own()}/assets/app-1a2b.js`, { headers: { "accept-encoding": "gzip" } });
    expect(await response.text()).toBe("export {};");
    expect(Object.fromEntries(response.headers)).toMatchObject({ "content-encoding": "gzip", "cache-control": "public, max-age=31536000, immutable", "content-type": "text/javascript; charset=utf-8" });
    expect((await fetch(`${own()}/assets/app-1a2b.js`, { headers: { "if-none-match": response.headers.get("etag") ?? "" } })).status).toBe(304);
    for (const path of ["/assets/none.js", "/assets/..%2Findex.html", "/v1/none", "/session/none"]) expect((await fetch(`${own()}${path}`, { headers: page })).status, path).toBeGreaterThanOrEqual(400);
  });
  it("programs get JSON, and an unchanged list is not sent again", async () => {
    expect((await world.call("GET", "/")).body).toMatchObject({ name: "docket console" });
    const headers = { authorization: `Bearer ${world.key(["viewer"])}` };
    const first = await fetch(`${own()}/v1/overview`, { headers });
    expect(first.headers.get("cache-control")).toBe("no-store");
    expect((await fetch(`${own()}/v1/overview`, { headers: { ...headers, "if-none-match": first.headers.get("etag") ?? "", "cache-control": "max-age=0" } })).status).toBe(304);
  });
});

describe("the routes that the pages need", () => {
  const letter: DeadLetter = { deadLetterId: "dl_1", kind: "event", reason: "expired", message: "m", topic: "t", app: "sessions", tries: 1, tenant: "default", payload: "{}", payloadEncoding: "utf8", firstFailedAtMs: START_MS, lastFailedAtMs: START_MS };

  it("count what there is, per tenant", async () => {
    for (const [n, status] of (["IDLE", "IDLE", "PLANNING"] as const).entries()) await world.console.handleJournal(journalMessage(entryOf(1, [], `default_s-${String(n)}`), { sessionId: `s-${String(n)}`, status }));
    await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf()));
    await world.console.handleDeadLetter(messageOf(DEAD_LETTERED, letter));
    expect((await world.call("GET", "/v1/overview", { key: world.key(["viewer"]) })).body).toEqual({ sessions: { IDLE: 2, PLANNING: 1 }, approvalsOpen: 1, deadLetters: 1 });
    expect((await world.call("GET", "/v1/overview", { key: world.key(["viewer"], { tenant: "other" }) })).body).toEqual({ sessions: {}, approvalsOpen: 0, deadLetters: 0 });
  });

  it("the system page has every part on its own, so that one that is down hides nothing", async () => {
    world.sessions.down = true;
    await world.console.handleJournal(journalMessage(entryOf(3, [])));
    const { status, body } = await world.call("GET", "/v1/system", { key: world.key(["viewer"]) });
    expect(status).toBe(200);
    expect(body["parts"]).toMatchObject([{ name: "read model", ok: true }, { name: "sidecar", ok: false, detail: "no answer (fake)" }]);
    expect(body["projection"]).toMatchObject({ journals: 1, gaps: 1, entriesMissing: 3, overdue: 0 });
  });

  it("the system page says how far the lists are behind: from the commit of the newest entry to its place in them", async () => {
    const lag = async (): Promise<unknown> => ((await world.call("GET", "/v1/system", { key: world.key(["viewer"]) })).body["projection"] as { lagMs: unknown }).lagMs;
    expect(await lag()).toBeNull();
    const entry = entryOf(1, []);
    world.clock.ms = entry.atMs + 4_321;
    await world.console.handleJournal(journalMessage(entry));
    expect(await lag()).toBe(4_321);
  });

  it("a call is judged as in production, digits kept, nothing recorded", async () => {
    const key = world.key(["admin"]);
    const judge = (args: string, tool = "refund") => world.call("POST", "/v1/policy/try", { key, body: { tool, args } });
    expect(await judge('{"amount": 50}')).toMatchObject({ status: 200, body: { verdict: "ask", rule: "money", args: '{"amount":50,"note":""}' } });
    expect((await judge('{"amount": 50}')).body, "as when an approval is opened: the risk is high").toMatchObject({ risk: "high", allowSession: false });
    expect(await judge('{"amount": 9007199254740993}')).toMatchObject({ status: 200, body: { verdict: "deny", rule: "large", args: '{"amount":9007199254740993,"note":""}' } });
    expect(await judge('{"amount": "50"}')).toMatchObject({ status: 422, body: { code: "arguments_invalid" } });
    expect(await judge("{}", "refunt")).toMatchObject({ status: 404, body: { detail: expect.stringContaining("refund") as string } });
    expect((await world.call("GET", "/v1/policy", { key })).body).toMatchObject({ rules: [{ id: "large", file: "test.yaml", line: 3 }, { id: "money", line: 4 }] });
    expect((await world.call("GET", "/v1/agents", { key })).body).toMatchObject({ agents: [{ name: "orders" }], tools: [{ name: "refund" }] });
    expect((await world.call("GET", "/v1/audit", { key })).body["items"]).toEqual([]);
  });

  it("a message is answered with the session's word; without it the same event is what a repetition sends", async () => {
    world.sessions.views.set(ACTOR, viewOf([], summaryOf({ agent: "orders" })));
    const key = world.key(["operator"]);
    const send = () => world.call("POST", "/v1/sessions/ord-1/messages", { key, body: { text: "hello", eventId: "click-0001" } });
    world.patience(100);
    expect(await send()).toMatchObject({ status: 202, body: { state: "unknown" } });
    world.patience();
    world.sessions.outcome = { state: "running", runId: "run_9" };
    expect(await send()).toMatchObject({ status: 200, body: { state: "running", runId: "run_9" } });
    expect(world.tasks.sent.map((event) => [event.id, event.source, event.type, event.agent, event.subject, event.data])).toEqual([["click-0001", "urn:docket:principal:default:ann", PROMPT_RECEIVED, "orders", "ord-1", '{"text":"hello"}']]);
    expect(await world.call("POST", "/v1/sessions/ord-1/messages", { key: world.key(["viewer"]), body: { text: "x" } })).toMatchObject({ status: 403 });
    expect(await world.call("POST", "/v1/sessions/nobody/messages", { key, body: { text: "x" } })).toMatchObject({ status: 404 });
  });

  it("a dead letter is discarded once, with a reason, by an operator", async () => {
    await world.console.handleDeadLetter(messageOf(DEAD_LETTERED, letter));
    const discard = (body: object, roles = ["operator"]) => world.call("POST", "/v1/dead-letters/dl_1/discard", { key: world.key(roles), body });
    expect(await discard({}, ["operator"])).toMatchObject({ status: 422 });
    expect(await discard({ reason: "x" }, ["viewer"])).toMatchObject({ status: 403 });
    expect(await discard({ reason: "a test event" })).toMatchObject({ status: 200, body: { state: "discarded" } });
    expect(await discard({ reason: "again" })).toMatchObject({ status: 409, body: { code: "version_mismatch" } });
    expect((await world.call("GET", "/v1/overview", { key: world.key(["viewer"]) })).body).toMatchObject({ deadLetters: 0 });
  });
});
