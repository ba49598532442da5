/** I6: a tool call has at most one effect, through duplicates, crashes, lost replies and dead brokers. */
import { describe, expect, it } from "vitest";
import { ToolFailure } from "../../../src/agent/tool-failure.js";
import { argsDigest } from "../../../src/contracts/ids.js";
import { ResultClaims } from "../../../src/contracts/tools.js";
import { REASK_BEFORE_MS, TOOL_GRACE_MS } from "../../../src/session/core/limits.js";
import { flush } from "../../support/tools/clock.js";
import { countingTool, deliver, eventOf, harness, readFakeJws, requestFor } from "../../support/tools/harness.js";

const never = (): Promise<never> => new Promise(() => undefined);

describe("a request is run once", () => {
  it("claims before it runs, acks before it ends, stores before it publishes", async () => {
    let finish: (value: unknown) => void = () => undefined;
    const { tool } = countingTool({ run: () => new Promise((resolve) => { finish = resolve; }) });
    const h = harness([tool]);
    const worker = h.worker();
    expect(await deliver(worker, requestFor(h.clock))).toBe("SUCCESS");
    expect(worker.running()).toBe(1);
    expect(h.store.history.at(-1)?.record.tries).toMatchObject([{ state: "claimed", lockUntilMs: h.clock.nowMs() + 12_000 }]);
    expect([h.results, h.claims]).toEqual([[], []]);
    await h.clock.advance(1_000);
    expect(h.claims).toMatchObject([{ callId: "call_1", try: 1, worker: "w1" }]);
    expect(h.results).toEqual([]);
    finish({ refunded: "ord-1" });
    await flush();
    expect(h.store.history.at(-1)?.record.tries).toMatchObject([{ state: "done", result: { outcome: "succeeded" } }]);
    expect(h.results).toMatchObject([{ outcome: "succeeded", output: "{\"refunded\":\"ord-1\"}", truncated: false, try: 1 }]);
    expect(worker.running()).toBe(0);
    expect(h.clock.pending()).toBe(0);
  });

  it("a run that ends soon is not announced: its result says it all", async () => {
    const { tool } = countingTool();
    const h = harness([tool]);
    await deliver(h.worker(), requestFor(h.clock));
    await h.clock.advance(10_000);
    expect([h.results.length, h.claims.length]).toEqual([1, 0]);
  });

  it("signs the result over session, call, try, outcome and output", async () => {
    const { tool } = countingTool();
    const h = harness([tool]);
    await deliver(h.worker(), requestFor(h.clock));
    const claims = ResultClaims.parse(readFakeJws(h.results[0]!.proof));
    expect(claims).toMatchObject({ sub: "default_order-1", jti: "call_1", try: 1, outcome: "succeeded", outputDigest: argsDigest(h.results[0]!.output) });
  });

  it("50 concurrent deliveries to two workers run the tool once", async () => {
    const { tool, effects } = countingTool();
    const h = harness([tool]);
    const workers = [h.worker("w1"), h.worker("w2")];
    const text = eventOf(requestFor(h.clock));
    const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => workers[i % 2]!.handleRequest(text)));
    await flush();
    expect(new Set(answers)).toEqual(new Set(["SUCCESS"]));
    expect(effects()).toBe(1);
    expect(new Set(h.results.map((result) => result.output)).size).toBe(1);
  });

  it("a duplicate after the end publishes the cached result again", async () => {
    const { tool, effects } = countingTool();
    const h = harness([tool]);
    await deliver(h.worker("w1"), requestFor(h.clock));
    expect(await deliver(h.worker("w2"), { ...requestFor(h.clock), publication: 2 })).toBe("SUCCESS");
    expect(effects()).toBe(1);
    expect(h.results).toHaveLength(2);
    expect(h.results[1]).toMatchObject({ ...h.results[0], proof: expect.any(String) as string });
  });

  it("a duplicate after the end is answered even when the grant has expired meanwhile", async () => {
    const { tool } = countingTool();
    const h = harness([tool]);
    const request = requestFor(h.clock);
    await deliver(h.worker("w1"), request);
    await h.clock.advance(2 * 3_600_000);
    await deliver(h.worker("w2"), request);
    expect(h.results.map((result) => result.outcome)).toEqual(["succeeded", "succeeded"]);
  });

  it("a duplicate during the run says again that it is claimed", async () => {
    const { tool } = countingTool({ run: never });
    const h = harness([tool]);
    await deliver(h.worker("w1"), requestFor(h.clock));
    await h.clock.advance(1_000);
    await deliver(h.worker("w2"), requestFor(h.clock));
    expect(h.claims.map((claim) => claim.worker)).toEqual(["w1", "w1"]);
    expect(h.store.history).toHaveLength(1);
  });

  it("renews its lock while the tool runs, so that nobody takes over a slow tool", async () => {
    const { tool, effects } = countingTool({ timeoutMs: 600_000, run: never });
    const h = harness([tool]);
    await deliver(h.worker("w1"), requestFor(h.clock, { request: { deadlineAtMs: h.clock.nowMs() + 600_000 } }));
    await h.clock.advance(200_000);
    await deliver(h.worker("w2"), requestFor(h.clock));
    expect(effects()).toBe(0);
    expect(h.claims.at(-1)?.worker).toBe("w1");
    expect(h.results).toEqual([]);
  });

  it("records outlive the grant, however long it is valid", async () => {
    const { tool } = countingTool();
    const h = harness([tool]);
    const exp = Math.floor(h.clock.nowMs() / 1000) + 7 * 86_400;
    await deliver(h.worker(), requestFor(h.clock, { grant: { exp } }));
    expect(h.store.ttlLeftMs("call_1")).toBeGreaterThan(7 * 86_400_000);
    await deliver(h.worker(), requestFor(h.clock, { request: { callId: "call_2" } }));
    expect(h.store.ttlLeftMs("call_2")).toBe(24 * 3_600_000);
  });
});

