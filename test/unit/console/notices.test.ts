/** Notices in a console: from an approval to its cards, from a click to the session's verdict, and what becomes of every copy (I4, I10). */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { APPROVAL_PENDING, DecisionMade, type ApprovalRecord } from "../../../src/contracts/decisions.js";
import { NoticeWebhook, type NoticeItem } from "../../../src/contracts/notices.js";
import type { SessionEvent } from "../../../src/contracts/journal.js";
import { ensureDevKeys, loadSigner, loadTrust, type Signer, type Trust } from "../../../src/platform/keys.js";
import { ACTOR, entryOf, journalMessage, messageOf, pendingOf, recordOf, startConsole, viewOf, type ConsoleWorld } from "../../support/console-fakes.js";
import { buttonOf, noticesText, settingsFor, slackCall, slackPayload, startReceiver, type Received, type Receiver } from "../../support/notices.js";

let dir: string;
let keys: { signer: Signer; trust: Trust };
let receiver: Receiver;
let world: ConsoleWorld;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "docket-notices-"));
  await ensureDevKeys(dir);
  keys = { signer: await loadSigner(dir, "console"), trust: await loadTrust(dir) };
});
afterAll(() => { rmSync(dir, { recursive: true }); });
const start = async (text = noticesText()): Promise<void> => { world = await startConsole(keys, (url) => ({ notices: settingsFor(text, receiver, url), noticeTiming: { refusals: 2, baseMs: 1_000, capMs: 8_000 } })); };
beforeEach(async () => { receiver = await startReceiver(); await start(); });
afterEach(async () => { await world.close(); await receiver.close(); });

let rev = 0;
const journal = async (...events: SessionEvent[]): Promise<void> => { rev += 1; await world.console.handleJournal(journalMessage(entryOf(rev, events))); };
async function ask(record: Partial<ApprovalRecord> = {}): Promise<void> {
  rev = 0;
  const whole = recordOf(record);
  world.sessions.views.set(ACTOR, viewOf([whole]));
  await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf(whole)));
  await journal({ type: "ApprovalOpened", record: whole });
  await world.console.lookAround();
}
const decided = (by = "ben"): SessionEvent => ({ type: "DecisionRecorded", approvalId: "apr_1", decisionId: "dec_1", kind: "approve", principal: { id: by, class: "person", roles: ["approver"] }, via: "web", final: true });
const to = (path: string): Received[] => receiver.received.filter((request) => request.path.startsWith(path));
const notices = async (): Promise<NoticeItem[]> => (await world.call("GET", "/v1/approvals/apr_1/notices", { key: world.key(["viewer"]) })).body["items"] as NoticeItem[];
const states = async (): Promise<string[]> => (await notices()).map(({ channel, event, state }) => `${channel} ${event} ${state}`).sort();
const audit = async (): Promise<string[]> => ((await world.call("GET", "/v1/audit?limit=200", { key: world.key(["admin"], { id: "reader" }) })).body["items"] as { action: string; outcome: string; principalId: string; keyId: string }[]).map((row) => `${row.action} ${row.outcome} ${row.principalId} ${row.keyId.startsWith("slack") ? row.keyId : ""}`.trim());
const responseUrl = (): string => `${receiver.url}/slack/actions/secret`;
async function click(user: string, action: "approve" | "reject" = "approve", more: { reason?: string; value?: string } = {}): Promise<{ status: number; body: Record<string, unknown> }> {
  const call = slackCall(slackPayload({ user, action, value: more.value ?? buttonOf(to("/slack/services")[0]!, action) ?? "", responseUrl: responseUrl(), ...(more.reason === undefined ? {} : { reason: more.reason }) }), { atS: Math.floor(world.clock.ms / 1000) });
  return world.call("POST", "/hooks/slack", { text: call.text, headers: call.headers });
}
const words = (): string[] => receiver.received.filter(({ body }) => body["response_type"] === "ephemeral").map(({ body }) => String(body["text"]));
const said = async (text: string): Promise<void> => { await receiver.until(text, ({ body }) => body["response_type"] === "ephemeral" && String(body["text"]).includes(text)); expect(words().at(-1)).toContain(text); };

