/** What a run's ending proves: deadlines, failures, output, shutdown. */
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineTool } from "../../../src/agent/define-tool.js";
import type { ToolContext } from "../../../src/agent/definition.js";
import { ToolFailure } from "../../../src/agent/tool-failure.js";
import { bigInteger } from "../../../src/agent/tool-schema.js";
import type { ToolResult } from "../../../src/contracts/tools.js";
import { flush } from "../../support/tools/clock.js";
import { countingTool, deliver, harness, requestFor } from "../../support/tools/harness.js";

const never = (): Promise<never> => new Promise(() => undefined);
const rejectOnAbort = (error: (reason: Error) => Error) => (_: unknown, context: ToolContext): Promise<never> =>
  new Promise((_resolve, reject) => { context.signal.addEventListener("abort", () => { reject(error(context.signal.reason as Error)); }); });

async function resultOf(overrides: Parameters<typeof countingTool>[0], afterMs = 0): Promise<ToolResult> {
  const h = harness([countingTool(overrides).tool]);
  await deliver(h.worker(), requestFor(h.clock));
  if (afterMs > 0) await h.clock.advance(afterMs);
  expect(h.results).toHaveLength(1);
  expect(h.clock.pending()).toBe(0);
  return h.results[0]!;
}

describe("what a tool throws", () => {
  it.each([
    [ToolFailure.transient("503", { retryAfterMs: 1500 }), { outcome: "failed", failure: { kind: "transient", message: "503", retryAfterMs: 1500 } }],
    [ToolFailure.permanent("404"), { outcome: "failed", failure: { kind: "permanent", message: "404" } }],
    [ToolFailure.business("over the limit"), { outcome: "failed", failure: { kind: "business", message: "over the limit" } }],
    [ToolFailure.notStarted("no slot"), { outcome: "not_started", failure: { kind: "transient", message: "no slot" } }],
    [ToolFailure.unknown("reset"), { outcome: "outcome_unknown" }],
  ])("%s is taken at its word, also with effects once", async (failure, expected) => {
    expect(await resultOf({ run: () => Promise.reject(failure) })).toMatchObject(expected);
  });

  it.each([["none", "failed"], ["idempotent", "failed"], ["once", "outcome_unknown"]] as const)("an unexpected exception, effects %s: %s", async (effects, outcome) => {
    expect(await resultOf({ effects, run: () => { throw new TypeError("x is undefined"); } })).toMatchObject({ outcome, failure: { message: expect.stringContaining("x is undefined") as string } });
  });

  it("an unexpected exception, effects once, reconcile knows", async () => {
    const boom = (): Promise<never> => Promise.reject(new Error("socket hang up"));
    expect(await resultOf({ run: boom, reconcile: async () => ({ happened: true, output: "seen" }) })).toMatchObject({ outcome: "succeeded", output: "seen" });
    expect(await resultOf({ run: boom, reconcile: async () => ({ happened: false }) })).toMatchObject({ outcome: "failed", failure: { kind: "transient" } });
  });

  it("things that are no errors do no harm", async () => {
    const hostile = { toString: () => { throw new Error("gotcha"); } };
    // eslint-disable-next-line @typescript-eslint/only-throw-error -- what users write may throw anything
    expect(await resultOf({ effects: "none", run: async () => { throw hostile; } })).toMatchObject({ outcome: "failed", failure: { kind: "transient" } });
  });
});