describe("the worker dies between claim and result", () => {
  const crashed = async (overrides: Parameters<typeof countingTool>[0]): Promise<{ h: ReturnType<typeof harness>; runs: () => number }> => {
    let runs = 0;
    const { tool } = countingTool({ timeoutMs: 600_000, ...overrides, run: async () => { runs += 1; return runs === 1 ? never() : "ran again"; } });
    const dead = harness([tool]);
    await deliver(dead.worker("w1"), requestFor(dead.clock));
    // A new process on the same store, after the lock has died; the old one's timers never fire again.
    const h = harness([tool], { store: dead.store });
    await h.clock.advance(61_000);
    return { h, runs: () => runs };
  };
  const later = (h: ReturnType<typeof harness>): Parameters<typeof requestFor>[1] => ({ request: { deadlineAtMs: h.clock.nowMs() + 600_000 } });

  it.each(["none", "idempotent"] as const)("effects %s: it is run again with the same key", async (effects) => {
    const { h, runs } = await crashed({ effects });
    await deliver(h.worker("w2"), requestFor(h.clock, later(h)));
    expect(runs()).toBe(2);
    expect(h.results).toMatchObject([{ outcome: "succeeded", output: "ran again", worker: "w2" }]);
  });

  it("effects once: it is not run again, the outcome is unknown", async () => {
    const { h, runs } = await crashed({ effects: "once" });
    await deliver(h.worker("w2"), requestFor(h.clock, later(h)));
    expect(runs()).toBe(1);
    expect(h.results).toMatchObject([{ outcome: "outcome_unknown" }]);
    await deliver(h.worker("w3"), requestFor(h.clock, later(h)));
    expect(runs()).toBe(1);
    expect(h.results.map((result) => result.outcome)).toEqual(["outcome_unknown", "outcome_unknown"]);
  });

  it("effects once, reconcile says it happened: succeeded, without a second run", async () => {
    const { h, runs } = await crashed({ effects: "once", reconcile: async () => ({ happened: true, output: "found it" }) });
    await deliver(h.worker("w2"), requestFor(h.clock, later(h)));
    expect(runs()).toBe(1);
    expect(h.results).toMatchObject([{ outcome: "succeeded", output: "found it" }]);
  });

  it("effects once, reconcile says it did not happen: it is run", async () => {
    const { h, runs } = await crashed({ effects: "once", reconcile: async () => ({ happened: false }) });
    await deliver(h.worker("w2"), requestFor(h.clock, later(h)));
    expect(runs()).toBe(2);
    expect(h.results).toMatchObject([{ outcome: "succeeded", output: "ran again" }]);
  });

  // The session repeats the request of a claimed call that is quiet, at the latest REASK_BEFORE_MS before its deadline; at the deadline it gives the call up as unknown.
  it.each([1_000, 10_000, 30_000, 120_000])("however late it dies, the session's last repetition finds the lock dead and asks reconcile (timeout %i ms)", async (timeoutMs) => {
    for (const diesAfterMs of [0, timeoutMs / 2, timeoutMs - 1]) {
      let runs = 0;
      const { tool } = countingTool({ timeoutMs, reconcile: async () => ({ happened: true, output: "found it" }), run: async () => { runs += 1; return never(); } });
      const dead = harness([tool]);
      await deliver(dead.worker("w1"), requestFor(dead.clock));
      await dead.clock.advance(diesAfterMs);
      const h = harness([tool], { store: dead.store });
      await h.clock.advance(timeoutMs + TOOL_GRACE_MS - REASK_BEFORE_MS);
      await deliver(h.worker("w2"), requestFor(h.clock, later(h)));
      expect(h.results).toMatchObject([{ outcome: "succeeded", output: "found it" }]);
      expect(runs).toBe(1);
    }
  });

  it.each([
    ["says it cannot tell", async () => ({ happened: "unknown" as const })],
    ["throws", async () => { throw new Error("503"); }],
    ["answers nonsense", async () => ({ happened: "maybe" }) as never],
  ])("effects once, reconcile %s: the outcome is unknown", async (_, reconcile) => {
    const { h, runs } = await crashed({ effects: "once", reconcile });
    await deliver(h.worker("w2"), requestFor(h.clock, later(h)));
    expect(runs()).toBe(1);
    expect(h.results).toMatchObject([{ outcome: "outcome_unknown" }]);
  });

  it("effects once, reconcile hangs: the outcome is unknown after its time is up", async () => {
    const { h } = await crashed({ effects: "once", reconcile: never });
    await deliver(h.worker("w2"), requestFor(h.clock, later(h)));
    expect(h.results).toEqual([]);
    await h.clock.advance(15_000);
    expect(h.results).toMatchObject([{ outcome: "outcome_unknown" }]);
  });

  it("a tool that kills its worker three times is given up", async () => {
    const { tool } = countingTool({ effects: "none", timeoutMs: 600_000, run: never });
    const first = harness([tool]);
    for (let i = 1; i <= 4; i += 1) {
      const h = harness([tool], { store: first.store });
      await h.clock.advance(i * 61_000);
      await deliver(h.worker(`w${String(i)}`), requestFor(h.clock, later(h)));
      expect(h.results.map((result) => result.failure?.kind)).toEqual(i < 4 ? [] : ["permanent"]);
    }
  });

  it("the old worker was only slow: its failure does not count, its success does", async () => {
    for (const late of ["failure", "success"] as const) {
      const ends: ((value: unknown) => void)[] = [];
      const { tool } = countingTool({ effects: "idempotent", timeoutMs: 600_000, run: () => new Promise((resolve, reject) => ends.push(late === "failure" && ends.length === 0 ? reject : resolve)) });
      const slow = harness([tool]);
      await deliver(slow.worker("slow"), requestFor(slow.clock));
      const h = harness([tool], { store: slow.store });
      await h.clock.advance(61_000);
      await deliver(h.worker("fast"), requestFor(h.clock, later(h)));
      ends[0]!(late === "failure" ? ToolFailure.permanent("from the past") : "first");
      await flush();
      expect(slow.results).toMatchObject(late === "failure" ? [] : [{ outcome: "succeeded", output: "first" }]);
      ends[1]!("second");
      await flush();
      expect(h.results).toMatchObject(late === "failure" ? [{ outcome: "succeeded", output: "second" }] : []);
    }
  });

  it("a bad grant does not run the tool again either, and admits that the outcome is unknown", async () => {
    const { h, runs } = await crashed({ effects: "once", reconcile: async () => ({ happened: false }) });
    await deliver(h.worker("w2"), requestFor(h.clock, { grant: "forged" }));
    expect(runs()).toBe(1);
    expect(h.results).toMatchObject([{ outcome: "outcome_unknown" }]);
  });
});

