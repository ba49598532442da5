import { beforeEach, describe, expect, it } from "vitest";
import { MAX_UNBOOKED } from "../../../src/session/core/limits.js";
import { Bench, callOf, LIMITS, USAGE } from "./support.js";

let bench: Bench;
beforeEach(() => { bench = new Bench(); bench.receive(1); });

const failure = (kind: "transient" | "permanent" | "aborted" | "lost" | "not_sent", about: { attempt?: number; retryAfterMs?: number; costUsd?: number } = {}) =>
  ({ type: "RecordModelFailure", runId: "run-1", step: 1, attempt: about.attempt ?? bench.run.attempt, kind, message: `${kind}!`, ...about }) as const;

describe("an answer of the model", () => {
  it("without calls completes the run and puts a response in the outbox", () => {
    bench.answer();
    expect(bench.types).toEqual(["ModelAnswered", "RunEnded"]);
    expect(bench.open).toMatchObject({ status: "IDLE", totals: { inputTokens: 10, outputTokens: 5, costUsd: 0.01 }, outbox: [{ rowId: "response:run-1" }] });
    expect(bench.eventsOf("RunEnded")).toEqual([{ type: "RunEnded", runId: "run-1", key: "key-1", outcome: "completed", text: "done" }]);
  });

  it.each([
    ["max_tokens", { outcome: "completed", code: "truncated" }],
    ["refusal", { outcome: "failed", code: "model_refused" }],
  ] as const)("that stopped by %s ends the run accordingly", (stop, ended) => {
    bench.answer([], { stop });
    expect(bench.open.recentRuns).toMatchObject([ended]);
  });

  it("for a given-up attempt books its cost once and counts for nothing", () => {
    bench.tick({ deadHosts: ["host-1"] });
    expect(bench.types).toEqual(["ModelCallFailed", "ModelCallStarted"]);
    expect(bench.run).toMatchObject({ attempt: 2, spentUsd: 0.02 });
    bench.answer([], { attempt: 1 });
    expect(bench.types).toEqual(["ModelCostBooked"]);
    expect(bench.run).toMatchObject({ attempt: 2, spentUsd: 0.01 });
    expect(bench.answer([], { attempt: 1 }).events).toEqual([]);
    bench.answer();
    expect(bench.open.totals.costUsd).toBe(0.02);
  });

  it("for one of too many given-up attempts is not booked any more: the oldest stay charged with their reservation", () => {
    while (bench.eventsOf("ModelCallFailed").length <= MAX_UNBOOKED) {
      bench.tick({ deadHosts: ["host-1"] });
      if (bench.open.status === "ESCALATED") bench.decides("retry");
    }
    const { spentUsd } = bench.run;
    expect(spentUsd).toBeCloseTo(0.02 * (MAX_UNBOOKED + 1));
    expect(bench.answer([], { attempt: 1 }).events).toEqual([]);
    bench.answer([], { attempt: 2 });
    expect(bench.types).toEqual(["ModelCostBooked"]);
    expect(bench.run.spentUsd).toBeCloseTo(spentUsd - 0.01);
    expect(bench.open.unbooked).toHaveLength(MAX_UNBOOKED - 1);
  });

  it("that comes twice (lost reply of the commit) is counted once", () => {
    const twice = { type: "RecordAnswer", runId: "run-1", step: 1, attempt: 1, model: "m", text: "hi", stop: "end", calls: [], usage: USAGE, costUsd: 0.01, reserveUsd: 0 } as const;
    bench.ask(twice);
    expect(bench.ask(twice)).toEqual({ ok: true, events: [] });
  });

  it("keeps the provider's own state of the answer", () => {
    bench.answer([], { carry: "{\"signature\":1}" });
    expect(bench.eventsOf("ModelAnswered")).toMatchObject([{ carry: "{\"signature\":1}" }]);
  });
});