describe("from an approval to its cards", () => {
  it("goes to each channel once, however often it is told, and the console shows what went where", async () => {
    await ask();
    await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf()));
    await world.console.lookAround();
    expect([to("/slack/services").length, to("/discord").length, to("/hook").length]).toEqual([1, 1, 1]);
    expect(await states()).toEqual(["chat opened sent", "hook opened sent", "ops opened sent"]);
    expect((await notices())[0]).toMatchObject({ attempts: 1, note: "HTTP 200", version: 1 });
    expect((await world.call("GET", "/v1/notices", { key: world.key(["viewer"]) })).body["channels"]).toMatchObject([{ name: "ops", kind: "slack", counts: [{ state: "sent", count: 1 }] }, { name: "chat" }, { name: "hook" }]);
    expect(JSON.stringify(await notices()) + JSON.stringify((await world.call("GET", "/v1/notices", { key: world.key(["viewer"]) })).body)).not.toMatch(/secret|127\.0\.0\.1/);
  });

  it("a reminder and an escalation are cards of their own; the escalation goes to those who come in by it", async () => {
    await world.close();
    await start(noticesText({ routes: "routes:\n  - { on: [opened, reminded], to: [ops] }\n  - { match: { approvers: [lead] }, on: [escalated], to: [chat] }" }));
    await ask();
    await journal({ type: "ApprovalReminded", approvalId: "apr_1", step: 0 });
    await journal({ type: "ApprovalReminded", approvalId: "apr_1", step: 1, to: { roles: ["lead"], groups: [] } });
    await world.console.lookAround();
    expect(await states()).toEqual(["chat escalated sent", "ops opened sent", "ops reminded sent"]);
    expect(to("/slack/services").at(-1)?.text).toContain("Reminder: approval needed");
    expect(to("/discord").at(-1)?.text).toContain("Escalated: approval needed");
  });

  it.each<[string, SessionEvent, string]>([
    ["decided", decided(), "approved by ben"], ["expired", { type: "ApprovalExpired", approvalId: "apr_1", action: "reject" }, "expired: nobody decided in time"],
    ["withdrawn", { type: "ApprovalWithdrawn", approvalId: "apr_1", reason: "cancelled" }, "withdrawn: cancelled"],
  ])("%s: every channel is told, and copies that can be changed are locked", async (state, event, words) => {
    await ask();
    await journal(event);
    await world.console.lookAround();
    expect(await states()).toEqual(["chat locked sent", "chat opened sent", "chat settled sent", "hook opened sent", "hook settled sent", "ops opened sent", "ops settled sent"]);
    expect(to("/slack/services").at(-1)?.text).toContain(words);
    expect(buttonOf(to("/slack/services").at(-1)!, "approve")).toBeUndefined();
    const locked = to("/discord/api/webhooks/1/secret-path/messages/424242");
    expect(locked.map(({ method, text }) => [method, text.includes(words)])).toEqual([["PATCH", true]]);
    expect(NoticeWebhook.parse(to("/hook").at(-1)?.body)).toMatchObject({ type: "approval.settled", data: { state, links: [] } });
  });

  it("asked anew in another version: a new card; the old one's waiting copies are overtaken", async () => {
    receiver.answer = ({ path }) => ({ status: path.startsWith("/slack") ? 503 : 200, text: path.startsWith("/discord") ? '{"id":"1"}' : "ok" });
    await ask();
    const second = recordOf({ version: 2, argsDigest: "sha256:cd" });
    await journal({ type: "ApprovalOpened", record: second });
    await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf(second)));
    world.clock.ms += 120_000;
    receiver.answer = () => ({ status: 200, text: "ok" });
    await world.console.lookAround();
    expect((await notices()).filter(({ channel }) => channel === "ops").map(({ version, state }) => [version, state])).toEqual([[1, "overtaken"], [2, "sent"]]);
  });
});

