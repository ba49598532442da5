import { describe, expect, it } from "vitest";
import { argsDigest } from "../../../src/contracts/ids.js";
import { MAX_ROUNDS, MAX_WINDOW_ENTRIES } from "../../../src/session/core/limits.js";
import { nextDueAtMs } from "../../../src/session/core/rest.js";
import { summaryOf } from "../../../src/session/core/summary.js";
import { transcriptOf } from "../../../src/session/core/transcript.js";
import { Bench, callOf, LIMITS, prepared, receive, verdict } from "./support.js";

const roles = (bench: Bench) => transcriptOf(bench.entries, bench.open.window.fromRev).map((message) => message.role);

describe("the conversation shown to the model", () => {
  it("holds each call with its result, in call order, whatever order they came in", () => {
    const bench = new Bench();
    bench.receive(1);
    bench.answer([callOf("allow"), callOf("allow", { index: 1 })]);
    bench.result(1, { content: { text: "second", truncated: true } });
    expect(roles(bench)).toEqual(["user"]);
    bench.result(0, { outcome: "failed", failure: { kind: "business", message: "no such order" } });
    expect(transcriptOf(bench.entries, 1)).toEqual([
      { role: "user", text: "please 1" },
      { role: "assistant", text: "calling", calls: [{ id: "p-1-0", name: "refund", args: "{\"n\":0}" }, { id: "p-1-1", name: "refund", args: "{\"n\":1}" }] },
      { role: "tool_results", results: [
        { id: "p-1-0", name: "refund", text: "no such order\nok", isError: true },
        { id: "p-1-1", name: "refund", text: "second\n[output cut here]", isError: false },
      ] },
    ]);
  });

  it("says which arguments counted when a person changed them", () => {
    const bench = new Bench();
    bench.receive(1); bench.answer([callOf("ask")]);
    bench.decides("modify", {}, { ok: true, modified: { args: "{\"n\":7}", argsDigest: argsDigest("{\"n\":7}"), verdict: verdict("allow") } });
    bench.result();
    expect(transcriptOf(bench.entries, 1)[2]).toMatchObject({ results: [{ text: "[a person changed the arguments; what counts is: {\"n\":7}]\nok" }] });
  });

  it("puts a steered message where the model first sees it, and never changes what came before", () => {
    const bench = new Bench();
    bench.receive(1); bench.answer([callOf("allow")]);
    bench.receive(2, { mode: "steer" });
    bench.result();
    const seen = transcriptOf(bench.entries, 1);
    expect(seen.map((message) => message.role)).toEqual(["user", "assistant", "tool_results", "user"]);
    bench.answer();
    expect(transcriptOf(bench.entries, 1).slice(0, seen.length)).toEqual(seen);
  });

  it("keeps a partial answer in its own round although it is reported later", () => {
    const bench = new Bench();
    bench.receive(1); bench.receive(2, { mode: "interrupt" });
    bench.takeNext();
    bench.ask({ type: "RecordModelFailure", runId: "run-1", step: 1, attempt: 1, kind: "aborted", message: "x", partialText: "I was" });
    expect(transcriptOf(bench.entries, 1)).toEqual([{ role: "user", text: "please 1" }, { role: "assistant", text: "I was", calls: [] }, { role: "user", text: "please" }]);
  });

  it("leaves out runs that never reached the model, empty answers, and makes broken arguments readable", () => {
    const bench = new Bench();
    bench.receive(1, { check: { code: "no" } });
    bench.receive(2);
    bench.answer([{ ok: false, callId: "x", providerCallId: "p", tool: "t", args: "{broken", message: "not JSON" }], { text: "" });
    bench.answer([], { text: "" });
    expect(transcriptOf(bench.entries, 1)).toEqual([
      { role: "user", text: "please 2" },
      { role: "assistant", text: "", calls: [{ id: "p", name: "t", args: "{\"invalid_arguments\":\"{broken\"}" }] },
      { role: "tool_results", results: [{ id: "p", name: "t", text: "not JSON", isError: true }] },
    ]);
  });

  it("drops whole rounds when there are too many or they are too large; the last one stays", () => {
    const bench = new Bench({ ...LIMITS, windowRounds: 2 });
    for (let n = 1; n <= 4; n += 1) { bench.receive(n); bench.answer(); bench.confirm(); }
    expect(roles(bench)).toEqual(["user", "assistant", "user", "assistant"]);
    const small = new Bench({ ...LIMITS, windowBytes: 5 });
    for (let n = 1; n <= 2; n += 1) { small.receive(n); small.answer(); }
    expect(roles(small)).toEqual(["user", "assistant"]);
  });

  const WIDE = { ...LIMITS, windowRounds: 10_000, windowBytes: 10_000_000 };
  const round = (bench: Bench, n: number): void => { bench.receive(n); bench.answer(); bench.confirm(); };

  it("holds a hundred rounds at most, whatever the agent asks for", () => {
    const bench = new Bench(WIDE);
    for (let n = 1; n <= MAX_ROUNDS + 5; n += 1) round(bench, n);
    const shown = transcriptOf(bench.entries, bench.open.window.fromRev);
    expect(bench.open.window.rounds).toHaveLength(MAX_ROUNDS);
    expect([shown.length, shown[0]]).toEqual([2 * MAX_ROUNDS, { role: "user", text: "please 6" }]);
  });

  it("spans a thousand entries at most: older rounds leave it whole", () => {
    const bench = new Bench(WIDE);
    round(bench, 1);
    round(bench, 2);
    expect(roles(bench)).toHaveLength(4);
    for (let n = 3; bench.state.rev <= MAX_WINDOW_ENTRIES + 5; n += 1) { bench.receive(n, { check: { code: "no" } }); bench.confirm(); }
    round(bench, 10_000);
    expect(transcriptOf(bench.entries, bench.open.window.fromRev)[0]).toEqual({ role: "user", text: "please 10000" });
  });

  it("has no half characters in it, from wherever they came: providers refuse the whole of it", () => {
    const bench = new Bench();
    bench.ask({ ...receive(1), prepared: prepared(undefined, "half \uD83D") });
    bench.answer([callOf("allow")], { text: "half \uD83D" });
    bench.result(0, { content: { text: "\uDE00 half", truncated: false } });
    expect(JSON.stringify(transcriptOf(bench.entries, 1))).not.toContain("\\ud");
  });

  it("costs the same in a long session: the window moves on", () => {
    const bench = new Bench();
    let largest = 0;
    for (let n = 1; n <= 300; n += 1) {
      bench.receive(n); bench.answer(); bench.confirm();
      if (n === 60) largest = JSON.stringify(bench.state).length;
    }
    expect(bench.state.rev - bench.open.window.fromRev).toBeLessThan(20);
    expect(JSON.stringify(bench.state).length).toBeLessThan(largest + 400);
  });
});

