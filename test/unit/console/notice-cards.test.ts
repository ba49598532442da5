/** One card, four languages: what is shown, what cannot be shown, what cannot be smuggled in, how it is signed, and when it is tried again. */
import { createHmac } from "node:crypto";
import fc from "fast-check";
import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { NoticeWebhook } from "../../../src/contracts/notices.js";
import type { ApprovalListItem } from "../../../src/contracts/api.js";
import type { ApprovalRecord, PendingApproval } from "../../../src/contracts/decisions.js";
import { discordCard, discordMessage } from "../../../src/console/notices/discord.js";
import { answerOf, backoffMs } from "../../../src/console/notices/post.js";
import { channelsFor } from "../../../src/console/notices/routing.js";
import { readNotices, type Channel } from "../../../src/console/notices/settings.js";
import { clickable, slackCard, slackMessage } from "../../../src/console/notices/slack.js";
import { readClick, verifySlack } from "../../../src/console/notices/slack-callback.js";
import { clip, visible } from "../../../src/console/notices/text.js";
import { sealWebhook, webhookBody } from "../../../src/console/notices/webhook.js";
import { pendingOf, recordOf, START_MS } from "../../support/console-fakes.js";
import { noticesText, settingsFor, SLACK_SECRET, slackCall, slackPayload, TEAM, WEBHOOK_SECRET } from "../../support/notices.js";

const consoleUrl = "https://docket.example.com";
const itemOf = (record: Partial<ApprovalRecord> = {}, pending: Partial<PendingApproval> = {}, more: Partial<ApprovalListItem> = {}): ApprovalListItem => ({ pending: pendingOf(recordOf(record), pending), state: "open", ...more });
const slack: Extract<Channel, { kind: "slack" }> = { name: "ops", kind: "slack", url: "https://hooks.slack.com/services/x", show: "all", buttons: "all" };
const inSlack = (item: ApprovalListItem, channel = slack) => {
  const card = slackCard(item, "opened", { channel, consoleUrl });
  const kinds = clickable(item, card, channel);
  return { kinds, message: slackMessage(card, Object.fromEntries(kinds.map((kind) => [kind, `signed-${kind}`]))) };
};
/** Every text object of a message that Slack parses for markup. */
const parsed = (value: unknown): string[] => (Array.isArray(value) ? value.flatMap(parsed) : typeof value === "object" && value !== null
  ? [...("type" in value && value.type === "mrkdwn" && "text" in value ? [String(value.text)] : []), ...Object.values(value).flatMap(parsed)] : []);
const literal = (message: object): string => JSON.stringify(message);
const joined = (message: { blocks: readonly object[] }): string => message.blocks.flatMap((block) => JSON.stringify(block).match(/"text":"(?:[^"\\]|\\.)*"/g) ?? []).map((text) => (JSON.parse(`{${text}}`) as { text: string }).text).join("\n");
const HOSTILE = "<!channel> <https://evil.example|click> *bold* `code` ``` @everyone <@U0ANN> &lt;!here&gt; [x](https://evil.example) \u202egnp.exe :tada:";

