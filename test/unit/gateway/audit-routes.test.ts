/**
 * No action without a record at the gateway: every route that is no plain read, taken from its router, is tried with success and refused. What is taken is an event with
 * the principal that the edge authenticated, which its session's journal keeps; what is refused for want of rights is told to the console's audit; a read takes nothing (I10).
 */
import { createHmac } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RefusalsNoted } from "../../../src/contracts/reports.js";
import { GITHUB_SECRET, startTestGateway, STRIPE_SECRET, type TestGateway } from "../../support/gateway-fakes.js";
import { routesOf, writesOf } from "../../support/routes.js";

let gw: TestGateway;
beforeEach(async () => { gw = await startTestGateway(); });
afterEach(() => gw.close());

interface Example { readonly path?: string; readonly text: string; readonly headers: (gw: TestGateway) => Record<string, string>; readonly by: string; readonly refused: string; readonly withoutKey?: true }
const keyed = (type = "application/json") => ({ keys }: TestGateway): Record<string, string> => ({ authorization: `Bearer ${keys.all}`, "content-type": type });
const event = JSON.stringify({ specversion: "1.0", id: "e-1", source: "urn:shop", type: "shop.order.created", subject: "s-1", data: {} });
const issue = JSON.stringify({ action: "opened", issue: { number: 1 }, repository: { full_name: "octo/x" } });
const invoice = JSON.stringify({ id: "evt_1", object: "event", type: "invoice.paid", data: { object: { id: "in_1", customer: "cus_1" } } });
const hmac = (secret: string, text: string): string => createHmac("sha256", secret).update(text).digest("hex");

/** How each route succeeds. One that is not here fails the test: say how it does, by whose word, and how it is refused without the right. */
const EXAMPLES: Readonly<Record<string, Example>> = {
  "POST /v1/prompts": { text: '{"text":"hello","sessionId":"s-1"}', headers: keyed(), by: "ann@example.com", refused: "unauthenticated" },
  "POST /v1/events": { text: event, headers: keyed("application/cloudevents+json"), by: "ann@example.com", refused: "unauthenticated" },
  "POST /v1/sessions/:id/events": { text: '{"text":"hello"}', headers: keyed(), by: "ann@example.com", refused: "unauthenticated" },
  "POST /v1/sessions/:id/cancel": { text: '{"reason":"wrong"}', headers: keyed(), by: "ann@example.com", refused: "unauthenticated" },
  "POST /webhooks/github": { text: issue, headers: () => ({ "content-type": "application/json", "x-github-event": "issues", "x-github-delivery": "d-1", "x-hub-signature-256": `sha256=${hmac(GITHUB_SECRET, issue)}` }), by: "webhook:github", refused: "bad_signature", withoutKey: true },
  "POST /webhooks/stripe": { text: invoice, headers: ({ clock }) => { const at = String(Math.floor(clock.ms / 1_000)); return { "content-type": "application/json", "stripe-signature": `t=${at},v1=${hmac(STRIPE_SECRET, `${at}.${invoice}`)}` }; }, by: "webhook:stripe", refused: "bad_signature", withoutKey: true },
};
const pathOf = (route: string): string => route.replace(/^\w+ /, "").replace(":id", "s-1").replace(":key", "0".repeat(32));
const send = async (route: string, init: RequestInit): Promise<{ status: number; code: unknown }> => {
  const response = await fetch(`${gw.url}${pathOf(route)}`, init);
  const text = await response.text();
  return { status: response.status, code: (JSON.parse(text) as { code?: unknown }).code };
};
const told = async (): Promise<string[]> => {
  await gw.refusals.flush();
  return gw.reports.flatMap((report) => RefusalsNoted.parse(JSON.parse(report.data)).refusals).map(({ code, method, path }) => `${code} ${method} ${path}`);
};

describe("every route of the gateway that is no plain read", () => {
  it("has an example here, and each example has a route", () => { expect(writesOf(gw.gateway.publicApp).sort()).toEqual(Object.keys(EXAMPLES).sort()); });

  it.each(Object.entries(EXAMPLES))("%s: what it takes says by whose word, and a refusal is told to the audit", async (route, example) => {
    gw.sessions.append("acme", "s-1");
    const done = await send(route, { method: "POST", body: example.text, headers: example.headers(gw) });
    expect(done.status, JSON.stringify(done)).toBe(202);
    expect(gw.publisher.published.map(({ principal, tenant }) => `${tenant ?? ""} ${(JSON.parse(principal ?? "{}") as { id?: string }).id ?? ""}`)).toEqual([`acme ${example.by}`]);
    expect(await told()).toEqual([]);

    const lesser: RequestInit[] = example.withoutKey === true
      ? [{ headers: { ...example.headers(gw), "x-hub-signature-256": `sha256=${"0".repeat(64)}`, "stripe-signature": `t=${String(Math.floor(gw.clock.ms / 1_000))},v1=${"0".repeat(64)}` } }, { headers: { "content-type": "application/json", "x-github-event": "issues", "x-github-delivery": "d-1" } }]
      : [{ headers: {} }, { headers: { authorization: "Bearer dk_0000_00000000000000000000" } }, { headers: { authorization: `Bearer ${gw.keys.old}` } }];
    for (const init of lesser) expect(await send(route, { method: "POST", body: example.text, ...init })).toMatchObject({ code: example.refused });
    if (example.withoutKey !== true) expect(await send(route, { method: "POST", body: example.text, headers: { ...example.headers(gw), authorization: `Bearer ${gw.keys.reader}` } })).toMatchObject({ code: "forbidden" });
    const expected = [...lesser.map(() => example.refused), ...(example.withoutKey === true ? [] : ["forbidden"])].map((code) => `${code} POST ${pathOf(route)}`);
    expect(await told()).toEqual(expected);
    expect(gw.publisher.published, "a refused request was taken").toHaveLength(1);
  });
});

it("every GET of the gateway takes nothing and stores nothing", async () => {
  gw.sessions.append("acme", "s-1");
  const gets = routesOf(gw.gateway.publicApp).filter((route) => route.startsWith("GET "));
  expect(gets.length).toBeGreaterThan(4);
  for (const route of gets) {
    const abort = new AbortController();
    const response = await fetch(`${gw.url}${pathOf(route)}`, { headers: { authorization: `Bearer ${gw.keys.all}` }, signal: abort.signal });
    expect(response.status, route).toBe(200);
    abort.abort(); // streams have no end
  }
  expect([gw.publisher.published.length, gw.store.transactions]).toEqual([0, 0]);
});
