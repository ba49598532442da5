/** Every way in at the gateway, read from its routers: what is taken says who sent it (and so the session's journal does), what is refused publishes nothing and is written down. */
import { createHmac } from "node:crypto";
import { Writable } from "node:stream";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { GITHUB_SECRET, startTestGateway, STRIPE_SECRET, type TestGateway } from "../../support/gateway-fakes.js";
import { writesOf } from "../../support/routes.js";

let gw: TestGateway;
let lines: { msg: string; code?: string; principal?: string; keyId?: string; method?: string }[];
beforeEach(async () => {
  lines = [];
  const sink = new Writable({ write: (chunk: Buffer, _encoding, done) => { lines.push(JSON.parse(chunk.toString()) as (typeof lines)[number]); done(); } });
  gw = await startTestGateway({ logger: pino({ level: "warn" }, sink) });
  gw.sessions.append("acme", "s-1");
});
afterEach(() => gw.close());

interface Example { readonly path: string; readonly body: string; readonly headers?: Record<string, string>; readonly who: string; readonly signed?: true }
const json = (value: unknown): string => JSON.stringify(value);
const push = json({ ref: "refs/heads/main", repository: { id: 1, full_name: "a/b", name: "b", owner: { login: "a" } }, sender: { login: "ann", id: 1 }, commits: [], after: "0".repeat(40), before: "1".repeat(40) });
const charge = (): string => json({ id: "evt_1", object: "event", type: "charge.succeeded", created: 1, data: { object: { id: "ch_1", customer: "cus_1" } } });
const stripeHeader = (body: string): string => { const t = String(Math.floor(gw.clock.ms / 1000)); return `t=${t},v1=${createHmac("sha256", STRIPE_SECRET).update(`${t}.${body}`).digest("hex")}`; };
/** A route that is not here fails the test. */
const EXAMPLES: Readonly<Record<string, () => Example>> = {
  "POST /v1/prompts": () => ({ path: "/v1/prompts", body: json({ text: "hello" }), who: "ann@example.com" }),
  "POST /v1/events": () => ({ path: "/v1/events", body: json({ specversion: "1.0", id: "e1", source: "urn:x", type: "shop.order.paid", subject: "s-1", data: {} }), headers: { "content-type": "application/cloudevents+json" }, who: "ann@example.com" }),
  "POST /v1/sessions/:id/events": () => ({ path: "/v1/sessions/s-1/events", body: json({ text: "hello" }), who: "ann@example.com" }),
  "POST /v1/sessions/:id/cancel": () => ({ path: "/v1/sessions/s-1/cancel", body: json({ reason: "x" }), who: "ann@example.com" }),
  "POST /webhooks/github": () => ({ path: "/webhooks/github", body: push, signed: true, who: "webhook:github", headers: { "x-github-event": "push", "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958", "x-hub-signature-256": `sha256=${createHmac("sha256", GITHUB_SECRET).update(push).digest("hex")}` } }),
  "POST /webhooks/stripe": () => { const body = charge(); return { path: "/webhooks/stripe", body, signed: true, who: "webhook:stripe", headers: { "stripe-signature": stripeHeader(body) } }; },
};
const send = async (example: Example, headers: Record<string, string> = {}, body = example.body): Promise<number> =>
  (await fetch(gw.url + example.path, { method: "POST", body, headers: { "content-type": "application/json", ...(example.signed === true ? {} : { authorization: `Bearer ${gw.keys.all}` }), ...example.headers, ...headers } })).status;

describe("every way in", () => {
  it("has an example here, and each example has a route", () => {
    expect(writesOf(gw.gateway.publicApp).sort()).toEqual(Object.keys(EXAMPLES).sort());
  });

  it.each(Object.entries(EXAMPLES))("%s: taken, it says who; refused, nothing is published and it is written down", async (_route, make) => {
    const example = make();
    const refusals: [Record<string, string>, string | undefined, string | undefined][] = example.signed === true
      ? [[{ "x-hub-signature-256": "sha256=00", "stripe-signature": "t=1,v1=00" }, undefined, undefined]]
      : [[{ authorization: "" }, undefined, undefined], [{ authorization: `Bearer ${gw.keys.reader}` }, undefined, "ria"], [{ authorization: `Bearer ${gw.keys.old}` }, undefined, undefined], [{}, "{", "ann@example.com"]];
    for (const [headers, body, principal] of refusals) {
      const before = lines.filter(({ msg }) => msg === "refused").length;
      expect(await send(example, headers, body)).toBeGreaterThanOrEqual(400);
      const written = lines.filter(({ msg }) => msg === "refused").slice(before);
      expect(written).toHaveLength(1);
      expect(written[0]).toMatchObject({ method: "POST", code: expect.any(String) as string });
      expect(written[0]?.principal).toBe(principal);
    }
    expect(gw.publisher.published).toEqual([]);
    expect(await send(example)).toBe(202);
    expect(gw.publisher.published.map(({ principal }) => (JSON.parse(principal ?? "{}") as { id?: string }).id)).toEqual([example.who]);
  });
});