describe("a failing model call", () => {
  it("is tried again after a backoff that honours retry-after", () => {
    bench.ask(failure("transient", { retryAfterMs: 7000 }));
    expect(bench.open).toMatchObject({ status: "PLANNING", model: { phase: "waiting", attempt: 2, dueAtMs: bench.atMs + 7000 } });
    expect(bench.effects).toEqual(["WakeAt"]);
    bench.later(6999).ask({ type: "StartModelCall", step: 1, attempt: 2, reserveUsd: 0.02 });
    expect(bench.types).toEqual([]);
    bench.later(1).ask({ type: "StartModelCall", step: 1, attempt: 2, reserveUsd: 0.02 });
    expect(bench.types).toEqual(["ModelCallStarted"]);
    expect(bench.effects).toContain("CallModel");
  });

  it("is booked where the provider had said what it cost", () => {
    bench.ask(failure("transient", { costUsd: 0.005 }));
    expect(bench.types).toEqual(["ModelCallFailed", "ModelCostBooked"]);
    expect(bench.run.spentUsd).toBe(0.005);
  });

  it("waits for room as often as it takes: what was not sent is no failure, and those who wait are spread", () => {
    for (let n = 1; n <= 20; n += 1) {
      bench.random = n / 21;
      bench.ask(failure("not_sent", { retryAfterMs: 10_000 }));
      const { retryAtMs = 0 } = bench.eventsOf("ModelCallFailed").at(-1)!;
      expect(retryAtMs - bench.atMs).toBeGreaterThanOrEqual(10_000);
      expect(retryAtMs - bench.atMs).toBeLessThanOrEqual(20_000);
      bench.later(20_001).tick();
    }
    expect(bench.open.status).toBe("PLANNING");
    expect(bench.run).toMatchObject({ attempt: 21, failedAttempts: 0 });
  });

  it("asks a person after six transient failures; retry begins anew", () => {
    for (let n = 1; n <= 6; n += 1) {
      bench.ask(failure("transient"));
      bench.later(61_000).tick();
    }
    expect(bench.open).toMatchObject({ status: "ESCALATED", escalation: { reason: "model_failed" } });
    bench.decides("retry");
    expect(bench.types).toEqual(["DecisionRecorded", "ModelCallStarted"]);
    expect(bench.run).toMatchObject({ attempt: 7, failedAttempts: 0 });
  });

  it("ends the run and is dead-lettered when the failure is permanent", () => {
    bench.ask(failure("permanent"));
    expect(bench.types).toEqual(["ModelCallFailed", "RunEnded", "DeadLetterRecorded"]);
    expect(bench.eventsOf("DeadLetterRecorded")).toMatchObject([{ kind: "event", reason: "model_failed", tries: 1, eventRev: 1 }]);
  });

  it("asks a person at the third attempt that is lost with its host", () => {
    for (let n = 1; n <= 3; n += 1) bench.tick({ deadHosts: ["host-1"] });
    expect(bench.types).toEqual(["ModelCallFailed", "Escalated"]);
    expect(bench.open).toMatchObject({ status: "ESCALATED", escalation: { reason: "model_lost" } });
    bench.decides("give_up");
    expect(bench.open).toMatchObject({ status: "IDLE", recentRuns: [{ outcome: "escalated", code: "model_lost" }] });
  });

  it("is left alone while its host is alive", () => {
    expect(bench.later(3000).tick({ deadHosts: ["host-2"] }).events).toEqual([]);
  });

  it("may be taken up by any host at once when a host stops", () => {
    bench.ask(failure("aborted"));
    bench.host = "host-2";
    bench.tick();
    expect(bench.open).toMatchObject({ model: { host: "host-2", attempt: 2 } });
  });
});

describe("limits of a run", () => {
  it("stop it before a model call that could break the budget (I11); raise goes on", () => {
    bench.answer([callOf("deny")], { costUsd: 0.99 });
    expect(bench.open).toMatchObject({ status: "ESCALATED", escalation: { reason: "budget" }, approvals: [{ kind: "escalation", allowed: ["raise", "give_up"] }] });
    expect(bench.decides("raise", { raise: {} })).toMatchObject({ ok: false, code: "arguments_invalid" });
    bench.decides("raise", { raise: { budgetUsd: 2 } });
    expect(bench.types).toEqual(["DecisionRecorded", "LimitsRaised", "ModelCallStarted"]);
    expect(bench.run.budgetUsd).toBe(2);
  });

  it("stop it at the last step", () => {
    const short = new Bench({ ...LIMITS, maxSteps: 1 });
    short.receive(1);
    short.answer([callOf("deny")]);
    expect(short.open).toMatchObject({ status: "ESCALATED", escalation: { reason: "step_limit" } });
  });

  it("stop it when failures keep going back to the model", () => {
    const broken = { ok: false, callId: "x", providerCallId: "p", tool: "refund", args: "{", message: "not JSON" } as const;
    for (let step = 1; step <= 4; step += 1) bench.answer([{ ...broken, callId: `x${String(step)}` }]);
    expect(bench.open).toMatchObject({ status: "ESCALATED", escalation: { reason: "reflection_limit" } });
    bench.decides("retry");
    expect(bench.run).toMatchObject({ reflections: 0, attempt: 1 });
  });

  it("expire it at the event's expiry: model aborted, dead letter", () => {
    const timed = new Bench();
    timed.receive(1, { expiresAtMs: timed.atMs + 5000 });
    timed.later(5000).tick();
    expect(timed.types).toEqual(["ModelCallFailed", "RunEnded", "DeadLetterRecorded"]);
    expect(timed.effects).toContain("AbortModel");
    expect(timed.open.recentRuns).toMatchObject([{ outcome: "expired" }]);
  });
});