describe("the deadline", () => {
  it.each([["none", "failed"], ["idempotent", "failed"], ["once", "outcome_unknown"]] as const)("a tool that ignores it, effects %s: %s after the grace period", async (effects, outcome) => {
    const result = await resultOf({ effects, timeoutMs: 1000, run: never }, 6000);
    expect(result).toMatchObject({ outcome, failure: effects === "once" ? {} : { kind: "timeout" } });
    expect(result.endedAtMs - result.startedAtMs).toBe(6000);
  });

  it("the request's deadline counts where it is earlier than the tool's", async () => {
    const h = harness([countingTool({ effects: "none", timeoutMs: 30_000, run: never }).tool]);
    await deliver(h.worker(), requestFor(h.clock, { request: { deadlineAtMs: h.clock.nowMs() + 2000 } }));
    await h.clock.advance(7000);
    expect(h.results).toMatchObject([{ failure: { kind: "timeout" } }]);
  });

  it("a tool that stops at the signal: timeout, or unknown where it has effects", async () => {
    const run = rejectOnAbort((reason) => reason);
    expect(await resultOf({ effects: "none", timeoutMs: 1000, run }, 1000)).toMatchObject({ outcome: "failed", failure: { kind: "timeout" } });
    expect(await resultOf({ effects: "once", timeoutMs: 1000, run }, 1000)).toMatchObject({ outcome: "outcome_unknown" });
  });

  it("a tool with effects that proves it did nothing is believed", async () => {
    const run = rejectOnAbort(() => ToolFailure.notStarted("still in the queue"));
    expect(await resultOf({ timeoutMs: 1000, run }, 1000)).toMatchObject({ outcome: "not_started" });
  });

  it("an answer within the grace period counts", async () => {
    let finish: (value: unknown) => void = () => undefined;
    const h = harness([countingTool({ timeoutMs: 1000, run: () => new Promise((resolve) => { finish = resolve; }) }).tool]);
    await deliver(h.worker(), requestFor(h.clock));
    await h.clock.advance(3000);
    finish("just in time");
    await flush();
    expect(h.results).toMatchObject([{ outcome: "succeeded", output: "just in time" }]);
  });

  it("a given-up tool with effects that ends after all closes the question", async () => {
    let finish: (value: unknown) => void = () => undefined;
    const h = harness([countingTool({ timeoutMs: 1000, run: () => new Promise((resolve) => { finish = resolve; }) }).tool]);
    const worker = h.worker();
    await deliver(worker, requestFor(h.clock));
    await h.clock.advance(6000);
    expect(worker.running()).toBe(0);
    finish("late");
    await flush();
    expect(h.results).toMatchObject([{ outcome: "outcome_unknown" }, { outcome: "succeeded", output: "late" }]);
    await deliver(worker, requestFor(h.clock));
    expect(h.results.at(-1)).toMatchObject({ outcome: "succeeded", output: "late" });
  });

  it("a tool with effects that is still running is not proven harmless by reconcile's 'not yet'", async () => {
    expect(await resultOf({ timeoutMs: 1000, run: never, reconcile: async () => ({ happened: false }) }, 6000)).toMatchObject({ outcome: "outcome_unknown" });
    expect(await resultOf({ timeoutMs: 1000, run: never, reconcile: async () => ({ happened: true, output: "seen" }) }, 6000)).toMatchObject({ outcome: "succeeded" });
  });
});

describe("the output", () => {
  it.each([
    ["a text as it is", "Grüße", "Grüße"],
    ["a value as JSON", { id: 9007199254740993n, list: [1, null] }, "{\"id\":9007199254740993,\"list\":[1,null]}"],
    ["nothing as null", undefined, "null"],
    ["NUL and lone surrogates replaced", "a\0b\uD800c", "a\uFFFDb\uFFFDc"],
  ])("%s", async (_, value, output) => {
    expect(await resultOf({ run: async () => value })).toMatchObject({ outcome: "succeeded", output, truncated: false });
  });

  it("a value without JSON form is still a success", async () => {
    const circular: Record<string, unknown> = {};
    circular["self"] = circular;
    expect(await resultOf({ run: async () => circular })).toMatchObject({ outcome: "succeeded", output: expect.stringContaining("no JSON form") as string });
  });

  it.each([["ascii", "x"], ["two bytes", "é"], ["four bytes", "\u{1F600}"]])("is cut at the cap between characters (%s)", async (_, char) => {
    const result = await resultOf({ outputCapBytes: 101, run: async () => char.repeat(1000) });
    expect(result.truncated).toBe(true);
    expect(Buffer.byteLength(result.output)).toBeLessThanOrEqual(101);
    expect(Buffer.byteLength(result.output)).toBeGreaterThan(96);
    expect(result.output.replaceAll(char, "") === "").toBe(true);
  });

  it("exactly the cap is not cut", async () => {
    expect(await resultOf({ outputCapBytes: 100, run: async () => "é".repeat(50) })).toMatchObject({ truncated: false });
  });
});