describe("later tries", () => {
  const failing = (): ReturnType<typeof countingTool> => {
    let runs = 0;
    return countingTool({ run: async () => { runs += 1; if (runs === 1) throw ToolFailure.transient("503"); return `run ${String(runs)}`; } });
  };
  const tryOf = (h: ReturnType<typeof harness>, number: number): ReturnType<typeof requestFor> => requestFor(h.clock, { request: { try: number } });

  it("a second try runs after the first one failed", async () => {
    const h = harness([failing().tool]);
    await deliver(h.worker(), tryOf(h, 1));
    await deliver(h.worker(), tryOf(h, 2));
    expect(h.results).toMatchObject([{ try: 1, outcome: "failed", failure: { kind: "transient", message: "503" } }, { try: 2, outcome: "succeeded", output: "run 2" }]);
  });

  it("a late duplicate of the first try gets its own cached failure", async () => {
    const h = harness([failing().tool]);
    await deliver(h.worker(), tryOf(h, 1));
    await deliver(h.worker(), tryOf(h, 2));
    await deliver(h.worker(), tryOf(h, 1));
    expect(h.results.at(-1)).toMatchObject({ try: 1, outcome: "failed" });
    expect(h.results).toHaveLength(3);
  });

  it("a first try that comes after the second is ignored", async () => {
    const { tool, effects } = countingTool();
    const h = harness([tool]);
    await deliver(h.worker(), tryOf(h, 2));
    await deliver(h.worker(), tryOf(h, 1));
    expect(effects()).toBe(1);
    expect(h.results).toMatchObject([{ try: 2 }]);
  });

  it("a second try does not run beside the first, nor after its success", async () => {
    let finish: (value: unknown) => void = () => undefined;
    let runs = 0;
    const { tool } = countingTool({ run: () => { runs += 1; return new Promise((resolve) => { finish = resolve; }); } });
    const h = harness([tool]);
    const worker = h.worker();
    await deliver(worker, tryOf(h, 1));
    await deliver(worker, tryOf(h, 2));
    expect(runs).toBe(1);
    finish("done");
    await flush();
    await deliver(worker, tryOf(h, 2));
    expect(runs).toBe(1);
    expect(h.results).toMatchObject([{ try: 1, outcome: "succeeded" }, { try: 1, outcome: "succeeded" }]);
  });

  it("a second try does not run after an unknown outcome", async () => {
    let runs = 0;
    const { tool } = countingTool({ run: async () => { runs += 1; throw new Error("socket hang up"); } });
    const h = harness([tool]);
    await deliver(h.worker(), tryOf(h, 1));
    await deliver(h.worker(), tryOf(h, 2));
    expect(runs).toBe(1);
    expect(h.results.map((result) => result.outcome)).toEqual(["outcome_unknown", "outcome_unknown"]);
  });

  it("a try beyond the tool's maximum is refused", async () => {
    const { tool, effects } = countingTool({ maxTries: 2 });
    const h = harness([tool]);
    await deliver(h.worker(), tryOf(h, 3));
    expect(effects()).toBe(0);
    expect(h.results).toMatchObject([{ outcome: "failed", failure: { kind: "refused" } }]);
  });
});

