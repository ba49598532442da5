/** Webhook signatures and replay (research 7.3, T10), over real HTTP. */
import { createHmac } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { actorIdOf } from "../../../src/contracts/ids.js";
import { GITHUB_SECRET, startTestGateway, STRIPE_SECRET, type TestGateway } from "../../support/gateway-fakes.js";

let gw: TestGateway;
beforeEach(async () => { gw = await startTestGateway(); });
afterEach(async () => { await gw.close(); });

const hmac = (secret: string, body: string | Buffer): string => createHmac("sha256", secret).update(body).digest("hex");
const issue = { action: "opened", issue: { number: 7 }, repository: { full_name: "octo/hello", html_url: "https://github.com/octo/hello" } };
const github = (body: string | Buffer, headers: Record<string, string | undefined> = {}) => send("/webhooks/github", body, { "x-hub-signature-256": `sha256=${hmac(GITHUB_SECRET, body)}`, "x-github-event": "issues", "x-github-delivery": "d-1", "content-type": "application/json", ...headers });
const stripeEvent = { id: "evt_1", object: "event", type: "invoice.paid", data: { object: { id: "in_1", customer: "cus_9" } } };
const seconds = (): number => Math.floor(gw.clock.nowMs() / 1000);
const stripe = (body: string, header?: string) => send("/webhooks/stripe", body, { "stripe-signature": header ?? signed(body), "content-type": "application/json" });
const signed = (body: string, t: number | string = seconds(), secret = STRIPE_SECRET): string => `t=${t},v1=${hmac(secret, `${t}.${body}`)}`;

async function send(path: string, body: string | Buffer, headers: Record<string, string | undefined>) {
  const given = Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const res = await fetch(gw.url + path, { method: "POST", body, headers: given });
  return { status: res.status, json: (await res.json()) as Record<string, unknown> };
}

