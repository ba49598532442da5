/** A quarantined session takes nothing and forgets nothing; an operator releases or closes it. */
import { beforeEach, describe, expect, it } from "vitest";
import { nextDueAtMs, isBusy } from "../../../src/session/core/rest.js";
import { summaryOf } from "../../../src/session/core/summary.js";
import { Bench, callOf, prepared, receive } from "./support.js";

let bench: Bench;
beforeEach(() => {
  bench = new Bench();
  bench.receive(1);
  bench.answer([callOf("ask"), callOf("allow", { index: 1 })]);
  bench.ask({ type: "Heal", found: [], quarantine: { reason: "journal_gap", message: "journal entry 1 of 2 is missing" }, reserveUsd: 0.02 });
});

describe("a quarantined session", () => {
  it("says why, to people and lists, and asks for no guard and no look", () => {
    expect(bench.open.quarantine).toEqual({ reason: "journal_gap", message: "journal entry 1 of 2 is missing", sinceMs: bench.atMs });
    expect(summaryOf(bench.open)).toMatchObject({ quarantine: { reason: "journal_gap" }, waitingFor: expect.stringContaining("an operator") as string });
    expect([isBusy(bench.state), nextDueAtMs(bench.state)]).toEqual([false, undefined]);
    bench.later(400_000_000).tick();
    expect(bench.types).toEqual(["GuardReleased"]);
  });

  it("takes no event, no result and no answer, and changes nothing for them", () => {
    const before = bench.state;
    const call = bench.call(1).callId;
    for (const refused of [
      bench.receive(2), bench.ask({ type: "TakeNext", key: "key-2", prepared: prepared(), requestedBy: "x", correlationId: "c" }), bench.ask({ type: "RecordClaim", callId: call, try: 1, worker: "w" }),
      bench.ask({ type: "RecordToolResult", callId: call, try: 1, outcome: "succeeded", content: { text: "ok", truncated: false }, reserveUsd: 0 }),
      bench.ask({ type: "Cancel", key: "c1", reason: "stop" }),
    ]) expect(refused).toMatchObject({ ok: false, code: "session_quarantined", events: [] });
    expect(bench.receive(1)).toMatchObject({ ok: false, code: "duplicate" });
    expect(bench.state).toEqual(before);
  });

  it("refuses a decision, and records that it did (I10)", () => {
    expect(bench.decides("approve")).toMatchObject({ ok: false, code: "session_quarantined" });
    expect(bench.eventsOf("DecisionRefused")).toMatchObject([{ code: "session_quarantined" }]);
    expect(bench.open.approvals).toHaveLength(1);
  });

  it("goes on where it was after its release: the same decision counts then, the tool's result too", () => {
    bench.ask({ type: "Release", key: "r1", reason: "restored" });
    expect(bench.open).toMatchObject({ status: "AWAITING_APPROVAL", checkedFromRev: bench.state.rev });
    expect(bench.open.quarantine).toBeUndefined();
    expect(bench.open.guard.armed).toBe(true);
    bench.result(1);
    bench.decides("reject");
    bench.answer();
    expect(bench.eventsOf("RunEnded")).toMatchObject([{ outcome: "completed" }]);
    expect(bench.ask(receive(2)).ok).toBe(true);
  });

  it("can be closed at once; what may have had an effect is waited for", () => {
    bench.ask({ type: "Close", key: "c1", reason: "beyond repair" });
    expect(bench.types.slice(0, 2)).toEqual(["SessionReleased", "SessionClosed"]);
    expect(bench.run.ending).toMatchObject({ outcome: "cancelled" });
    bench.result(1);
    expect(bench.open.status).toBe("CLOSED");
  });

  it("a release of a session that is not quarantined does nothing", () => {
    bench.ask({ type: "Release", key: "r1", reason: "x" });
    expect(bench.ask({ type: "Release", key: "r2", reason: "x" })).toEqual({ ok: true, events: [] });
  });
});
