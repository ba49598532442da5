import { describe, expect, it } from "vitest";
import { MAX_OUTBOX } from "../../../src/session/core/limits.js";
import { Bench, callOf, LIMITS, receive } from "./support.js";

describe("an event for a session", () => {
  it("opens a new session and calls the model in the same commit", () => {
    const bench = new Bench();
    expect(bench.receive().ok).toBe(true);
    expect(bench.types).toEqual(["SessionOpened", "EventReceived", "RunStarted", "ModelCallStarted"]);
    expect(bench.open).toMatchObject({ status: "PLANNING", rev: 1, model: { phase: "running", step: 1, attempt: 1, host: "host-1", reservedUsd: 0.02 } });
    expect(bench.effects).toEqual(["CallModel", "WakeAt"]);
    expect(bench.eventsOf("GuardArmed")).toEqual([{ type: "GuardArmed", generation: 1, periodMs: 5000 }]);
  });

  it.each([
    ["is running", (bench: Bench) => bench],
    ["waits in the mailbox", (bench: Bench) => { bench.receive(2); return bench; }],
    ["has ended", (bench: Bench) => { bench.answer(); return bench; }],
  ])("is a duplicate when the same key %s (I2)", (_, given) => {
    const bench = new Bench();
    bench.receive(1);
    given(bench);
    const rev = bench.state.rev;
    expect(bench.receive(1)).toMatchObject({ ok: false, code: "duplicate", events: [] });
    expect(bench.state.rev).toBe(rev);
  });

  it("is a duplicate when the ledger knows it, even for a new session", () => {
    expect(new Bench().ask(receive(1, { seen: true }))).toMatchObject({ ok: false, code: "duplicate", events: [] });
  });

  it("ends rejected by the agent's check without a model call or dead letter, and stays out of the conversation", () => {
    const bench = new Bench();
    bench.receive(1, { check: { code: "total_is_zero" } });
    expect(bench.types).toEqual(["SessionOpened", "EventReceived", "RunStarted", "RunEnded"]);
    expect(bench.open).toMatchObject({ status: "IDLE", recentRuns: [{ outcome: "rejected", code: "total_is_zero" }], window: { rounds: [] }, totals: { modelCalls: 0 } });
    expect(bench.open.outbox).toMatchObject([{ rowId: "response:run-1", kind: "response", rev: 1, publication: 1 }]);
  });

  it("is dead-lettered as expired before any model call", () => {
    const bench = new Bench();
    bench.receive(1, { expiresAtMs: bench.atMs });
    expect(bench.types).toEqual(["SessionOpened", "EventReceived", "RunStarted", "RunEnded", "DeadLetterRecorded"]);
    expect(bench.eventsOf("DeadLetterRecorded")).toMatchObject([{ kind: "event", reason: "expired", key: "key-1", eventRev: 1 }]);
    expect(bench.open.outbox.map((row) => row.kind)).toEqual(["response", "dead_letter"]);
  });

  it("is rejected, on record, when the session belongs to another agent", () => {
    const bench = new Bench();
    bench.receive();
    expect(bench.ask(receive(2, { agent: "other" }))).toMatchObject({ ok: false, code: "agent_mismatch", events: [{ type: "EventReceived", key: "key-2" }, { type: "EventRejected", key: "key-2", code: "agent_mismatch" }] });
    expect(bench.open.status).toBe("PLANNING");
  });

  it("waits its turn while the session is busy, up to the mailbox's limit", () => {
    const bench = new Bench();
    bench.receive(1);
    for (let n = 2; n <= 1 + LIMITS.maxMailbox; n += 1) expect(bench.receive(n).ok).toBe(true);
    expect(bench.receive(99)).toMatchObject({ ok: false, code: "mailbox_full", events: [] });
    expect(bench.open.mailbox.map((item) => item.key)).toEqual(["key-2", "key-3", "key-4", "key-5", "key-6"]);
  });

  it("is taken from the mailbox in order, once, when the session is free (I3)", () => {
    const bench = new Bench();
    bench.receive(1); bench.receive(2); bench.receive(3);
    expect(bench.takeNext().events).toEqual([]);
    bench.answer();
    expect(bench.effects).toContain("TakeNext");
    const stale = { type: "TakeNext", key: "key-3", prepared: receive(3).prepared, requestedBy: "x", correlationId: "c" } as const;
    expect(bench.ask(stale).events).toEqual([]);
    bench.takeNext();
    expect(bench.types).toEqual(["RunStarted", "ModelCallStarted"]);
    expect(bench.run).toMatchObject({ runId: "run-2", eventRev: 2, requestedBy: "anna" });
  });

  it("expires in the mailbox when its time passes there", () => {
    const bench = new Bench();
    bench.receive(1); bench.receive(2, { expiresAtMs: bench.atMs + 500 });
    bench.later(1000).tick();
    expect(bench.types).toEqual(["RunEnded", "DeadLetterRecorded"]);
    expect(bench.open).toMatchObject({ status: "PLANNING", mailbox: [], recentRuns: [{ key: "key-2", outcome: "expired" }] });
  });

  it("is refused when too many publications wait for the broker", () => {
    const bench = new Bench();
    for (let n = 1; n <= MAX_OUTBOX; n += 1) expect(bench.receive(n, { check: { code: "no" } }).ok).toBe(true);
    expect(bench.receive(99)).toMatchObject({ ok: false, code: "broker_unavailable", events: [] });
    bench.confirm();
    expect(bench.receive(99).ok).toBe(true);
  });
});