describe("GitHub", () => {
  const body = JSON.stringify(issue);

  it("takes a signed delivery: type, source, subject and tenant from what was verified", async () => {
    expect(await github(body)).toMatchObject({ status: 202, json: { tenant: "acme", sessionId: "octo/hello#7", eventId: "d-1" } });
    expect(gw.publisher.published[0]).toMatchObject({ type: "com.github.issues.opened", source: "https://github.com/octo/hello", subject: "octo/hello#7", tenant: "acme", agent: "repo-helper", principal: '{"id":"webhook:github","class":"webhook","roles":[]}' });
  });

  it("answers a redelivery like the first, without effect", async () => {
    const first = await github(body);
    expect(await github(body)).toEqual(first);
    expect(gw.publisher.published).toHaveLength(1);
  });

  it("keeps digits and bytes: white space, numbers beyond 2^53, and a body that no serialiser would write", async () => {
    const odd = '{\r\n "action":"opened" ,"issue":{"number":7,"id":12345678901234567890},"repository":{"full_name":"octo/hello","html_url":"https://github.com/octo/hello"}}\n';
    expect((await github(odd)).status).toBe(202);
    expect(gw.publisher.texts()[0]).toContain("12345678901234567890");
  });

  it("takes the form encoding, signed over the form", async () => {
    const form = `payload=${encodeURIComponent(body)}`;
    expect((await github(form, { "content-type": "application/x-www-form-urlencoded" })).status).toBe(202);
  });

  it("takes the older secret while one is rotated", async () => {
    expect((await github(body, { "x-hub-signature-256": `sha256=${hmac("github-secret-0", body)}` })).status).toBe(202);
  });

  const good = hmac(GITHUB_SECRET, body);
  it.each([
    ["no signature", undefined], ["an empty one", ""], ["another secret's", `sha256=${hmac("other-secret", body)}`], ["one of an empty secret", `sha256=${hmac("", body)}`],
    ["Stripe's secret", `sha256=${hmac(STRIPE_SECRET, body)}`], ["upper case", `sha256=${good.toUpperCase()}`], ["a truncated digest", `sha256=${good.slice(0, 63)}`], ["a longer digest", `sha256=${good}0`],
    ["no prefix", good], ["SHA-1 under the name of SHA-256", `sha1=${createHmac("sha1", GITHUB_SECRET).update(body).digest("hex")}`], ["two signatures", `sha256=${good}, sha256=${good}`],
    ["inner white space", `sha256= ${good}`], ["no hex", `sha256=${"z".repeat(64)}`],
  ])("refuses %s", async (_name, header) => {
    expect(await github(body, { "x-hub-signature-256": header })).toMatchObject({ status: 401, json: { code: "bad_signature" } });
    expect(gw.publisher.published).toEqual([]);
    expect(gw.store.items.size).toBe(0);
  });

  it("refuses the body when any one byte changed", async () => {
    for (let at = 0; at < body.length; at += 13) {
      const changed = Buffer.from(body);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect((await github(changed, { "x-hub-signature-256": `sha256=${good}` })).status).toBeGreaterThanOrEqual(400);
    }
    expect(gw.publisher.published).toEqual([]);
  });

  it("refuses a signed body that is not UTF-8, not JSON, or no object, with a reason", async () => {
    expect((await github(Buffer.from([0x7b, 0xff, 0x7d]))).status).toBe(400);
    expect((await github("not json")).status).toBe(400);
    expect((await github("[]")).status).toBe(422);
    expect((await github("[".repeat(200_000))).status).toBe(400);
    expect((await github(body, { "x-github-event": undefined })).status).toBe(400);
    expect((await github(body, { "x-github-delivery": undefined })).status).toBe(400);
    expect((await github(body, { "x-github-event": "issues/../x" })).status).toBe(400);
  });

  it("answers 200 with the reason for a ping and for what no agent wants", async () => {
    expect(await github('{"zen":"x"}', { "x-github-event": "ping" })).toMatchObject({ status: 200, json: { ignored: "ping" } });
    expect(await github(JSON.stringify({ action: "created" }), { "x-github-event": "star" })).toMatchObject({ status: 200, json: { ignored: "agent_unknown" } });
    expect(await github('{"action":"opened"}')).toMatchObject({ status: 200, json: { ignored: "session_id_missing" } });
    expect(gw.publisher.published).toEqual([]);
  });

  it("asks GitHub to come again when the store is down, and says when no secret is configured", async () => {
    gw.store.down = true;
    expect((await github(body)).status).toBe(503);
    await gw.close();
    gw = await startTestGateway({ config: { webhooks: {} } });
    expect(await github(body)).toMatchObject({ status: 404, json: { code: "not_found" } });
    expect((await stripe("{}")).status).toBe(404);
  });

  it("gives each tenant its own secret", async () => {
    await gw.close();
    gw = await startTestGateway({ config: { webhooks: { github: [{ secrets: ["secret-of-a"], tenant: "a" }, { secrets: ["secret-of-b"], tenant: "b" }] } } });
    expect(await github(body, { "x-hub-signature-256": `sha256=${hmac("secret-of-b", body)}` })).toMatchObject({ status: 202, json: { tenant: "b" } });
    expect(gw.publisher.published[0]?.partitionkey).toBe(actorIdOf("b", "octo/hello#7"));
  });

  it("limits an address that floods", async () => {
    await gw.close();
    gw = await startTestGateway({ config: { rateLimit: { perAddress: 2, perPrincipal: 10 } } });
    const statuses = [];
    for (let n = 0; n < 3; n += 1) statuses.push((await github("x", { "x-hub-signature-256": "sha256=0" })).status);
    expect(statuses).toEqual([401, 401, 429]);
  });

  it("tells addresses behind a proxy apart once that is counted, believes nothing before it, and nothing that a client wrote", async () => {
    const from = async (...forwarded: string[]): Promise<number[]> => {
      const statuses = [];
      for (const address of forwarded) statuses.push((await github("x", { "x-hub-signature-256": "sha256=0", "x-forwarded-for": address })).status);
      return statuses;
    };
    for (const [trustProxyHops, statuses] of [[0, [401, 429, 429]], [1, [401, 401, 429]]] as const) {
      await gw.close();
      gw = await startTestGateway({ config: { trustProxyHops, rateLimit: { perAddress: 1, perPrincipal: 10 } } });
      expect(await from("203.0.113.1", "203.0.113.2", "203.0.113.9, 203.0.113.2")).toEqual(statuses);
    }
  });
});

