import { beforeEach, describe, expect, it } from "vitest";
import { transcriptOf } from "../../../src/session/core/transcript.js";
import { MAX_CALLS, RING } from "../../../src/session/core/limits.js";
import { Bench, callOf } from "./support.js";

let bench: Bench;
beforeEach(() => { bench = new Bench(); bench.receive(1); });
const statuses = () => bench.eventsOf("ToolResultRecorded").map((event) => event.status);

describe("the calls of an answer", () => {
  it("are judged one by one and run in parallel; the model is called again when every one has its result", () => {
    bench.answer([callOf("allow"), callOf("deny", { index: 1 }), callOf("ask", { index: 2 })]);
    expect(bench.types).toEqual(["ModelAnswered", "ToolCallAllowed", "ToolCallDispatched", "ToolCallDenied", "ToolResultRecorded", "ApprovalOpened"]);
    expect(bench.open.status).toBe("AWAITING_APPROVAL");
    bench.result(0);
    expect(bench.types).toEqual(["ToolResultRecorded"]);
    bench.decides("approve");
    expect(bench.types).toEqual(["DecisionRecorded", "ToolCallDispatched"]);
    expect(bench.open.status).toBe("EXECUTING_TOOL");
    bench.result(2);
    expect(bench.types).toEqual(["ToolResultRecorded", "ModelCallStarted"]);
    expect(bench.open).toMatchObject({ status: "SUMMARIZING", model: { step: 2, attempt: 1 } });
  });

  it("go out with a deadline and a grant minted once per call", () => {
    bench.answer([callOf("allow")]);
    const [first] = bench.eventsOf("ToolCallDispatched");
    expect(first).toMatchObject({ try: 1, deadlineAtMs: bench.atMs + 10_000 + 75_000, grantIssuedAtMs: bench.atMs, grantExpiresAtMs: bench.atMs + 12 * 3_600_000 });
    bench.fails("transient");
    bench.later(60_000).tick();
    expect(bench.eventsOf("ToolCallDispatched")[1]).toMatchObject({ try: 2, grantIssuedAtMs: first!.grantIssuedAtMs, grantExpiresAtMs: first!.grantExpiresAtMs });
  });

  it("whose arguments are invalid go back to the model at once", () => {
    bench.answer([{ ok: false, callId: "x", providerCallId: "p", tool: "refund", args: "{", message: "amount is missing" }]);
    expect(bench.types).toEqual(["ModelAnswered", "ToolResultRecorded", "ModelCallStarted"]);
    expect(bench.run.reflections).toBe(1);
  });

  it.each(["allow", "ask"] as const)("beyond sixteen go back to the model, each with its result (%s)", (verdict) => {
    bench.answer(Array.from({ length: MAX_CALLS + 4 }, (_, index) => callOf(verdict, { index, effects: "none" })));
    expect(bench.run.calls).toHaveLength(MAX_CALLS);
    expect(bench.open.approvals).toHaveLength(verdict === "ask" ? MAX_CALLS : 0);
    expect(statuses()).toEqual(["failed", "failed", "failed", "failed"]);
    for (let index = 0; index < MAX_CALLS; index += 1) {
      if (verdict === "ask") bench.decides("approve");
      bench.result(index);
    }
    const results = transcriptOf(bench.entries, 1)[2];
    expect(results).toMatchObject({ role: "tool_results", results: { length: MAX_CALLS + 4 } });
    expect(JSON.stringify(results)).toContain("propose it again");
  });
});

describe("the outbox row of a tool request", () => {
  beforeEach(() => bench.answer([callOf("allow", { effects: "idempotent" })]));
  const rows = () => bench.open.outbox.map((row) => `${row.rowId.split(":")[0] ?? ""}#${String(row.publication)}`);

  it("is not cleared by a publish that returned success, but by the claim", () => {
    bench.confirm();
    expect(rows()).toEqual(["tool#1"]);
    bench.ask({ type: "RecordClaim", callId: bench.call().callId, try: 1, worker: "w1" });
    expect(rows()).toEqual([]);
    expect(bench.call().life).toMatchObject({ phase: "dispatched", claimedBy: "w1" });
  });

  it("is published again after 15 s, under a new number", () => {
    expect(bench.later(14_999).tick().events).toEqual([]);
    bench.later(1).tick();
    expect(bench.types).toEqual(["PublicationRepeated"]);
    expect(bench.effects).toContain("Publish");
    expect(rows()).toEqual(["tool#2"]);
  });

  it("comes back once when a claim goes quiet before the deadline", () => {
    bench.ask({ type: "RecordClaim", callId: bench.call().callId, try: 1, worker: "w1" });
    bench.later(50_000).tick();
    expect(bench.types).toEqual(["PublicationRepeated"]);
    expect(rows()).toEqual(["tool#2"]);
    bench.ask({ type: "RecordClaim", callId: bench.call().callId, try: 1, worker: "w1" });
    expect(rows()).toEqual([]);
    expect(bench.later(1000).tick().events).toEqual([]);
  });
});

