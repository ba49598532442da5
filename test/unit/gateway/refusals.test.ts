/** What the gateway refuses for want of rights reaches the console's audit: each once, bounded per address, kept while the broker is gone (I10). */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { REFUSALS_NOTED, RefusalsNoted, type Refusal } from "../../../src/contracts/reports.js";
import type { Envelope } from "../../../src/contracts/cloudevent.js";
import { RefusalBook } from "../../../src/gateway/refusals.js";
import { createLogger } from "../../../src/platform/log.js";
import { post, startTestGateway, type TestGateway } from "../../support/gateway-fakes.js";

const linesOf = (sent: readonly Envelope[]): Refusal[] => sent.flatMap((envelope) => { expect(envelope.type).toBe(REFUSALS_NOTED); return RefusalsNoted.parse(JSON.parse(envelope.data)).refusals; });

describe("a refusal at the gateway", () => {
  let gw: TestGateway;
  beforeEach(async () => { gw = await startTestGateway(); });
  afterEach(() => gw.close());

  it("is told with who asked for what: no key, a key without the scope, a webhook with a wrong signature, a read without a key", async () => {
    await post(gw, "/v1/prompts", { text: "hello" }, { authorization: "Bearer dk_0000_00000000000000000000" });
    await post(gw, "/v1/prompts", { text: "hello" }, { authorization: `Bearer ${gw.keys.reader}` });
    await post(gw, "/webhooks/github", "{}", { "x-github-event": "push", "x-github-delivery": "d-1", "x-hub-signature-256": "sha256=00" });
    await fetch(`${gw.url}/v1/sessions/s-1`);
    await gw.refusals.flush();
    expect(linesOf(gw.reports).map(({ code, method, path, principalId }) => `${code} ${method} ${path} ${principalId ?? "-"}`)).toEqual([
      "unauthenticated POST /v1/prompts -", "forbidden POST /v1/prompts ria", "bad_signature POST /webhooks/github -", "unauthenticated GET /v1/sessions/s-1 -",
    ]);
  });

  it("is not told where no right was wanting, nor what was taken", async () => {
    await post(gw, "/v1/prompts", "{");
    await post(gw, "/v1/prompts", { text: "hello" });
    await fetch(`${gw.url}/nowhere`);
    await gw.refusals.flush();
    expect(gw.reports).toEqual([]);
  });
});

describe("the book of refusals", () => {
  const clock = { ms: 1_000_000, nowMs() { return this.ms; } };
  const sent: Envelope[] = [];
  let down = false;
  const refused = { code: "unauthenticated", method: "POST", path: "/v1/prompts", ip: "10.0.0.1", requestId: "r" };
  const book = (): RefusalBook => new RefusalBook({ publish: (envelope) => { if (down) return Promise.reject(new Error("down")); sent.push(envelope); return Promise.resolve(); }, clock, logger: createLogger("test", "silent"), perMinute: 3 });
  beforeEach(() => { sent.length = 0; down = false; });

  it("has some lines a minute for each address, and one for the rest", async () => {
    const one = book();
    for (let n = 0; n < 10; n += 1) one.note(refused);
    one.note({ ...refused, ip: "10.0.0.2" });
    clock.ms += 61_000;
    await one.flush();
    expect(linesOf(sent).map(({ ip, count }) => `${ip} ${String(count ?? 1)}`)).toEqual(["10.0.0.1 1", "10.0.0.1 1", "10.0.0.1 1", "10.0.0.2 1", "10.0.0.1 7"]);
  });

  it("keeps what could not be sent, and sends it once, under the same ids", async () => {
    const one = book();
    one.note(refused);
    down = true;
    await expect(one.flush()).rejects.toThrow("down");
    down = false;
    await one.flush();
    await one.flush();
    expect(linesOf(sent)).toHaveLength(1);
  });

  it("sends the rest at its end", async () => {
    const one = book();
    for (let n = 0; n < 5; n += 1) one.note(refused);
    await one.stop();
    expect(linesOf(sent).map(({ count }) => count ?? 1)).toEqual([1, 1, 1, 2]);
  });
});
