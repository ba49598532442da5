/** No action without a row: every route of the console that is no plain read, read from its router, is tried with success and refused (I10). */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { APPROVAL_PENDING } from "../../../src/contracts/decisions.js";
import { DEAD_LETTERED, PROMPT_RECEIVED } from "../../../src/contracts/messages.js";
import { ensureDevKeys, loadSigner, loadTrust, type Signer, type Trust } from "../../../src/platform/keys.js";
import { ACTOR, messageOf, pendingOf, recordOf, START_MS, startConsole, summaryOf, viewOf, type ConsoleWorld } from "../../support/console-fakes.js";
import { noticesText, noticeSignerOf, settingsFor, slackCall, slackPayload, startReceiver, type Receiver } from "../../support/notices.js";
import { writesOf } from "../../support/routes.js";

let dir: string;
let keys: { signer: Signer; trust: Trust };
let world: ConsoleWorld;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "docket-routes-"));
  await ensureDevKeys(dir);
  keys = { signer: await loadSigner(dir, "console"), trust: await loadTrust(dir) };
});
afterAll(() => { rmSync(dir, { recursive: true }); });
let receiver: Receiver;
beforeEach(async () => {
  receiver = await startReceiver();
  world = await startConsole(keys, (url) => ({ audit: { refusalsPerMinute: 1_000 }, signIn: { attempts: 1_000 }, notices: settingsFor(noticesText(), receiver, url), noticeTiming: { refusals: 1 } }));
});
afterEach(async () => { await world.close(); await receiver.close(); });

interface Example { readonly path: string | (() => Promise<string>); readonly body?: object | (() => Promise<object>); readonly before?: () => Promise<void> | void; readonly headers?: () => Promise<Record<string, string>>; readonly withKey?: false; readonly takesNoBody?: true; readonly says: string; readonly lesser?: string }
const settled = (status: "IDLE" | "CLOSED" | "AWAITING_APPROVAL", more = {}) => (): void => { world.sessions.views.set(ACTOR, viewOf([], summaryOf({ status, ...more }))); };
const reason = { reason: "because" };
const letter = { deadLetterId: "dl_1", kind: "event", reason: "expired", message: "m", topic: "t", app: "sessions", tries: 1, tenant: "default", sessionId: "ord-1", payloadEncoding: "utf8", firstFailedAtMs: START_MS, lastFailedAtMs: START_MS,
  payload: messageOf(PROMPT_RECEIVED, { text: "hello" }, { agent: "orders", source: "urn:x" }) } as const;
const dead = async (): Promise<void> => { await world.console.handleDeadLetter(messageOf(DEAD_LETTERED, letter)); };
const asked = async (): Promise<void> => { await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf())); world.sessions.views.set(ACTOR, viewOf()); };
const askedGently = async (): Promise<void> => { const record = recordOf({ risk: "medium" }); await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf(record))); world.sessions.views.set(ACTOR, viewOf([record])); };
/** The session says that it has carried out what it was asked. */
const heard = async (): Promise<void> => { await asked(); world.sessions.outcome = { state: "ended", outcome: "completed" }; };
/** An approval whose card one channel has refused for good. */
const givenUp = async (): Promise<void> => { receiver.answer = () => ({ status: 404 }); await asked(); await world.console.lookAround(); };
const notice = async (): Promise<string> => ((await world.call("GET", "/v1/approvals/apr_1/notices", { key: world.key(["viewer"]) })).body["items"] as { noticeId: string }[])[0]?.noticeId ?? "";
/** A link for Ann, by her own hand. */
const token = async (): Promise<string> => new URL(String((await world.call("POST", "/v1/approvals/apr_1/links", { key: world.key(["approver"]), body: { principal: "ann" } })).body["url"])).hash.slice(1);
async function cookie(): Promise<Record<string, string>> {
  const answer = await world.call("POST", "/session", { body: { apiKey: world.key(["admin"]) }, headers: { origin: world.http.url } });
  return { cookie: (answer.headers.get("set-cookie") ?? "").split(";")[0] ?? "", origin: world.http.url };
}