describe("the context", () => {
  it("hands over the arguments with all their digits, the key, and the sealed text", async () => {
    let seen: unknown;
    const tool = defineTool({
      name: "refund", description: "d", effects: "none", input: z.object({ id: bigInteger(), amount: z.number(), small: bigInteger() }),
      run: async (args, context) => { seen = { args, key: context.idempotencyKey, text: context.argsText, session: context.sessionId, workspace: context.workspace, try: context.try }; return "ok"; },
    });
    const h = harness([tool]);
    const args = "{\"amount\":1.10,\"id\":9007199254740993,\"small\":7}";
    await deliver(h.worker(), requestFor(h.clock, { request: { args } }));
    expect(h.results).toMatchObject([{ outcome: "succeeded" }]);
    expect(seen).toEqual({ args: { amount: 1.1, id: 9007199254740993n, small: 7 }, key: "key-1", text: args, session: "order-1", workspace: "/tmp/default_order-1", try: 1 });
  });

  it("a number that a double cannot hold is refused where the schema says number", async () => {
    const tool = defineTool({ name: "refund", description: "d", effects: "none", input: z.object({ id: z.number() }), run: async () => "ok" });
    const h = harness([tool]);
    await deliver(h.worker(), requestFor(h.clock, { request: { args: "{\"id\":9007199254740993}" } }));
    expect(h.results).toMatchObject([{ outcome: "failed", failure: { kind: "refused" } }]);
  });

  it("a refinement that JSON Schema cannot say is checked", async () => {
    const tool = defineTool({ name: "refund", description: "d", effects: "none", input: z.object({ even: z.int().refine((n) => n % 2 === 0, "expected an even number") }), run: async () => "ok" });
    const h = harness([tool]);
    await deliver(h.worker(), requestFor(h.clock, { request: { args: "{\"even\":3}" } }));
    expect(h.results[0]?.failure?.message).toContain("expected an even number");
  });

  it("secrets come by name and are cut from answers, errors and logs (I13)", async () => {
    const secrets = { mail: "tk-canary-123456" };
    const said = harness([countingTool({ run: async (_, context) => { context.log(`using ${context.secret("mail")}`); return { header: `Bearer ${context.secret("mail")}` }; } }).tool], { secrets });
    await deliver(said.worker(), requestFor(said.clock));
    const thrown = harness([countingTool({ run: async (_, context) => { throw ToolFailure.permanent(`401 for ${context.secret("mail")}`); } }).tool], { secrets });
    await deliver(thrown.worker(), requestFor(thrown.clock));
    expect(said.results[0]?.output).toBe("{\"header\":\"Bearer [secret mail]\"}");
    expect(JSON.stringify([said, thrown].map((h) => [h.results, h.logs, h.store.history]))).not.toContain("canary");
  });

  it("a secret that is not configured is a permanent failure that names it", async () => {
    expect(await resultOf({ run: async (_, context) => context.secret("missing") })).toMatchObject({ outcome: "failed", failure: { kind: "permanent", message: expect.stringContaining("\"missing\"") as string } });
  });
});

describe("drain", () => {
  it("takes nothing new and waits for what runs", async () => {
    let finish: (value: unknown) => void = () => undefined;
    const h = harness([countingTool({ run: () => new Promise((resolve) => { finish = resolve; }) }).tool]);
    const worker = h.worker();
    await deliver(worker, requestFor(h.clock));
    const drained = worker.drain();
    expect(await deliver(worker, requestFor(h.clock, { request: { callId: "call_2" } }))).toBe("RETRY");
    finish("ok");
    await drained;
    expect(h.results).toMatchObject([{ outcome: "succeeded" }]);
    expect(h.clock.pending()).toBe(0);
  });

  it.each([["idempotent", "failed"], ["once", "outcome_unknown"]] as const)("aborts after its time and reports, effects %s: %s", async (effects, outcome) => {
    const h = harness([countingTool({ effects, timeoutMs: 600_000, run: never }).tool]);
    const worker = h.worker();
    await deliver(worker, requestFor(h.clock));
    const drained = worker.drain();
    await h.clock.advance(15_000);
    await drained;
    expect(h.results).toMatchObject([{ outcome }]);
  });

  it("ends even when the broker is down; the next worker answers from the store", async () => {
    const h = harness([countingTool({ run: async () => { h.broker.failing = true; return "ok"; } }).tool]);
    const worker = h.worker();
    await deliver(worker, requestFor(h.clock));
    const drained = worker.drain();
    await h.clock.advance(60_000);
    await drained;
    h.broker.failing = false;
    await deliver(h.worker("w2"), requestFor(h.clock));
    expect(h.results).toMatchObject([{ outcome: "succeeded", output: "ok" }]);
  });
});
