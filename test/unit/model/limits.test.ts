import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { settleBucket, takeFromBucket, type BucketDocument } from "../../../src/model/bucket.js";
import { LimitedModel, rateKeyOf, type RateLedger } from "../../../src/model/limits.js";
import { ModelError, type Model, type ModelAnswer } from "../../../src/model/model.js";
import { MemoryRateLedger } from "../../support/memory-rate-ledger.js";
import { rejection, request } from "./request.js";

const LIMITS = { requestsPerMinute: 10, tokensPerMinute: 1000 };

describe("bucket", () => {
  it("lets through at most a full bucket and what has flowed in since, whatever the order of calls and clocks", () => {
    fc.assert(fc.property(fc.array(fc.record({ waitMs: fc.integer({ min: -5000, max: 20_000 }), tokens: fc.integer({ min: 0, max: 3000 }) }), { maxLength: 80 }), (calls) => {
      let document: BucketDocument | undefined;
      const start = 1e6 + (calls[0]?.waitMs ?? 0);
      let [now, latest, requests, tokens] = [1e6, start, 0, 0];
      for (const call of calls) {
        now += call.waitMs;
        latest = Math.max(latest, now);
        const taken = takeFromBucket(document, { requests: 1, tokens: call.tokens }, LIMITS, now);
        if (!taken.result.ok) continue;
        document = taken.document;
        requests += 1;
        tokens += taken.result.tokens;
      }
      const minutes = (latest - start) / 60_000;
      return requests <= 10 + 10 * minutes + 1e-6 && tokens <= 1000 + 1000 * minutes + 1e-3;
    }));
  });

  it("says a wait after which the call goes through, and hardly a millisecond in vain", () => {
    fc.assert(fc.property(fc.integer({ min: -500, max: 10 }), fc.integer({ min: -5000, max: 1000 }), fc.integer({ min: 1, max: 5000 }), (requests, tokens, need) => {
      const document = { requests, tokens, atMs: 0 };
      const { result } = takeFromBucket(document, { requests: 1, tokens: need }, LIMITS, 0);
      if (result.ok) return true;
      const later = (atMs: number): boolean => takeFromBucket(document, { requests: 1, tokens: need }, LIMITS, atMs).result.ok;
      return later(result.retryAfterMs) && !later(result.retryAfterMs - 2);
    }));
  });

  it("gives back what was not used, never more than a full bucket, and lets debts be paid back", () => {
    const { document } = takeFromBucket(undefined, { requests: 1, tokens: 600 }, LIMITS, 0);
    expect(document).toEqual({ requests: 9, tokens: 400, atMs: 0 });
    expect(settleBucket(document, 500, LIMITS).tokens).toBe(900);
    expect(settleBucket(document, 5000, LIMITS).tokens).toBe(1000);
    const debt = settleBucket(document, -1000, LIMITS);
    expect(debt.tokens).toBe(-600);
    expect(takeFromBucket(debt, { requests: 1, tokens: 100 }, LIMITS, 0).result).toEqual({ ok: false, retryAfterMs: 42_000 });
  });

  it("does not limit a side that has no limit", () => {
    expect(takeFromBucket(undefined, { requests: 1, tokens: 1e9 }, { requestsPerMinute: 1 }, 0)).toEqual({ document: { requests: 0, tokens: 0, atMs: 0 }, result: { ok: true, tokens: 0 } });
    expect(takeFromBucket(undefined, { requests: 1, tokens: 1e9 }, {}, 0).result.ok).toBe(true);
  });
});

const ANSWER: ModelAnswer = { model: "m", text: "t", calls: [], stop: "end", usage: { inputTokens: 30, outputTokens: 20, cacheReadTokens: 900, cacheWriteTokens: 0 }, costUsd: null };

function model(outcome: ModelAnswer | ModelError): Model & { asked: number } {
  return { provider: "p", asked: 0, reserveUsd: () => 3, async answer() {
    this.asked += 1;
    if (outcome instanceof ModelError) throw outcome;
    return outcome;
  } };
}

describe("a limited model", () => {
  it("is asked while there is room, then refuses at once with the wait, without asking the provider", async () => {
    const inner = model(ANSWER);
    const limited = new LimitedModel(inner, { ledger: new MemoryRateLedger({ requestsPerMinute: 2 }), key: "k", now: () => 0 });
    await limited.answer(request());
    await limited.answer(request());
    expect(await rejection(limited.answer(request()))).toMatchObject({ kind: "not_sent", retryAfterMs: 30_000 });
    expect(inner.asked).toBe(2);
    expect(limited.reserveUsd(request())).toBe(3);
  });

  it("counts what the provider reported, cache reads left out", async () => {
    const ledger = new MemoryRateLedger({ tokensPerMinute: 1000 });
    await new LimitedModel(model(ANSWER), { ledger, key: "k", now: () => 0 }).answer(request());
    expect(ledger.documents.get("k")?.tokens).toBe(950);
  });

  it("counts rightly when the estimate was larger than the bucket", async () => {
    const ledger = new MemoryRateLedger({ tokensPerMinute: 100 });
    await new LimitedModel(model(ANSWER), { ledger, key: "k", now: () => 0 }).answer(request({ maxOutputTokens: 50_000 }));
    expect(ledger.documents.get("k")?.tokens).toBe(50);
  });

  it.each<[string, ModelError, number]>([
    ["gives all back after a refusal", new ModelError("transient", "429", { retryAfterMs: 1 }), 1000],
    ["counts what a broken call reported", new ModelError("transient", "reset", { partialText: "x", usage: { inputTokens: 10, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 } }), 990],
  ])("%s, and hands the error on as it is", async (_, error, left) => {
    const ledger = new MemoryRateLedger({ tokensPerMinute: 1000 });
    expect(await rejection(new LimitedModel(model(error), { ledger, key: "k", now: () => 0 }).answer(request()))).toBe(error);
    expect(ledger.documents.get("k")?.tokens).toBe(left);
  });

  it("keeps the estimate where a call broke off without a report", async () => {
    const ledger = new MemoryRateLedger({ tokensPerMinute: 1000 });
    await rejection(new LimitedModel(model(new ModelError("aborted", "x", { partialText: "some" })), { ledger, key: "k", now: () => 0 }).answer(request()));
    expect(ledger.documents.get("k")!.tokens).toBeLessThan(900);
  });

  it("keeps limits when the ledger is down (transient), and an answer when only the settling failed", async () => {
    const inner = model(ANSWER);
    const warnings: string[] = [];
    const broken = (take: RateLedger["take"]): LimitedModel => new LimitedModel(inner, { ledger: { take, settle: async () => { throw new Error("down"); } }, key: "k", onWarning: (w) => warnings.push(w) });
    expect(await rejection(broken(async () => { throw new Error("down"); }).answer(request()))).toMatchObject({ kind: "not_sent", retryAfterMs: 2000 });
    expect(inner.asked).toBe(0);
    expect(await broken(async () => ({ ok: true, tokens: 500 })).answer(request())).toBe(ANSWER);
    expect(warnings).toHaveLength(1);
  });

  it("names keys without telling them", () => {
    expect(rateKeyOf("anthropic", "sk-1")).toMatch(/^anthropic-[0-9a-f]{16}$/);
    expect(rateKeyOf("anthropic", "sk-1")).not.toBe(rateKeyOf("anthropic", "sk-2"));
  });
});