/** How each route succeeds. A route that is not here fails the test: say how it does, and that it leaves a row. `says`: `action outcome` of that row. */
const EXAMPLES: Readonly<Record<string, Example>> = {
  "DELETE /session": { path: "/session", withKey: false, headers: cookie, says: "browser.sign-out signed out" },
  "POST /v1/sessions/:id/cancel": { path: "/v1/sessions/ord-1/cancel", body: reason, before: settled("AWAITING_APPROVAL"), says: "session.cancel published", lesser: "viewer" },
  "POST /v1/sessions/:id/close": { path: "/v1/sessions/ord-1/close", body: reason, before: settled("IDLE"), says: "session.close published", lesser: "viewer" },
  "POST /v1/sessions/:id/delete": { path: "/v1/sessions/ord-1/delete", body: reason, before: settled("CLOSED"), says: "session.delete published", lesser: "operator" },
  "POST /v1/sessions/:id/release": { path: "/v1/sessions/ord-1/release", body: reason, before: settled("IDLE", { quarantine: { reason: "journal_gap", message: "m", sinceMs: 1 } }), says: "session.release published", lesser: "operator" },
  "POST /v1/sessions/:id/messages": { path: "/v1/sessions/ord-1/messages", body: { text: "go on" }, before: () => { settled("IDLE")(); world.sessions.outcome = { state: "accepted", runId: "run_1" }; }, says: "session.message accepted", lesser: "viewer" },
  "POST /v1/approvals/:id/decisions": { path: "/v1/approvals/apr_1/decisions", body: { kind: "approve", version: 1, argsDigest: "sha256:ab" }, before: asked, says: "approval.approve approved", lesser: "viewer" },
  "POST /v1/approvals/decisions": { path: "/v1/approvals/decisions", body: { kind: "approve", clickId: "click-0001", approvals: [{ approvalId: "apr_1", version: 1, argsDigest: "sha256:ab" }] }, before: askedGently, says: "approval.approve approved", lesser: "viewer" },
  "POST /v1/approvals/:id/assign": { path: "/v1/approvals/apr_1/assign", body: { to: "ben" }, before: heard, says: "approval.assign accepted", lesser: "viewer" },
  "POST /v1/approvals/:id/snooze": { path: "/v1/approvals/apr_1/snooze", body: { untilMs: START_MS + 3_600_000 }, before: heard, says: "approval.snooze accepted", lesser: "viewer" },
  "POST /v1/sessions/:id/allowances/:allowance/revoke": { path: "/v1/sessions/ord-1/allowances/alw_1/revoke", body: {}, before: () => { settled("IDLE")(); world.sessions.outcome = { state: "ended", outcome: "completed" }; }, says: "allowance.revoke accepted", lesser: "viewer" },
  "POST /v1/approvals/:id/notices/:notice/resend": { path: async () => `/v1/approvals/apr_1/notices/${await notice()}/resend`, body: {}, before: givenUp, says: "notice.resend waiting", lesser: "viewer" },
  "POST /v1/approvals/:id/links": { path: "/v1/approvals/apr_1/links", body: { principal: "ann" }, before: asked, says: "link.make made", lesser: "viewer" },
  "POST /v1/links/open": { path: "/v1/links/open", withKey: false, before: asked, body: async () => ({ token: await token() }), headers: async () => ({}), says: "link.open shown" },
  "POST /v1/links/decisions": { path: "/v1/links/decisions", withKey: false, before: asked, body: async () => ({ token: await token(), approvalId: "apr_1", kind: "approve", version: 1, argsDigest: "sha256:ab" }), headers: async () => ({}), says: "approval.approve approved" },
  "POST /v1/views": { path: "/v1/views", body: { name: "mine", address: "/sessions?status=IDLE" }, says: "view.save saved" },
  "DELETE /v1/views/:id": { path: "/v1/views/mine", takesNoBody: true, says: "view.remove removed" },
  "POST /v1/read-model/rebuild": { path: "/v1/read-model/rebuild", body: reason, says: "read-model.rebuild begun", lesser: "operator" },
  "POST /v1/dead-letters/:id/discard": { path: "/v1/dead-letters/dl_1/discard", body: reason, before: dead, says: "dead-letter.discard discarded", lesser: "viewer" },
  "POST /v1/dead-letters/:id/redrive": { path: "/v1/dead-letters/dl_1/redrive", body: reason, before: dead, says: "dead-letter.redrive redriven", lesser: "viewer" },
  "POST /v1/dead-letters/discard": { path: "/v1/dead-letters/discard", body: { ...reason, all: true, filter: {}, dryRun: false }, before: dead, says: "dead-letter.discard discarded", lesser: "viewer" },
  "POST /v1/dead-letters/redrive": { path: "/v1/dead-letters/redrive", body: { ...reason, all: true, filter: {}, dryRun: false }, before: dead, says: "dead-letter.redrive redriven", lesser: "viewer" },
};
async function bodyOf({ body }: Example): Promise<object | undefined> { return isMade(body) ? await body() : body; }
function isMade(body: Example["body"]): body is () => Promise<object> { return typeof body === "function"; }
/** POSTs that change nothing. */
const PURE = ["POST /v1/policy/try"];

async function rows(): Promise<string[]> {
  const { body } = await world.call("GET", "/v1/audit?limit=200", { key: world.key(["admin"], { id: "reader" }) });
  return (body["items"] as { action: string; outcome: string; principalId: string }[]).map(({ action, outcome, principalId }) => `${action} ${outcome} ${principalId}`);
}