describe("when a receiver does not answer", () => {
  it("an outage of any length loses nothing: attempts grow apart without end, others go on, and then it arrives", async () => {
    receiver.answer = ({ path }) => (path.startsWith("/hook") ? { status: 503 } : { status: 200, text: path.startsWith("/discord") ? '{"id":"1"}' : "ok" });
    await ask({ expiresAtMs: world.clock.ms + 90 * 86_400_000 });
    for (let day = 0; day < 60; day += 1) { world.clock.ms += 86_400_000; await world.console.lookAround(); }
    expect(await states()).toContain("hook opened waiting");
    expect((await notices()).find(({ channel }) => channel === "hook")).toMatchObject({ attempts: 61, note: "HTTP 503" });
    receiver.answer = () => ({ status: 200, text: "ok" });
    world.clock.ms += 86_400_000;
    await world.console.lookAround();
    expect(await states()).toEqual(["chat opened sent", "hook opened sent", "ops opened sent"]);
    expect(new Set(to("/hook").map(({ headers }) => headers["webhook-id"])).size, "a repetition is recognised").toBe(1);
    const { links } = NoticeWebhook.parse(to("/hook").at(-1)?.body).data;
    expect(links[0]!.expiresAtMs, "a link that is handed out late is no old one").toBeGreaterThan(world.clock.ms + 11 * 3_600_000);
  }, 60_000);

  it("decided meanwhile: the card is not sent any more, what became of it is", async () => {
    receiver.answer = () => ({ status: 503 });
    await ask();
    await journal(decided());
    receiver.answer = () => ({ status: 200, text: "ok" });
    world.clock.ms += 120_000;
    await world.console.lookAround();
    expect(await states()).toEqual(["chat opened overtaken", "chat settled sent", "hook opened overtaken", "hook settled sent", "ops opened overtaken", "ops settled sent"]);
  });

  it("waits as long as it is asked to", async () => {
    receiver.answer = ({ path }) => (path.startsWith("/slack") ? { status: 429, headers: { "retry-after": "30" } } : { status: 200, text: "ok" });
    await ask();
    for (let second = 0; second < 29; second += 1) { world.clock.ms += 1_000; await world.console.lookAround(); }
    expect(to("/slack").length).toBe(1);
    world.clock.ms += 1_000;
    await world.console.lookAround();
    expect(to("/slack").length).toBe(2);
  });

  it("one that keeps refusing is given up: shown, on the System page, in the metrics, and sent again by a person", async () => {
    receiver.answer = ({ path }) => ({ status: path.startsWith("/slack") ? 404 : 200, text: path.startsWith("/slack") ? "no_service" : "ok" });
    await ask();
    world.clock.ms += 60_000;
    await world.console.lookAround();
    const [given] = (await notices()).filter(({ channel }) => channel === "ops");
    expect(given).toMatchObject({ state: "given_up", attempts: 2, note: "HTTP 404 no_service" });
    const { parts } = (await world.call("GET", "/v1/system", { key: world.key(["viewer"]) })).body as { parts: { name: string; ok: boolean; detail: string }[] };
    expect(parts.find(({ name }) => name === "notices")).toMatchObject({ ok: false, detail: "ops: 0 wait for more than 5 minutes, 1 given up today" });
    const metrics = await fetch(`${world.http.url}/metrics`, { headers: { authorization: `Bearer ${world.key(["admin"])}` } });
    expect(await metrics.text()).toContain('docket_notices{channel="ops",state="given_up"} 1');
    receiver.answer = () => ({ status: 200, text: "ok" });
    const path = `/v1/approvals/apr_1/notices/${given!.noticeId}/resend`;
    expect((await world.call("POST", path, { key: world.key(["operator"]), body: {} })).status).toBe(202);
    await world.console.lookAround();
    expect(await states()).toContain("ops opened sent");
    expect((await world.call("POST", path, { key: world.key(["operator"]), body: {} })).body["code"], "only what was given up").toBe("not_found");
  });

  it("a redirect is not followed", async () => {
    receiver.answer = ({ path }) => (path.startsWith("/hook") ? { status: 302, headers: { location: `${receiver.url}/elsewhere` } } : { status: 200, text: "ok" });
    await ask();
    expect(to("/elsewhere")).toEqual([]);
    expect((await notices()).find(({ channel }) => channel === "hook")).toMatchObject({ state: "waiting", note: "HTTP 302" });
  });
});