describe("a card in Slack", () => {
  it("shows all arguments, who may decide, until when, why, and is bound to a version and a digest", () => {
    const { kinds, message } = inSlack(itemOf());
    for (const words of ['{"amount":50}', "refund", "high", "ord-1", "bob", "the parcel is lost", "where is my parcel", "untrusted", "sha256:ab", "apr_1, version 1", "moves money", `${consoleUrl}/approvals/apr_1`]) expect(literal(message)).toContain(JSON.stringify(words).slice(1, -1));
    expect(kinds).toEqual(["approve", "reject"]);
    expect(literal(message)).toContain("Arguments, exactly and in full");
    expect(message.blocks.length).toBeLessThanOrEqual(50);
  });

  it("says how much is left out, and then offers no button to approve", () => {
    const args = JSON.stringify({ note: "x".repeat(20_000) });
    const { kinds, message } = inSlack(itemOf({}, { args }));
    const shown = joined(message);
    expect(kinds).toEqual(["reject"]);
    expect(shown).toContain(`${String(args.length - 8_400)} more characters: open it in the console`);
    expect(shown).toContain("It can be approved in the console only");
    for (const [, text] of literal(message).matchAll(/"text":"((?:[^"\\]|\\.)*)"/g)) expect((JSON.parse(`"${text ?? ""}"`) as string).length).toBeLessThanOrEqual(3_000);
  });

  it.each([
    ["buttons are off", { buttons: "none" }, {}, []], ["the risk is high and buttons are for less", { buttons: "below-high" }, {}, []], ["less risk", { buttons: "below-high" }, { risk: "medium" }, ["approve", "reject"]],
    ["a summary", { show: "summary" }, {}, []], ["an answer that is not allowed", {}, { allowed: ["reject"] }, ["reject"]], ["an escalation", {}, { kind: "escalation", escalation: "budget", allowed: ["raise", "give_up"] }, []],
  ] as const)("buttons: %s", (_what, channel, record, kinds) => {
    expect(inSlack(itemOf(record as Partial<ApprovalRecord>), { ...slack, ...channel }).kinds).toEqual(kinds);
  });

  it("nothing that somebody else wrote is markup: literal elements only, the fallback escaped, the unseen written out", () => {
    const item = itemOf({ question: HOSTILE, requestedBy: HOSTILE.slice(0, 100) }, { args: JSON.stringify({ note: HOSTILE }), rationale: HOSTILE, trigger: HOSTILE, sessionId: HOSTILE });
    const { message } = inSlack(item);
    expect(parsed(message)).toEqual([]);
    expect(message.text).not.toMatch(/[<>]/);
    expect(message.text).toContain("&lt;!channel&gt;");
    expect(literal(message)).not.toContain("\u202e");
    expect(literal(message)).toContain("\\\\u202e");
    for (const block of message.blocks as { type: string }[]) expect(["header", "rich_text", "actions", "input"]).toContain(block.type);
  });

  it("a summary has neither arguments nor the words of model and sender", () => {
    expect(literal(inSlack(itemOf(), { ...slack, show: "summary" }).message)).not.toMatch(/amount|parcel|moves money/);
  });

  it("once it is decided it says so, and has no button to decide", () => {
    const item = itemOf({}, {}, { state: "decided", decidedBy: "ann", decision: "approve", decidedAtMs: START_MS });
    const { kinds, message } = inSlack(item);
    expect(kinds).toEqual([]);
    expect(joined(message)).toContain("approved by ann");
    expect(literal(message)).not.toContain('"action_id":"approve"');
  });
});

describe("a card in Discord", () => {
  const message = (item: ApprovalListItem) => discordMessage(discordCard(item, "opened", { channel: { show: "all" }, consoleUrl })) as { content: string; allowed_mentions: object; embeds: { title: string; description: string; url: string }[] };
  it("pings nobody, and what others wrote stays inside its code block", () => {
    const { allowed_mentions, content, embeds: [embed] } = message(itemOf({ question: HOSTILE }, { args: JSON.stringify({ note: HOSTILE }), rationale: HOSTILE, trigger: HOSTILE }));
    expect([allowed_mentions, content]).toEqual([{ parse: [] }, ""]);
    const outside = (embed?.description ?? "").split(/^```$/m).filter((_, index) => index % 2 === 0).join("");
    expect(outside).not.toMatch(/evil|everyone|channel/);
    expect((embed?.description.match(/`/g) ?? []).length % 6).toBe(0);
  });
  it("fits, whatever it is about, and says what is left out", () => {
    const long = "x".repeat(30_000);
    const { embeds: [embed] } = message(itemOf({ question: long, approvers: { roles: Array.from({ length: 50 }, () => "r".repeat(100)), quorum: 1, excludeRequester: false } }, { args: JSON.stringify({ long }), rationale: long, trigger: long, sessionId: "s".repeat(200) }));
    expect(embed?.description.length).toBeLessThanOrEqual(4_096);
    expect((embed?.description.length ?? 0) + (embed?.title.length ?? 0)).toBeLessThanOrEqual(6_000);
    expect(embed?.description).toContain("28211 more characters: open it in the console");
  });
});