describe("every route that is no plain read", () => {
  it("has an example here, and each example has a route", () => {
    expect(writesOf(world.console.publicApp).sort()).toEqual([...Object.keys(EXAMPLES), ...PURE, "POST /session", "POST /hooks/slack"].sort());
  });

  it.each(Object.entries(EXAMPLES))("%s leaves rows when it succeeds, and when it is refused for want of a key, a role, a sane body", async (route, example) => {
    const method = route.split(" ")[0] ?? "";
    await example.before?.();
    const path = typeof example.path === "string" ? example.path : await example.path();
    const body = await bodyOf(example);
    const refusals: [string, number, { key?: string; text?: string; headers?: Record<string, string> }][] = example.withKey === false ? [] : [
      ["unauthenticated", 401, {}],
      ["unauthenticated", 401, { key: "dk_0000_00000000000000000000" }],
      ...(example.takesNoBody === true ? [] : [["not_json", 400, { key: world.key(["admin"], { id: "clumsy" }), text: "{" }] as [string, number, { key: string; text: string }]]),
      ["forbidden", 403, { key: world.key([example.lesser ?? ""], { id: "small" }) }],
    ];
    for (const [code, status, options] of refusals) {
      const before = await rows();
      const refused = await world.call(method, path, { ...(options.text === undefined && body !== undefined ? { body } : {}), ...options });
      expect([status, 403], `${route} ${JSON.stringify(refused.body)}`).toContain(refused.status);
      const added = (await rows()).slice(0, (await rows()).length - before.length);
      expect(added.length, `${route}: no row for ${code}`).toBeGreaterThan(0);
      expect(added.join("\n")).toContain(String(refused.body["code"]));
    }
    expect(world.tasks.sent).toEqual(path.includes("approvals") || path.includes("links") ? [expect.anything()] : []);
    const headers = await example.headers?.();
    const done = await world.call(method, path, { ...(body === undefined ? {} : { body }), ...(headers === undefined ? { key: world.key(["admin"]) } : { headers }) });
    expect(done.status, JSON.stringify(done.body)).toBeLessThan(300);
    expect(await rows()).toContain(`${example.says} ann`);
  });

  it("POST /session: signing in, a wrong key, another site", async () => {
    await cookie();
    await world.call("POST", "/session", { body: { apiKey: "dk_0000_00000000000000000000" }, headers: { origin: world.http.url } });
    await world.call("POST", "/session", { body: { apiKey: world.key(["admin"]) }, headers: { origin: "https://evil.example" } });
    expect(await rows()).toEqual(["POST /session forbidden ", "POST /session unauthenticated ", "browser.sign-in signed in ann", "browser.sign-in requested ann"]);
  });

  it("POST /hooks/slack: a click, an unsigned one, one by nobody, a button that is none, a followed link", async () => {
    await asked();
    const value = await noticeSignerOf(keys).signButton({ iss: "docket/console", aud: "docket/slack", jti: "ntc_1", tenant: "default", sub: ACTOR, sessionId: "ord-1", approvalId: "apr_1", version: 1, argsDigest: "sha256:ab", kind: "approve", iat: START_MS / 1000 });
    const send = async (about: { user?: string; action?: string; value?: string }, secret?: string): Promise<void> => {
      const { text, headers } = slackCall(slackPayload({ user: "U0ANN", action: "approve", value, responseUrl: `${receiver.url}/x`, ...about }), { atS: START_MS / 1000, ...(secret === undefined ? {} : { secret }) });
      await world.call("POST", "/hooks/slack", { text, headers });
    };
    await send({}, "guess");
    await send({ user: "U0NOBODY" });
    await send({ value: "no-button" });
    await send({ action: "open", value: "" });
    await send({});
    expect(await rows()).toEqual(["approval.approve approved ann", "approval.approve requested ann", "POST /hooks/slack bad_signature ", "approval.approve not_an_approver ", "POST /hooks/slack bad_signature "]);
  });

  it("a write by cookie from another site has its row, under the name of whose cookie it was", async () => {
    const headers = { ...(await cookie()), origin: "https://evil.example" };
    expect((await world.call("POST", "/v1/sessions/ord-1/cancel", { headers, body: {} })).status).toBe(403);
    expect((await rows())[0]).toBe("POST /v1/sessions/*/cancel forbidden ann");
  });

  it.each(PURE)("%s leaves none", async (route) => {
    await world.call("POST", route.split(" ")[1] ?? "", { key: world.key(["viewer"]), body: { tool: "refund", args: '{"amount":1}' } });
    expect(await rows()).toEqual([]);
  });
});