describe("a click in Slack", () => {
  it("is the decision of the person behind the user: the session's verdict, in the audit, said to the person, and the copy is locked", async () => {
    await ask();
    expect(await click("U0ANN")).toMatchObject({ status: 200, body: { verdict: "approved" } });
    const made = DecisionMade.parse(JSON.parse(world.decisions.sent[0]!.data));
    expect(made).toMatchObject({ sessionId: "ord-1", approvalId: "apr_1" });
    const claims = JSON.parse(Buffer.from(made.decision.split(".")[1]!, "base64url").toString()) as Record<string, unknown>;
    expect(claims).toMatchObject({ sub: ACTOR, approvalId: "apr_1", version: 1, argsDigest: "sha256:ab", kind: "approve", via: "slack", principal: { id: "ann", class: "person", roles: ["approver"] } });
    await said("approved: apr_1");
    await journal({ ...decided("ann"), via: "slack" } as SessionEvent);
    world.clock.ms += 30_000;
    await world.console.lookAround();
    expect(to("/slack/actions").at(-1)?.body).toMatchObject({ replace_original: true });
    expect(to("/slack/actions").at(-1)?.text).toContain("approved by ann");
    expect((await audit()).filter((row) => row.startsWith("approval."))).toEqual(["approval.approve approved ann slack:U0ANN", "approval.approve requested ann slack:U0ANN"]);
    expect(await click("U0ANN"), "the card is history").toMatchObject({ status: 200, body: { verdict: "already_decided" } });
    await said("Nothing was decided: the approval has been decided.");
  });

  it("rejects with the reason that was typed", async () => {
    await ask();
    expect(await click("U0ANN", "reject", { reason: "too much" })).toMatchObject({ body: { verdict: "rejected" } });
    const { decision } = DecisionMade.parse(JSON.parse(world.decisions.sent[0]!.data));
    expect(JSON.parse(Buffer.from(decision.split(".")[1]!, "base64url").toString())).toMatchObject({ kind: "reject", text: "too much" });
  });

  it("by a user whom nobody here stands behind, or who may not decide, is refused, said, and on record", async () => {
    await ask();
    expect(await click("U0NOBODY")).toMatchObject({ status: 200, body: { verdict: "not_an_approver" } });
    await said("nobody here is known by your Slack user");
    expect(await click("U0VIC")).toMatchObject({ status: 200, body: { verdict: "not_an_approver" } });
    expect(world.decisions.sent).toEqual([]);
    expect((await audit()).filter((row) => row.includes("not_an_approver"))).toEqual(["approval.approve not_an_approver vic slack:U0VIC", "approval.approve not_an_approver  slack:U0NOBODY"]);
  });

  it("on a card that is out of date is refused in words, and decides nothing", async () => {
    await ask();
    world.sessions.views.set(ACTOR, viewOf([recordOf({ version: 2, argsDigest: "sha256:cd" })]));
    expect(await click("U0ANN")).toMatchObject({ status: 200, body: { verdict: "version_mismatch" } });
    await said("This card is out of date");
  });

  it("repeated byte for byte is refused, also after a restart", async () => {
    await ask();
    const call = slackCall(slackPayload({ user: "U0ANN", action: "approve", value: buttonOf(to("/slack/services")[0]!, "approve")!, responseUrl: responseUrl() }), { atS: Math.floor(world.clock.ms / 1000) });
    expect((await world.call("POST", "/hooks/slack", { text: call.text, headers: call.headers })).body).toMatchObject({ verdict: "approved" });
    expect(await world.call("POST", "/hooks/slack", { text: call.text, headers: call.headers })).toMatchObject({ status: 409, body: { code: "callback_replayed" } });
  });

  it("that cannot reach the broker says so, and can be repeated", async () => {
    await ask();
    world.decisions.down = true;
    expect(await click("U0ANN")).toMatchObject({ body: { verdict: "broker_unavailable" } });
    world.decisions.down = false;
    expect(await click("U0ANN")).toMatchObject({ body: { verdict: "approved" } });
  });
});