describe("a card as a webhook", () => {
  const body = webhookBody(itemOf({}, { args: '{"id":9007199254740993}' }), { noticeId: "ntc_1", event: "opened", atMs: START_MS, show: "all", consoleUrl, links: [{ principal: "ann", url: `${consoleUrl}/confirm#t`, expiresAtMs: START_MS + 1 }] });
  it("is what its schema says, with every digit, and verifies as Standard Webhooks has it", () => {
    const nowMs = Date.now();
    const { headers } = sealWebhook(body, "ntc_1", nowMs, [WEBHOOK_SECRET]);
    expect(NoticeWebhook.parse(new Webhook(WEBHOOK_SECRET).verify(body, { ...headers }))).toMatchObject({ type: "approval.opened", data: { noticeId: "ntc_1", args: '{"id":9007199254740993}', approvalId: "apr_1", version: 1, argsDigest: "sha256:ab", url: `${consoleUrl}/approvals/apr_1`, links: [{ principal: "ann" }] } });
  });
  it.each([["another body", `${body} `, {}], ["another id", body, { "webhook-id": "ntc_2" }], ["another time", body, { "webhook-timestamp": "1" }], ["another secret", body, {}, `whsec_${Buffer.alloc(32, 8).toString("base64")}`]])("does not verify with %s", (_what, text, more, secret = WEBHOOK_SECRET) => {
    const { headers } = sealWebhook(body, "ntc_1", Date.now(), [WEBHOOK_SECRET]);
    expect(() => new Webhook(secret).verify(text, { ...headers, ...more })).toThrow();
  });
  it("verifies with the old and the new secret while one is rotated", () => {
    const other = `whsec_${Buffer.alloc(24, 9).toString("base64")}`;
    const { headers } = sealWebhook(body, "ntc_1", Date.now(), [WEBHOOK_SECRET, other]);
    for (const secret of [WEBHOOK_SECRET, other]) expect(() => new Webhook(secret).verify(body, { ...headers })).not.toThrow();
  });
  it("a summary has neither arguments nor words", () => {
    expect(webhookBody(itemOf(), { noticeId: "n", event: "opened", atMs: 0, show: "summary", consoleUrl, links: [] })).not.toMatch(/amount|parcel|moves money/);
  });
});

describe("when a notice is tried again", () => {
  it("pauses grow twofold to a cap, with full jitter", () => {
    const timing = { baseMs: 1_000, capMs: 60_000 };
    expect([1, 2, 3, 7, 8, 10_000].map((attempts) => backoffMs(attempts, 0.999_999, timing))).toEqual([999, 1_999, 3_999, 59_999, 59_999, 59_999]);
    fc.assert(fc.property(fc.integer({ min: 1, max: 1e9 }), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (attempts, random) => {
      const pause = backoffMs(attempts, random, timing);
      return pause >= 0 && pause < 60_000 && Number.isInteger(pause) && pause === Math.floor(random * Math.min(60_000, 1_000 * 2 ** Math.min(attempts - 1, 30)));
    }));
  });
  it.each([[200, "sent"], [204, "sent"], [302, "refused"], [400, "refused"], [401, "refused"], [404, "refused"], [410, "gone"], [408, "later"], [425, "later"], [429, "later"], [500, "later"], [503, "later"]] as const)("HTTP %i is %s", (status, kind) => {
    expect(answerOf(status, null, "").kind).toBe(kind);
  });
  it("waits as long as it is asked to, an hour at most, and keeps only codes of what a receiver says", () => {
    expect(answerOf(429, "7", "")).toMatchObject({ retryAfterMs: 7_000 });
    expect(answerOf(429, "999999", "")).toMatchObject({ retryAfterMs: 3_600_000 });
    expect(answerOf(429, "soon", "")).toMatchObject({ retryAfterMs: 0 });
    expect([answerOf(404, null, "channel_not_found\n").note, answerOf(404, null, "no such https://hooks.slack.com/services/secret").note]).toEqual(["HTTP 404 channel_not_found", "HTTP 404"]);
  });
});