describe("Stripe", () => {
  const body = JSON.stringify(stripeEvent, null, 2);

  it("takes a signed delivery; the trigger derives the session from the verified body", async () => {
    expect(await stripe(body)).toMatchObject({ status: 202, json: { sessionId: "cus_9", eventId: "evt_1", agent: "billing" } });
    expect(gw.publisher.published[0]).toMatchObject({ type: "com.stripe.invoice.paid", source: "https://api.stripe.com" });
  });

  it("knows a replay inside the window, also one signed anew and after a restart", async () => {
    await stripe(body);
    gw.clock.advance(60_000);
    expect((await stripe(body)).status).toBe(202);
    const { store, clock } = gw;
    await gw.close();
    gw = await startTestGateway({ store, clock });
    await gw.gateway.adopt(); // as at every start
    expect((await stripe(body)).status).toBe(202);
    expect(gw.publisher.published).toEqual([]);
  });

  it("takes any of several v1, and the older secret", async () => {
    const t = seconds();
    expect((await stripe(body, `t=${t},v1=${"0".repeat(64)},v1=${hmac(STRIPE_SECRET, `${t}.${body}`)},v0=x`)).status).toBe(202);
    expect((await stripe(body, signed(body, t, "stripe-secret-0"))).status).toBe(202);
  });

  it("is inside the window at 300 s either way, and not a second later", async () => {
    const t = seconds();
    expect((await stripe(body, signed(body, t - 299))).status).toBe(202);
    expect((await stripe(body, signed(body, t + 299))).status).toBe(202);
    expect(await stripe(body, signed(body, t - 302))).toMatchObject({ status: 401, json: { code: "stale_timestamp" } });
    expect(await stripe(body, signed(body, t + 302))).toMatchObject({ status: 401, json: { code: "stale_timestamp" } });
  });

  const v1 = (t: string): string => `v1=${hmac(STRIPE_SECRET, `${t}.${body}`)}`;
  it.each([
    ["NaN", "NaN"], ["negative", "-5"], ["2^63", "9223372036854775808"], ["empty", ""], ["a float", "1.5"], ["hex", "0x10"], ["a leading zero", "01700000000"], ["white space", " 1700000000"], ["exponent", "1e9"],
  ])("refuses the timestamp %s though signed", async (_name, t) => {
    expect(await stripe(body, `t=${t},${v1(t)}`)).toMatchObject({ status: 401 });
    expect(gw.publisher.published).toEqual([]);
  });

  it("refuses missing parts, two timestamps, v0 alone, upper case, truncation, another body, huge headers", async () => {
    const t = String(seconds());
    const digest = hmac(STRIPE_SECRET, `${t}.${body}`);
    const headers = ["", "x", v1(t), `t=${t}`, `t=${t},t=1,${v1(t)}`, `t=${t},v0=${digest}`, `t=${t},v1=${digest.toUpperCase()}`, `t=${t},v1=${digest.slice(1)}`, `t=${t},v1=${hmac(STRIPE_SECRET, `${t}. ${body}`)}`,
      `t=${t},v1=${hmac(STRIPE_SECRET, body)}`, `t=${t},v1=${hmac("", `${t}.${body}`)}`, `t=${Number(t) + 1},v1=${digest}`, `t=${t},${Array.from({ length: 500 }, () => "v1=00").join(",")}`];
    for (const header of headers) expect((await stripe(body, header)).status).toBe(401);
    expect(gw.publisher.published).toEqual([]);
  });

  it("refuses a signed body without id or type, and takes an event that no agent wants as ignored", async () => {
    expect((await stripe("{}")).status).toBe(422);
    expect((await stripe('{"id":"evt_2","type":"Weird Type"}')).status).toBe(422);
    expect(await stripe('{"id":"evt_3","type":"customer.created","data":{"object":{}}}')).toMatchObject({ status: 200, json: { ignored: "session_id_missing" } });
  });
});