describe("a failing tool", () => {
  const start = (about: Parameters<typeof callOf>[1] = {}) => bench.answer([callOf("allow", about)]);
  const retryNow = () => bench.later(61_000).tick();

  it("is retried with backoff, then dead-lettered with its last error, and the model is told (recorded day, ord-1002)", () => {
    start({ maxTries: 3 });
    bench.fails("transient");
    expect(bench.call().life).toEqual({ phase: "waiting_retry", try: 1, dueAtMs: bench.atMs + 500 });
    retryNow(); bench.fails("transient");
    expect(bench.call().life).toEqual({ phase: "waiting_retry", try: 2, dueAtMs: bench.atMs + 1000 });
    retryNow(); bench.fails("transient");
    expect(bench.types).toEqual(["ToolTryFailed", "DeadLetterRecorded", "ToolResultRecorded", "ModelCallStarted"]);
    expect(bench.eventsOf("DeadLetterRecorded")).toMatchObject([{ kind: "tool_request", reason: "transient", tries: 3, argsRev: 2, message: "transient failure" }]);
    expect(bench.run.reflections).toBe(1);
  });

  it("waits at least as long as the other side asked", () => {
    start();
    bench.result(0, { outcome: "failed", failure: { kind: "transient", message: "503", retryAfterMs: 30_000 } });
    expect(bench.call().life).toMatchObject({ dueAtMs: bench.atMs + 30_000 });
  });

  it("by a business rule goes back to the model at once: no retry, no dead letter", () => {
    start(); bench.fails("business");
    expect(bench.types).toEqual(["ToolResultRecorded", "ModelCallStarted"]);
    expect(statuses()).toEqual(["failed"]);
  });

  it.each(["permanent", "refused"] as const)("for good (%s) is dead-lettered at once", (kind) => {
    start(); bench.fails(kind);
    expect(bench.types).toEqual(["ToolTryFailed", "DeadLetterRecorded", "ToolResultRecorded", "ModelCallStarted"]);
  });

  it("that is critical asks a person; retry tries again, with the next number", () => {
    start({ critical: true }); bench.fails("permanent");
    expect(bench.open).toMatchObject({ status: "ESCALATED", escalation: { reason: "critical_tool_failed" } });
    bench.decides("retry");
    expect(bench.types).toEqual(["DecisionRecorded", "ToolCallDispatched"]);
    expect(bench.call().life).toMatchObject({ phase: "dispatched", try: 2 });
  });

  it("is not run again on a grant that has expired: the model may propose it anew", () => {
    start({ critical: true }); bench.fails("permanent");
    bench.later(13 * 3_600_000).decides("retry");
    expect(bench.types).toEqual(["DecisionRecorded", "ToolResultRecorded", "ModelCallStarted"]);
  });

  it("that was proven not started is sent again", () => {
    start(); bench.result(0, { outcome: "not_started" });
    expect(bench.call().life.phase).toBe("waiting_retry");
  });

  it("reports late for an older try: nothing happens", () => {
    start(); bench.fails("transient"); retryNow();
    expect(bench.result(0, { try: 1 }).events).toEqual([]);
  });
});

describe("a call without a result at its deadline", () => {
  const start = (effects: "none" | "idempotent" | "once") => bench.answer([callOf("allow", { effects, maxTries: 2 })]);
  const deadline = () => bench.later(90_000).tick();

  it("is timed out and retried when it has no effects", () => {
    start("none"); deadline();
    expect(bench.call().life.phase).toBe("waiting_retry");
    bench.later(2000).tick(); deadline();
    expect(statuses()).toEqual(["timed_out"]);
  });

  it("is retried when idempotent, but never called timed out: the last unproven try is an unknown outcome", () => {
    start("idempotent"); deadline(); bench.later(2000).tick(); deadline();
    expect(bench.open).toMatchObject({ status: "ESCALATED", escalation: { reason: "outcome_unknown" }, unknownCalls: [{ unproven: true }] });
    expect(bench.result(0, { outcome: "failed", failure: { kind: "transient", message: "x" } }).events).toEqual([]);
    bench.result(0, { try: 1 });
    expect(statuses()).toEqual(["succeeded"]);
  });

  it("with effects once is an unknown outcome: a person is asked, nothing is retried (I6)", () => {
    start("once"); deadline();
    expect(bench.types.slice(0, 2)).toEqual(["ToolOutcomeUnknown", "Escalated"]);
    expect(bench.open).toMatchObject({ status: "ESCALATED", unknownCalls: [{ tool: "refund" }] });
    expect(bench.eventsOf("ToolCallDispatched")).toHaveLength(1);
  });
});