describe("an event for a busy session", () => {
  it("with mode reject has its one outcome at once", () => {
    const bench = new Bench();
    bench.receive(1); bench.receive(2, { mode: "reject" });
    expect(bench.types).toEqual(["EventReceived", "EventRejected"]);
    expect(bench.open.recentRuns).toMatchObject([{ key: "key-2", outcome: "rejected", code: "session_busy" }]);
  });

  it("with mode interrupt aborts the model and comes before all others; what was said stays as context", () => {
    const bench = new Bench();
    bench.receive(1); bench.receive(2); bench.receive(3, { mode: "interrupt" });
    expect(bench.types).toEqual(["EventReceived", "ModelCallFailed", "RunEnded"]);
    expect(bench.effects).toEqual(["AbortModel", "Publish", "WakeAt", "TakeNext"].filter((type) => bench.effects.includes(type)));
    expect(bench.open).toMatchObject({ status: "IDLE", mailbox: [{ key: "key-3" }, { key: "key-2" }], recentRuns: [{ outcome: "cancelled", code: "interrupted" }] });
    bench.ask({ type: "RecordModelFailure", runId: "run-1", step: 1, attempt: 1, kind: "aborted", message: "aborted", partialText: "I was about to" });
    expect(bench.types).toEqual(["ModelCostBooked", "PartialAnswerKept"]);
    expect(bench.ask({ type: "RecordModelFailure", runId: "run-1", step: 1, attempt: 1, kind: "aborted", message: "aborted", partialText: "again" }).events).toEqual([]);
  });

  it("with mode interrupt waits for a dispatched call with effects before the run ends (I6)", () => {
    const bench = new Bench();
    bench.receive(1);
    bench.answer([callOf("allow", { effects: "once" }), callOf("allow", { index: 1, effects: "none" }), callOf("ask", { index: 2 })]);
    expect(bench.open.status).toBe("AWAITING_APPROVAL");
    bench.decides("reject");
    bench.receive(2, { mode: "interrupt" });
    expect(bench.types).toEqual(["EventReceived", "ToolResultRecorded", "RunEnding"]);
    expect(bench.open.status).toBe("EXECUTING_TOOL");
    bench.result(0);
    expect(bench.types).toEqual(["ToolResultRecorded", "RunEnded"]);
    expect(bench.open).toMatchObject({ status: "IDLE", recentRuns: [{ outcome: "cancelled" }] });
  });

  it("with mode steer reaches the model at its next step and ends with the run", () => {
    const bench = new Bench();
    bench.receive(1); bench.receive(2, { mode: "steer" });
    expect(bench.types).toEqual(["EventReceived", "MessageSteered"]);
    bench.answer();
    expect(bench.types).toEqual(["ModelAnswered", "ModelCallStarted"]);
    bench.answer();
    expect(bench.types).toEqual(["ModelAnswered", "RunEnded", "RunEnded"]);
    expect(bench.open.recentRuns).toMatchObject([{ key: "key-1", outcome: "completed" }, { key: "key-2", outcome: "completed", code: "steered" }]);
    expect(bench.receive(2)).toMatchObject({ code: "duplicate" });
  });

  it("with mode steer is refused when the run holds as many messages as a mailbox", () => {
    const bench = new Bench();
    bench.receive(1);
    for (let n = 2; n <= 1 + LIMITS.maxMailbox; n += 1) expect(bench.receive(n, { mode: "steer" }).ok).toBe(true);
    expect(bench.receive(99, { mode: "steer" })).toMatchObject({ ok: false, code: "mailbox_full", events: [] });
    expect(bench.run.steered).toHaveLength(LIMITS.maxMailbox);
  });

  it("with mode withdraw takes the open approvals back and tells the model", () => {
    const bench = new Bench();
    bench.receive(1); bench.answer([callOf("ask")]);
    bench.receive(2, { mode: "withdraw" });
    expect(bench.types).toEqual(["EventReceived", "MessageSteered", "ApprovalWithdrawn", "ToolResultRecorded", "ModelCallStarted"]);
    expect(bench.open).toMatchObject({ status: "SUMMARIZING", approvals: [] });
    expect(bench.eventsOf("ToolResultRecorded")).toMatchObject([{ status: "withdrawn" }]);
  });

  it.each(["interrupt", "steer"] as const)("with mode %s waits while a person is asked", (mode) => {
    const bench = new Bench();
    bench.receive(1); bench.answer([callOf("ask")]); bench.receive(2, { mode });
    expect(bench.open).toMatchObject({ status: "AWAITING_APPROVAL", mailbox: [{ key: "key-2" }] });
  });
});