describe("what lists show", () => {
  it("names what a session waits for, and when it must be looked at next", () => {
    const bench = new Bench();
    bench.receive(1);
    expect(summaryOf(bench.open)).toMatchObject({ status: "PLANNING", runId: "run-1", waitingFor: "the model (step 1, attempt 1)", nextDueAtMs: bench.open.updatedAtMs + 6_000 });
    bench.answer([callOf("allow"), callOf("ask", { index: 1 })]);
    expect(summaryOf(bench.open)).toMatchObject({ waitingFor: "a person's decision on refund", openApprovals: 1, risk: "medium", toolCalls: 1 });
    expect(nextDueAtMs(bench.state)).toBe(bench.atMs + 85_000);
    bench.decides("reject");
    expect(summaryOf(bench.open).waitingFor).toBe("tool refund (try 1)");
  });

  it("at rest there is nothing due, and the guard goes", () => {
    const bench = new Bench();
    bench.receive(1); bench.answer(); bench.tick({ published: bench.open.outbox.map((row) => row.rowId), guardGeneration: 9 });
    expect(bench.types).toEqual(["PublicationsCleared"]);
    expect(summaryOf(bench.open)).toMatchObject({ status: "IDLE", waitingFor: "the next event" });
    expect(nextDueAtMs(bench.state)).toBeUndefined();
    // The host may have died before it could register the guard: somebody else has to look whether the release came.
    expect(summaryOf(bench.open).nextDueAtMs).toBe(bench.open.updatedAtMs + bench.open.guard.periodMs + 6_000);
    expect(bench.tick({ guardGeneration: 9 }).events).toEqual([]);
    bench.tick({ guardGeneration: 1 });
    expect(bench.types).toEqual(["GuardReleased"]);
    expect(summaryOf(bench.open).nextDueAtMs).toBeUndefined();
    expect(bench.tick().events).toEqual([]);
  });
});
