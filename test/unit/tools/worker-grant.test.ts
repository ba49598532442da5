/** I4, I5, I14: what is not granted, or not readable, does not run and does not loop. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Problem } from "../../../src/contracts/problems.js";
import { argsDigest } from "../../../src/contracts/ids.js";
import { CallRecord } from "../../../src/tools/record.js";
import { createWorker } from "../../../src/tools/worker.js";
import { flush } from "../../support/tools/clock.js";
import { MemoryCallStore } from "../../support/tools/memory-call-store.js";
import { countingTool, deliver, eventOf, harness, requestFor, type RequestOptions } from "../../support/tools/harness.js";

const OTHER_ARGS = "{\"order\":\"ord-2\"}";

describe("a grant for anything else", () => {
  const cases: [string, RequestOptions, string][] = [
    ["signature", { grant: "not.signed.at-all" }, "bad_signature"],
    ["issuer", { grant: { iss: "docket/console" as never } }, "bad_signature"],
    ["audience", { grant: { aud: "docket/sessions" as never } }, "bad_signature"],
    ["session", { grant: JSON.parse("{\"sub\":\"default_order-2\"}") as RequestOptions["grant"] & object }, "forbidden"],
    ["call", { grant: { jti: "call_2" } }, "forbidden"],
    ["tool", { grant: { tool: "delete_all" } }, "forbidden"],
    ["arguments", { grant: { digest: argsDigest(OTHER_ARGS) } }, "digest_mismatch"],
    ["time", { grant: { exp: 1 } }, "expired"],
    ["number of claims", { grant: { exp: undefined as never } }, "bad_signature"],
  ];
  it.each(cases)("wrong %s: refused, never run, kept for people", async (_, options, reason) => {
    const { tool, effects } = countingTool();
    const h = harness([tool]);
    expect(await deliver(h.worker(), requestFor(h.clock, options))).toBe("SUCCESS");
    expect(effects()).toBe(0);
    expect(h.results).toMatchObject([{ outcome: "failed", failure: { kind: "refused" } }]);
    expect(h.letters).toMatchObject([{ kind: "tool_request", reason, callId: "call_1", topic: "agent.tools.execute", app: "tools" }]);
  });

  it("arguments changed after sealing, digest kept: refused", async () => {
    const { tool, effects } = countingTool();
    const h = harness([tool]);
    await deliver(h.worker(), { ...requestFor(h.clock), args: OTHER_ARGS });
    expect(effects()).toBe(0);
    expect(h.letters).toMatchObject([{ reason: "digest_mismatch" }]);
  });

  it("arguments and digest changed together: refused, because the grant holds the digest", async () => {
    const { tool, effects } = countingTool();
    const h = harness([tool]);
    await deliver(h.worker(), { ...requestFor(h.clock), args: OTHER_ARGS, argsDigest: argsDigest(OTHER_ARGS) });
    expect(effects()).toBe(0);
    expect(h.letters).toMatchObject([{ reason: "digest_mismatch" }]);
  });

  it.each(["tenant", "sessionId"] as const)("a %s that is not the granted session's: refused", async (field) => {
    const { tool, effects } = countingTool();
    const h = harness([tool]);
    await deliver(h.worker(), { ...requestFor(h.clock), [field]: "other" });
    expect(effects()).toBe(0);
    expect(h.letters).toMatchObject([{ reason: "forbidden" }]);
  });

  it("a second call under a recorded id: dead-lettered, and the recorded call keeps its result", async () => {
    const { tool, effects } = countingTool();
    const h = harness([tool]);
    await deliver(h.worker(), requestFor(h.clock));
    await deliver(h.worker(), requestFor(h.clock, { request: { args: OTHER_ARGS } }));
    expect(effects()).toBe(1);
    expect(h.results).toHaveLength(1);
    expect(h.letters).toMatchObject([{ reason: "digest_mismatch" }]);
  });

  it("a refused call stays refused: a good grant that comes later finds it settled", async () => {
    const { tool, effects } = countingTool();
    const h = harness([tool]);
    await deliver(h.worker(), requestFor(h.clock, { grant: "forged" }));
    await deliver(h.worker(), requestFor(h.clock));
    expect(effects()).toBe(0);
    expect(h.results.map((result) => result.failure?.kind)).toEqual(["refused", "refused"]);
  });

  it("a bad grant while the call runs changes nothing", async () => {
    let finish: (value: unknown) => void = () => undefined;
    const { tool } = countingTool({ run: () => new Promise((resolve) => { finish = resolve; }) });
    const h = harness([tool]);
    await deliver(h.worker(), requestFor(h.clock));
    await deliver(h.worker(), requestFor(h.clock, { grant: "forged" }));
    finish("ok");
    await flush();
    expect(h.results).toMatchObject([{ outcome: "succeeded" }]);
  });

  it("keys that cannot be read are a failure of the way: RETRY", async () => {
    const h = harness([]);
    const worker = createWorker({
      tools: new Map(), store: h.store, clock: h.clock, log: () => undefined, secrets: { find: () => undefined }, workspace: () => Promise.resolve({ path: "/tmp", close: () => Promise.resolve() }),
      signer: { sign: () => Promise.resolve("") }, results: { claimed: () => Promise.resolve(), completed: () => Promise.resolve() }, deadLetters: { record: () => Promise.resolve() },
      grants: { verify: () => Promise.reject(new Problem("store_unavailable", "no keys")) },
    }, { worker: "w" });
    expect(await deliver(worker, requestFor(h.clock))).toBe("RETRY");
  });
});

describe("what may not start", () => {
  it("a tool that is not installed: refused", async () => {
    const h = harness([]);
    await deliver(h.worker(), requestFor(h.clock));
    expect(h.results).toMatchObject([{ outcome: "failed", failure: { kind: "refused", message: expect.stringContaining("not installed") as string } }]);
    expect(h.letters).toEqual([]);
  });

  it("a deadline in the past: not started, so that it may be tried again", async () => {
    const { tool, effects } = countingTool();
    const h = harness([tool]);
    await deliver(h.worker(), requestFor(h.clock, { request: { deadlineAtMs: h.clock.nowMs() - 1 } }));
    expect(effects()).toBe(0);
    expect(h.results).toMatchObject([{ outcome: "not_started" }]);
    await deliver(h.worker(), requestFor(h.clock, { request: { try: 2 } }));
    expect(effects()).toBe(1);
  });

  it.each([
    ["a wrong type", "{\"order\":1}"], ["a missing key", "{}"], ["an unknown key", "{\"order\":\"a\",\"force\":true}"],
    ["no object", "\"x\""], ["no JSON", "{"], ["a prototype", "{\"order\":\"a\",\"__proto__\":{\"admin\":true}}"], ["a bomb", "[".repeat(100_000)],
  ])("arguments with %s: refused after the claim, never run", async (_, args) => {
    const { tool, effects } = countingTool();
    const h = harness([tool]);
    expect(await deliver(h.worker(), requestFor(h.clock, { request: { args } }))).toBe("SUCCESS");
    expect(effects()).toBe(0);
    expect(h.results).toMatchObject([{ outcome: "failed", failure: { kind: "refused" } }]);
    expect(h.results[0]!.failure!.message.length).toBeLessThanOrEqual(2000);
  });

  it("more than the limit: RETRY before the claim, and accepted when there is room", async () => {
    const finish: ((value: unknown) => void)[] = [];
    const { tool } = countingTool({ run: () => new Promise((resolve) => finish.push(resolve)) });
    const h = harness([tool]);
    const worker = h.worker("w1", { maxConcurrent: 2 });
    const statuses = [];
    for (let i = 1; i <= 3; i += 1) statuses.push(await deliver(worker, requestFor(h.clock, { request: { callId: `call_${String(i)}` } })));
    expect(statuses).toEqual(["SUCCESS", "SUCCESS", "RETRY"]);
    expect(h.store.history.map((entry) => entry.record.callId)).toEqual(["call_1", "call_2"]);
    finish[0]!("ok");
    await flush();
    expect(await deliver(worker, requestFor(h.clock, { request: { callId: "call_3" } }))).toBe("SUCCESS");
  });
});

describe("what is malformed becomes a dead letter with its bytes, and is acked", () => {
  const h = harness([countingTool().tool]);
  const good = requestFor(h.clock);
  it.each([
    ["not JSON", "{", "unreadable", "not_json"],
    ["no CloudEvent", "{\"a\":1}", "unreadable", "not_a_cloudevent"],
    ["too large", `{"a":"${"x".repeat(300_000)}"}`, "unreadable", "payload_too_large"],
    ["nested too deeply", "[".repeat(1000), "unreadable", "not_json"],
    ["another type", eventOf(good, { type: "com.docket.tool.completed.v1" }), "tool_request", "unknown_type"],
    ["a field missing", eventOf({ ...good, callId: undefined }), "tool_request", "validation_failed"],
    ["a call id that is no key", eventOf({ ...good, callId: "../../x||y" }), "tool_request", "validation_failed"],
    ["data null", eventOf(null as never), "tool_request", "validation_failed"],
  ])("%s", async (_, text, kind, reason) => {
    h.letters.length = 0;
    expect(await h.worker().handleRequest(text)).toBe("SUCCESS");
    expect(h.letters).toMatchObject([{ kind, reason, payload: text, payloadEncoding: "utf8" }]);
  });

  it("a record of another version stops the call, not the channel", async () => {
    const { tool, effects } = countingTool();
    const store = new MemoryCallStore();
    const reach = { create: store.create.bind(store), replace: store.replace.bind(store), read: async () => ({ record: CallRecord.parse({ v: 2 }), etag: "1" }) };
    const newer = harness([tool], { reach });
    expect(await deliver(newer.worker(), requestFor(newer.clock, { request: { publication: 2 } }))).toBe("SUCCESS");
    expect(effects()).toBe(0);
    expect(newer.letters).toMatchObject([{ kind: "tool_request", reason: "internal", callId: "call_1" }]);
  });

  it("but when the dead letter cannot be recorded: RETRY", async () => {
    h.broker.failing = true;
    expect(await h.worker().handleRequest("{")).toBe("RETRY");
    h.broker.failing = false;
  });

  it("no text whatever makes it throw or run (fuzz)", async () => {
    const { tool, effects } = countingTool();
    const fuzzed = harness([tool]);
    const worker = fuzzed.worker();
    const text = eventOf(requestFor(fuzzed.clock));
    await fc.assert(fc.asyncProperty(fc.oneof(fc.string(), fc.json(), fc.tuple(fc.nat(text.length - 1), fc.string({ minLength: 1, maxLength: 3 })).map(([at, put]) => text.slice(0, at) + put + text.slice(at + put.length))), async (mutant) => {
      const status = await worker.handleRequest(mutant);
      await flush(3);
      // A mutation outside the sealed part (an envelope attribute, the run's id) may run: once.
      return ["SUCCESS", "RETRY"].includes(status) && effects() <= 1;
    }), { numRuns: 300 });
  });
});