describe("cancel and close", () => {
  const cancel = (key = "c1", runId?: string) => ({ type: "Cancel", key, reason: "changed my mind", ...(runId === undefined ? {} : { runId }) }) as const;

  it("cancels the open run: approvals withdrawn, each call with its one result", () => {
    const bench = new Bench();
    bench.receive(1); bench.answer([callOf("ask"), callOf("ask", { index: 1 })]);
    bench.ask(cancel());
    expect(bench.types).toEqual(["CancelRequested", "ApprovalWithdrawn", "ApprovalWithdrawn", "ToolResultRecorded", "ToolResultRecorded", "RunEnded"]);
    expect(bench.open).toMatchObject({ status: "IDLE", approvals: [], recentRuns: [{ outcome: "cancelled", code: "cancelled" }] });
    expect(bench.ask(cancel())).toMatchObject({ ok: false, code: "duplicate", events: [] });
  });

  it("cancels an event that waits in the mailbox by its run id", () => {
    const bench = new Bench();
    bench.receive(1); bench.receive(2);
    bench.ask(cancel("c1", "run-2"));
    expect(bench.open).toMatchObject({ status: "PLANNING", mailbox: [], recentRuns: [{ key: "key-2", outcome: "cancelled" }] });
  });

  it("records nothing for a run that is not there", () => {
    const bench = new Bench();
    bench.receive(1);
    expect(bench.ask(cancel("c1", "run-9"))).toMatchObject({ ok: false, code: "not_found", events: [] });
  });

  it("does not lose an effect: an unknown call of a cancelled run stays blocked and goes to the dead letters", () => {
    const bench = new Bench();
    bench.receive(1); bench.answer([callOf("allow")]);
    bench.ask(cancel());
    expect(bench.types).toEqual(["CancelRequested", "RunEnding"]);
    bench.later(200_000).tick();
    expect(bench.types.slice(0, 4)).toEqual(["ToolOutcomeUnknown", "DeadLetterRecorded", "ToolResultRecorded", "RunEnded"]);
    expect(bench.open).toMatchObject({ status: "IDLE", unknownCalls: [{ tool: "refund" }], recentRuns: [{ outcome: "cancelled" }] });
  });

  it("closes: what waits is rejected, later events are recorded as refused", () => {
    const bench = new Bench();
    bench.receive(1); bench.receive(2);
    bench.ask({ type: "Close", key: "x", reason: "done with it" });
    expect(bench.open).toMatchObject({ status: "CLOSED", reason: "done with it", mailbox: [] });
    expect(bench.receive(3)).toMatchObject({ ok: false, code: "session_closed" });
    expect(bench.types).toEqual(["EventReceived", "EventRejected"]);
    expect(bench.open.recentRuns.map((run) => run.key)).toEqual(["key-2", "key-1", "key-3"]);
  });

  it("closes only when a dispatched call with effects is settled", () => {
    const bench = new Bench();
    bench.receive(1); bench.answer([callOf("allow")]);
    bench.ask({ type: "Close", key: "x", reason: "done" });
    expect(bench.open.status).toBe("EXECUTING_TOOL");
    bench.result();
    expect(bench.open.status).toBe("CLOSED");
  });
});