describe("a one-time link", () => {
  const hook = () => NoticeWebhook.parse(to("/hook")[0]?.body).data;
  const tokenOf = (url: string): string => new URL(url).hash.slice(1);
  const decide = (token: string, more: object = {}, options: object = {}) => world.call("POST", "/v1/links/decisions", { body: { token, approvalId: "apr_1", kind: "approve", version: 1, argsDigest: "sha256:ab", ...more }, ...options });

  it("comes with the webhook, leads to the confirm page, shows the approval to its person, decides once", async () => {
    await ask();
    const [link] = hook().links;
    expect(link).toMatchObject({ principal: "ann" });
    expect(new URL(link!.url).pathname).toBe("/confirm");
    const token = tokenOf(link!.url);
    for (const path of ["/confirm", `/confirm?token=${token}`, `/v1/links/decisions?token=${token}`, `/v1/links/open?token=${token}`]) await world.call("GET", path, {}).catch(() => undefined);
    expect(world.decisions.sent, "a GET decides nothing").toEqual([]);
    expect((await world.call("POST", "/v1/links/open", { body: { token } })).body).toMatchObject({ principal: "ann", used: false, item: { pending: { args: '{"amount":50}', record: { approvalId: "apr_1" } } } });
    expect((await decide(token)).body).toMatchObject({ verdict: "approved" });
    expect(await decide(token)).toMatchObject({ status: 409, body: { code: "link_used" } });
    expect(await decide(token, { kind: "reject", text: "no" })).toMatchObject({ status: 409, body: { code: "link_used" } });
    expect((await world.call("POST", "/v1/links/open", { body: { token } })).body).toMatchObject({ used: true });
    expect((await audit()).filter((row) => /^(link|approval)\./.test(row)).reverse().slice(0, 5)).toEqual(["link.make made docket/console", "link.open requested ann", "link.open shown ann", "approval.approve requested ann", "approval.approve approved ann"]);
  });

  it("is good for what it was made for only", async () => {
    await ask();
    const token = tokenOf(hook().links[0]!.url);
    expect((await decide(token, { approvalId: "apr_2" })).body["code"]).toBe("forbidden");
    expect((await decide(token, { version: 2 })).body["code"]).toBe("version_mismatch");
    expect((await decide(token, { argsDigest: "sha256:cd" })).body["code"]).toBe("digest_mismatch");
    expect((await decide(token, { kind: "reject" })).body["code"]).toBe("validation_failed");
    expect((await decide(token, { returnTo: "https://evil.example" })).body["code"]).toBe("validation_failed");
    for (const origin of ["https://evil.example", "null"]) expect((await decide(token, {}, { headers: { origin } })).body["code"], `a page of ${origin}`).toBe("forbidden");
    expect((await decide(`${token.slice(0, -4)}AAAA`)).body["code"]).toBe("bad_signature");
    world.clock.ms += 3_600_000;
    expect(await decide(token)).toMatchObject({ status: 410, body: { code: "link_expired" } });
    world.clock.ms -= 3_600_000;
    expect((await decide(token)).body, "none of that has used it").toMatchObject({ verdict: "approved" });
  });

  it("that could not be carried is as good as before", async () => {
    await ask();
    const token = tokenOf(hook().links[0]!.url);
    world.decisions.down = true;
    expect((await decide(token)).status).toBe(503);
    world.decisions.down = false;
    expect((await decide(token)).body).toMatchObject({ verdict: "approved" });
  });

  it("whose verdict is not known yet can be asked about again, for the same decision only", async () => {
    await ask();
    const token = tokenOf(hook().links[0]!.url);
    const judge = world.decisions.onSend;
    world.decisions.onSend = () => undefined;
    world.patience(100);
    expect((await decide(token)).status).toBe(202);
    world.patience();
    expect((await decide(token, { kind: "reject", text: "no" })).body["code"]).toBe("link_used");
    world.decisions.onSend = judge;
    expect((await decide(token)).body).toMatchObject({ verdict: "approved" });
    expect((await decide(token)).body["code"]).toBe("link_used");
  });

  it("with sign-in needs that very person, signed in", async () => {
    await world.close();
    await start(noticesText({ signIn: "always" }));
    await ask();
    const token = tokenOf(hook().links[0]!.url);
    expect((await decide(token)).body["code"]).toBe("unauthenticated");
    expect((await decide(token, {}, { key: world.key(["approver"], { id: "ben" }) })).body["code"]).toBe("forbidden");
    expect((await decide(token, {}, { key: world.key(["approver"], { id: "ann" }) })).body).toMatchObject({ verdict: "approved" });
  });

  it("is made by an administrator for anybody in the file, by others for themselves only, while the approval is open", async () => {
    await ask();
    const make = (key: string, principal: string) => world.call("POST", "/v1/approvals/apr_1/links", { key, body: { principal } });
    expect((await make(world.key(["approver"], { id: "ben" }), "ann")).body["code"]).toBe("forbidden");
    expect((await make(world.key(["admin"], { id: "root" }), "zoe")).body["code"]).toBe("validation_failed");
    const made = await make(world.key(["approver"], { id: "ann" }), "ann");
    expect(made).toMatchObject({ status: 201, body: { principal: "ann" } });
    expect((await make(world.key(["admin"], { id: "root" }), "ann")).status).toBe(201);
    expect((await decide(tokenOf(String(made.body["url"])))).body).toMatchObject({ verdict: "approved" });
    await journal(decided());
    expect((await make(world.key(["admin"], { id: "root" }), "ann")).body["code"]).toBe("already_decided");
  });
});

describe("without a notices file", () => {
  it("nobody is told, nothing waits, and the routes say so", async () => {
    await world.close();
    world = await startConsole(keys);
    await ask();
    expect(receiver.received).toEqual([]);
    expect(await notices()).toEqual([]);
    expect((await world.call("POST", "/hooks/slack", { text: "payload=x" })).body["code"]).toBe("not_found");
    expect((await world.call("POST", "/v1/links/open", { body: { token: "x" } })).body["code"]).toBe("not_found");
  });
});