describe("what is shown of a text", () => {
  it("is counted, never half a character, never unseen", () => {
    fc.assert(fc.property(fc.string({ unit: "binary", maxLength: 200 }), fc.integer({ min: 1, max: 50 }), (text, max) => {
      const { shown, more } = clip(text, max);
      return shown.length <= max && shown.length + more === visible(text).length && !/\p{Cs}/u.test(shown) && visible(text).startsWith(shown);
    }));
  });
});

describe("which channels", () => {
  const routesOf = (yaml: string) => settingsFor(noticesText({ routes: yaml }), { url: "http://127.0.0.1:1" }, consoleUrl).routes;
  it.each([
    ["everything", "routes:\n  - { to: [ops] }", {}, "opened", ["ops"]],
    ["by risk", "routes:\n  - { match: { risk: [low] }, to: [ops] }\n  - { match: { risk: [high] }, to: [hook] }", {}, "opened", ["hook"]],
    ["by tool, each channel once", "routes:\n  - { match: { tools: ['*fund'] }, to: [ops, chat] }\n  - { match: { tools: [refund] }, to: [chat] }", {}, "opened", ["ops", "chat"]],
    ["by agent", "routes:\n  - { match: { agents: [other] }, to: [ops] }", {}, "opened", []],
    ["by who may decide", "routes:\n  - { match: { approvers: [finance] }, to: [ops] }", { approvers: { roles: ["finance"], quorum: 1, excludeRequester: false } }, "opened", ["ops"]],
    ["by group", "routes:\n  - { match: { approvers: [emea] }, to: [ops] }", { approvers: { roles: [], groups: ["emea"], quorum: 1, excludeRequester: false } }, "opened", ["ops"]],
    ["an escalation, to those who come in by it", "routes:\n  - { match: { approvers: [lead] }, on: [escalated], to: [hook] }", {}, "escalated", ["hook"]],
    ["only some events", "routes:\n  - { on: [reminded], to: [ops] }", {}, "opened", []],
    ["only escalations of runs", "routes:\n  - { match: { kinds: [escalation] }, to: [ops] }", {}, "opened", []],
    ["only its tenant", "routes:\n  - { match: { tenant: other }, to: [ops] }", {}, "opened", []],
  ] as const)("%s", (_what, yaml, record, event, channels) => {
    expect(channelsFor(routesOf(yaml), pendingOf(recordOf(record as Partial<ApprovalRecord>)), event, ["lead"])).toEqual(channels);
  });
});

