/** Parsers of foreign input: whatever comes in, a Problem or a value comes out, quickly (research 7.6, I14). */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { envelopeOf, parseEnvelope, serializeEnvelope } from "../../../src/contracts/cloudevent.js";
import { Problem } from "../../../src/contracts/problems.js";
import { eventModeOf, readBatch, readBinary } from "../../../src/gateway/in/cloudevents.js";
import { githubEvent } from "../../../src/gateway/in/github-event.js";
import { verifyGithub, verifyStripe } from "../../../src/gateway/in/signatures.js";
import { stripeEvent } from "../../../src/gateway/in/stripe-event.js";
import { traceOf } from "../../../src/gateway/in/trace.js";

const hooks = [{ secrets: ["a-good-secret"], tenant: "acme" }];

/** Runs, and gives the value or undefined for a Problem; anything else thrown fails the test. */
function only<T>(work: () => T): T | undefined {
  const started = process.cpuUsage(); // not the clock: a busy machine stands still for longer than a parser may take
  try {
    return work();
  } catch (error) {
    expect(error).toBeInstanceOf(Problem);
    return undefined;
  } finally {
    expect(process.cpuUsage(started).user / 1_000).toBeLessThan(500);
  }
}

const noisyJson = fc.oneof(fc.json(), fc.string(), fc.string({ unit: "binary" }), fc.json().map((text) => text.slice(0, -1)), fc.integer({ min: 1, max: 5_000 }).map((depth) => "[".repeat(depth)));
const field = fc.oneof(fc.string(), fc.integer(), fc.constant(null), fc.constant({}), fc.constant([]), fc.constant("x".repeat(3_000)), fc.constant("https://github.com/a/b"));
const RUNS = { numRuns: 500 };

describe("parsers", () => {
  it("binary mode", () => {
    fc.assert(fc.property(fc.dictionary(fc.constantFrom("ce-id", "ce-source", "ce-type", "ce-specversion", "ce-subject", "ce-time", "ce-expirytime", "ce-tenant", "ce-__proto__", "ce-data", "ce-data_base64", "ce-datacontenttype", "ce-constructor", "content-type"),
      fc.oneof(fc.string(), fc.constantFrom("1.0", "0.3", "%", "%00", "application/json", "text/plain"))), noisyJson, (headers, body) => {
      eventModeOf(headers);
      const envelope = only(() => readBinary(headers, body));
      if (envelope !== undefined) expect(parseEnvelope(serializeEnvelope(envelope)).id).toBe(envelope.id);
    }), RUNS);
  });

  it("structured and batched mode", () => {
    fc.assert(fc.property(noisyJson, (text) => {
      only(() => parseEnvelope(text));
      only(() => { readBatch(text, 10).forEach((read) => only(read)); });
    }), RUNS);
    fc.assert(fc.property(fc.dictionary(fc.constantFrom("specversion", "id", "source", "type", "subject", "data", "time", "traceparent", "principal"), field), (raw) => { only(() => envelopeOf({ specversion: "1.0", id: "a", source: "b", type: "c", ...raw })); }), RUNS);
  });

  it("GitHub and Stripe bodies", () => {
    const repository = fc.record({ html_url: field, full_name: field }, { requiredKeys: [] });
    const github = fc.record({ action: field, repository: fc.oneof(field, repository), organization: fc.oneof(field, fc.record({ login: field })), installation: fc.oneof(field, fc.record({ account: fc.record({ login: field }) })), issue: fc.oneof(field, fc.record({ number: field })) }, { requiredKeys: [] });
    fc.assert(fc.property(fc.oneof(github.map((value) => JSON.stringify(value)), noisyJson), (text) => {
      const delivery = only(() => githubEvent({ event: "issues", deliveryId: "d", text }));
      if (delivery !== undefined && "incoming" in delivery) expect(only(() => envelopeOf({ specversion: "1.0", ...delivery.incoming, data: undefined }))).toBeDefined();
    }), { ...RUNS, examples: [['{"repository":{"full_name":"."}}'], ['{"repository":{"full_name":".."}}']] });
    const stripe = fc.record({ id: field, type: field, data: fc.oneof(field, fc.record({ object: fc.oneof(field, fc.record({ id: field })) })) }, { requiredKeys: [] });
    fc.assert(fc.property(fc.oneof(stripe.map((value) => JSON.stringify(value)), noisyJson), (text) => {
      const delivery = only(() => stripeEvent(text));
      if (delivery !== undefined && "incoming" in delivery) expect(only(() => envelopeOf({ specversion: "1.0", ...delivery.incoming, data: undefined }))).toBeDefined();
    }), { ...RUNS, examples: [['{"id":"evt_1","type":"x","data":{"object":{"id":"."}}}']] });
  });

  it("signature headers never verify by chance", async () => {
    const piece = fc.oneof(fc.constantFrom("t=", "v1=", "v0=", ",", "=", "1700000000", "a".repeat(64), "sha256="), fc.string());
    await fc.assert(fc.asyncProperty(fc.array(piece).map((pieces) => pieces.join("")), fc.string(), async (header, body) => {
      expect(only(() => verifyStripe(hooks, Buffer.from(body), header, { nowMs: 1_700_000_000_000, toleranceMs: 300_000 }))).toBeUndefined();
      await expect(verifyGithub(hooks, body, header)).rejects.toBeInstanceOf(Problem);
    }), RUNS);
  });

  it("a trace parent is always a valid one", () => {
    fc.assert(fc.property(fc.option(fc.string(), { nil: undefined }), (sender) => { expect(traceOf("run_1", sender)).toMatch(/^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/); }), RUNS);
  });
});