describe("an unknown outcome", () => {
  const more = { index: 0, step: 2 };
  beforeEach(() => { bench.answer([callOf("allow")]); bench.result(0, { outcome: "outcome_unknown" }); });

  it("is closed by the late result, and the question is withdrawn", () => {
    bench.result(0);
    expect(bench.types).toEqual(["LateResultRecorded", "ApprovalWithdrawn", "ToolResultRecorded", "ModelCallStarted"]);
    expect(bench.open.unknownCalls).toEqual([]);
  });

  it("that turns out not to have started is sent again", () => {
    bench.result(0, { outcome: "not_started" });
    expect(bench.types).toEqual(["LateResultRecorded", "ApprovalWithdrawn", "ToolTryFailed"]);
    expect(bench.open).toMatchObject({ status: "EXECUTING_TOOL", unknownCalls: [] });
  });

  it("is closed by a person who states what happened", () => {
    bench.decides("respond", { text: "the money has arrived" });
    expect(bench.open).toMatchObject({ status: "SUMMARIZING", unknownCalls: [] });
    expect(statuses()).toEqual(["responded"]);
  });

  it("is sent again only when a person says retry", () => {
    bench.decides("retry");
    expect(bench.call().life).toMatchObject({ phase: "dispatched", try: 2 });
  });

  it("asked again by a person and unknown again is not closed by a failure of the first try", () => {
    bench.decides("retry");
    bench.result(0, { outcome: "outcome_unknown" });
    expect(bench.result(0, { try: 1, outcome: "not_started" }).events).toEqual([]);
    bench.result(0, { try: 1 });
    expect(bench.types.slice(0, 3)).toEqual(["LateResultRecorded", "ApprovalWithdrawn", "ToolResultRecorded"]);
  });

  it("blocks a twin that is approved meanwhile", () => {
    const twins = new Bench();
    twins.receive(1);
    twins.answer([callOf("allow"), callOf("ask", { index: 1, args: "{\"n\":0}" })]);
    twins.result(0, { outcome: "outcome_unknown" });
    twins.decides("approve");
    expect(twins.types).toEqual(["DecisionRecorded", "ToolResultRecorded"]);
    expect(twins.eventsOf("ToolResultRecorded")).toMatchObject([{ status: "failed", content: { text: /^blocked/ } }]);
  });

  it("given up stays blocked for the same arguments, until a late result", () => {
    bench.decides("give_up");
    expect(bench.eventsOf("DeadLetterRecorded")).toMatchObject([{ reason: "outcome_unknown" }]);
    bench.receive(2);
    bench.answer([callOf("allow", { runId: "run-2" }), callOf("allow", { runId: "run-2", index: 1 })]);
    expect(statuses()).toEqual(["outcome_unknown", "failed"]);
    bench.ask({ type: "RecordToolResult", callId: bench.open.unknownCalls[0]!.callId, try: 1, outcome: "succeeded", content: { text: "it did", truncated: false }, reserveUsd: 0 });
    expect(bench.types).toEqual(["LateResultRecorded"]);
    bench.result(1);
    bench.answer([callOf("allow", { ...more, runId: "run-2" })]);
    expect(bench.types).toEqual(["ModelAnswered", "ToolCallAllowed", "ToolCallDispatched"]);
  });
});

describe("calls whose outcome nobody knows", () => {
  it("beyond fifty: the oldest no longer blocks the same call, its dead letter stays", () => {
    const args = (n: number) => `{"n":${String(n)}}`;
    for (let n = 1; n <= RING + 1; n += 1) {
      if (n > 1) bench.receive(n);
      bench.answer([callOf("allow", { runId: `run-${String(n)}`, args: args(n) })]);
      bench.ask({ type: "Cancel", key: `c-${String(n)}`, reason: "enough" });
      bench.later(200_000).tick();
      bench.confirm();
    }
    expect(bench.open.unknownCalls).toHaveLength(RING);
    expect(bench.eventsOf("DeadLetterRecorded")).toHaveLength(RING + 1);
    bench.receive(99);
    bench.answer([callOf("allow", { runId: "run-99", args: args(1) }), callOf("allow", { runId: "run-99", index: 1, args: args(2) })]);
    expect(bench.run.calls.map(({ life }) => life.phase)).toEqual(["dispatched", "finished"]);
  });
});