describe("the notices file", () => {
  const faultsOf = (text: string, secret: (name: string) => string | undefined = () => WEBHOOK_SECRET): string => {
    try { readNotices(text, { from: "notices.yaml", consoleUrl, secret }); return ""; } catch (error) { return (error as Error).message; }
  };
  it("is refused with every fault, each with its place, and without a secret", () => {
    const text = noticesText({ routes: "routes:\n  - { to: [opps] }", people: "  - { principal: ann, roles: [] }" });
    const faults = faultsOf(text, (name) => (name === "SLACK_URL" ? "http://hooks.slack.example/secret-path" : name === "HOOK_SECRET" ? "too-short" : undefined));
    for (const words of ["channels.ops: its address is no https address", "DOCKET_NOTICE_SECRET_DISCORD_URL is not set", "channels.hook.signingSecret: expected whsec_", "routes.0.to: no channel is named opps (did you mean", "principal default ann is there twice", "DOCKET_NOTICE_SECRET_SLACK_SIGNING"]) expect(faults).toContain(words);
    expect(faults).not.toMatch(/secret-path|too-short/);
  });
  it.each([
    ["an unknown word", "version: 1\nchanels: {}\n", "chanels"], ["no version", "channels: {}\nroutes: []\n", "version"], ["no YAML", "version: [", "is not YAML"],
    ["buttons without Slack's secret", "version: 1\nchannels: { ops: { kind: slack, urlFrom: A, buttons: all } }\nroutes: [{ to: [ops] }]\n", "buttons need the section slack"],
    ["a link for nobody", "version: 1\nchannels: { h: { kind: webhook, url: 'https://x.example', signingSecret: A, links: [zoe] } }\nroutes: [{ to: [h] }]\n", "nobody in people is zoe"],
    ["two addresses", "version: 1\nchannels: { h: { kind: webhook, url: 'https://x.example', urlFrom: B, signingSecret: A } }\nroutes: [{ to: [h] }]\n", "either url, or urlFrom"],
    ["a person with roles and a key", "version: 1\nchannels: { h: { kind: webhook, url: 'https://x.example', signingSecret: A } }\nroutes: [{ to: [h] }]\npeople: [{ principal: ann, roles: [], key: abcd }]\n", "either the roles, or the id"],
  ])("is refused: %s", (_what, text, words) => { expect(faultsOf(text)).toContain(words); });
});

describe("a callback of Slack", () => {
  const payload = slackPayload({ user: "U0ANN", action: "approve", value: "v", responseUrl: "https://hooks.slack.com/actions/x" });
  const nowMs = 1_700_000_000_000;
  const check = ({ text, headers }: ReturnType<typeof slackCall>, secrets = [SLACK_SECRET]) => () => verifySlack(Buffer.from(text), { signature: headers["x-slack-signature"], timestamp: headers["x-slack-request-timestamp"] }, { secrets, nowMs, windowMs: 300_000 });
  const call = slackCall(payload, { atS: nowMs / 1000 });

  it("verifies over its raw bytes, with each of the secrets, for five minutes; a call has one hash", () => {
    expect(check(call)()).toBe(check(call)());
    expect(check(call, ["old", SLACK_SECRET])).not.toThrow();
    expect(check(slackCall(payload, { atS: nowMs / 1000 - 299 }))).not.toThrow();
    expect(check(slackCall(payload, { atS: nowMs / 1000 - 301 }))).toThrow(expect.objectContaining({ code: "stale_timestamp" }) as Error);
    expect(check(slackCall(payload, { atS: nowMs / 1000 + 301 }))).toThrow(expect.objectContaining({ code: "stale_timestamp" }) as Error);
    for (const other of [{ ...call, text: `${call.text}&x=1` }, { ...call, headers: { ...call.headers, "x-slack-request-timestamp": String(nowMs / 1000 + 1) } }, slackCall(payload, { atS: nowMs / 1000, secret: "guess" }), { ...call, headers: {} as Record<string, string> }]) {
      expect(check(other)).toThrow(expect.objectContaining({ code: "bad_signature" }) as Error);
    }
  });

  it("is a test vector of Slack's own", () => {
    // From Slack's documentation of request signing.
    const text = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    const signature = `v0=${createHmac("sha256", "8f742231b10e8888abcd99yyyzzz85a5").update(`v0:1531420618:${text}`).digest("hex")}`;
    expect(signature).toBe("v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503");
    expect(() => verifySlack(Buffer.from(text), { signature, timestamp: "1531420618" }, { secrets: ["8f742231b10e8888abcd99yyyzzz85a5"], nowMs: 1_531_420_618_000, windowMs: 300_000 })).not.toThrow();
  });

  it.each([["no payload", ""], ["no JSON", "payload=%7B"], ["something else than a click", `payload=${encodeURIComponent('{"type":"view_submission"}')}`]])("is refused: %s", (_what, text) => {
    expect(() => readClick(text, { slackOrigins: ["https://hooks.slack.com"] }, TEAM)).toThrow(expect.objectContaining({ code: "validation_failed" }) as Error);
  });
});