describe("the way fails", () => {
  it("the store is down: RETRY, nothing runs, and it works when it is back", async () => {
    const { tool, effects } = countingTool();
    const h = harness([tool]);
    const worker = h.worker();
    h.store.down = true;
    expect(await deliver(worker, requestFor(h.clock))).toBe("RETRY");
    expect(effects()).toBe(0);
    h.store.down = false;
    expect(await deliver(worker, requestFor(h.clock))).toBe("SUCCESS");
    expect(effects()).toBe(1);
  });

  it("the reply to the claim is lost: the worker finds its own claim and runs once", async () => {
    const { tool, effects } = countingTool();
    const h = harness([tool]);
    h.store.failures.push({ operation: "create", when: "after" });
    expect(await deliver(h.worker(), requestFor(h.clock))).toBe("SUCCESS");
    expect(effects()).toBe(1);
    expect(h.results).toMatchObject([{ outcome: "succeeded" }]);
  });

  it("the reply to the claim is lost and so is the look-up: the redelivery runs it, for nothing had started", async () => {
    const { tool, effects } = countingTool();
    const h = harness([tool]);
    const worker = h.worker();
    h.store.failures.push({ operation: "create", when: "after" });
    h.store.onFailure = () => h.store.failures.push({ operation: "read", when: "before" });
    expect(await deliver(worker, requestFor(h.clock))).toBe("RETRY");
    expect(effects()).toBe(0);
    expect(worker.running()).toBe(0);
    expect(await deliver(worker, requestFor(h.clock))).toBe("SUCCESS");
    expect(effects()).toBe(1);
    expect(h.results).toMatchObject([{ outcome: "succeeded" }]);
  });

  it("the result cannot be stored: it is tried again, and published only then", async () => {
    const { tool } = countingTool({ run: async () => { h.store.down = true; return "ok"; } });
    const h = harness([tool]);
    await deliver(h.worker(), requestFor(h.clock));
    await h.clock.advance(30_000);
    expect(h.results).toEqual([]);
    h.store.down = false;
    await h.clock.advance(30_000);
    expect(h.results).toMatchObject([{ outcome: "succeeded", output: "ok" }]);
  });

  it("the result cannot be published: it is tried again while the process lives", async () => {
    const { tool } = countingTool({ run: async () => { h.broker.failing = true; return "ok"; } });
    const h = harness([tool]);
    await deliver(h.worker(), requestFor(h.clock));
    await h.clock.advance(30_000);
    expect(h.results).toEqual([]);
    h.broker.failing = false;
    await h.clock.advance(20_000);
    expect(h.results).toMatchObject([{ outcome: "succeeded" }]);
  });

  it("a cached result that cannot be published is RETRY", async () => {
    const { tool } = countingTool();
    const h = harness([tool]);
    const worker = h.worker();
    await deliver(worker, requestFor(h.clock));
    h.broker.failing = true;
    expect(await deliver(worker, requestFor(h.clock))).toBe("RETRY");
  });

  it("a lost claim message does not disturb the run", async () => {
    const { tool } = countingTool({ run: async () => { h.broker.failing = false; return "ok"; } });
    const h = harness([tool]);
    h.broker.failing = true;
    expect(await deliver(h.worker(), requestFor(h.clock))).toBe("SUCCESS");
    await h.clock.advance(1000);
    expect(h.results).toMatchObject([{ outcome: "succeeded" }]);
  });
});
