/** Model calls beside the actor: deltas, aborts, shutdown, and an outcome that is kept trying until it is recorded (I2, I11). */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { SESSION_CANCEL } from "../../../src/contracts/messages.js";
import { ModelError } from "../../../src/model/model.js";
import { ACTOR, command, fakeTime, keyOf, pass, prompt, quiet, until, World, type Host } from "./support.js";

let world: World;
let host: Host;
beforeEach(() => { fakeTime(); world = new World(); host = world.host(); });
afterEach(() => { vi.useRealTimers(); });

const ask = async (id = "a", about: Parameters<typeof prompt>[2] = {}): Promise<void> => {
  const calls = world.hand.calls.length;
  expect(await host.take("tasks", prompt(id, id, { agent: "hand", ...about }))).toBe("SUCCESS");
  await until("the model is called", () => world.hand.calls.length === calls + 1);
};

describe("deltas", () => {
  it("go out together, at most one publish in 60 ms, numbered, and the rest at the end", async () => {
    await ask();
    const call = world.hand.last;
    for (const delta of ["Once ", "upon ", "a "]) call.say(delta);
    await pass(59);
    expect(world.bus.deltas).toEqual([]);
    await pass(1);
    expect(world.bus.deltas.map((delta) => delta.text)).toEqual(["Once upon a "]);
    call.say("time");
    await pass(60);
    call.say(".");
    call.answer({ text: "Once upon a time." });
    await until("the run ends", () => world.bus.ended.length === 1);
    expect(world.bus.deltas.map((delta) => [delta.index, delta.text])).toEqual([[0, "Once upon a "], [1, "time"], [2, "."]]);
    expect(world.bus.deltas.every((delta) => delta.step === 1 && delta.attempt === 1 && delta.actorId === ACTOR)).toBe(true);
    await pass(1_000);
    expect(world.bus.deltas).toHaveLength(3);
  });

  it("may be lost without harm", async () => {
    world.bus.down.add("live");
    await ask();
    world.hand.last.say("hello");
    await pass(100);
    world.hand.last.answer({ text: "hello" });
    await until("the run ends", () => world.bus.ended.length === 1);
    expect(world.bus.ended[0]).toMatchObject({ outcome: "completed", text: "hello" });
  });
});

describe("an abort", () => {
  it("comes with a cancel: the call ends, what was said stays, its cost is booked once", async () => {
    await ask();
    const call = world.hand.last;
    call.say("half an ans");
    expect(await host.take("tasks", command(SESSION_CANCEL, "c", { reason: "stop" }))).toBe("SUCCESS");
    expect(call.request.signal.aborted).toBe(true);
    await pass(1_000);
    expect(world.events("RunEnded")).toMatchObject([{ outcome: "cancelled" }]);
    expect(world.events("PartialAnswerKept")).toMatchObject([{ step: 1, text: "half an ans" }]);
    expect(world.events("ModelCostBooked")).toHaveLength(1);
    world.checkFold();
  });

  it("comes with an interrupt: the newer message is answered, by a call of its own", async () => {
    await ask();
    const first = world.hand.last;
    first.say("half");
    await ask("b", { busymode: "interrupt" });
    expect(first.request.signal.aborted).toBe(true);
    expect(world.hand.last.request.signal.aborted).toBe(false);
    expect(world.hand.last.request.messages).toEqual([{ role: "user", text: "a" }, { role: "assistant", text: "half", calls: [] }, { role: "user", text: "b" }]);
    world.hand.last.answer({ text: "to b" });
    await until("both end", () => world.bus.ended.length === 2);
    expect(world.events("RunEnded").map((event) => [event.key, event.outcome])).toEqual([[keyOf("a"), "cancelled"], [keyOf("b"), "completed"]]);
  });

  it("that the provider does not heed holds the next message up for a moment, half a second at most", async () => {
    world.hand.deaf = true;
    await ask();
    expect(await host.take("tasks", prompt("b", "b", { agent: "hand", busymode: "interrupt" }))).toBe("SUCCESS");
    await pass(250);
    expect(world.hand.calls).toHaveLength(1);
    await pass(250);
    await until("the model is called", () => world.hand.calls.length === 2);
    world.hand.calls[0]?.answer({ text: "too late", costUsd: 0.25 });
    world.hand.last.answer({ text: "to b" });
    await until("both end", () => world.bus.ended.length === 2);
    expect(world.events("ModelCostBooked")).toMatchObject([{ attempt: 1, costUsd: 0.25 }]);
    expect(world.events("RunEnded").at(-1)).toMatchObject({ outcome: "completed", text: "to b" });
    world.checkFold();
  });

  it("that the provider does not heed changes nothing: its late answer only books its cost", async () => {
    world.hand.deaf = true;
    await ask();
    await host.take("tasks", command(SESSION_CANCEL, "c", {}));
    world.hand.last.answer({ text: "too late", costUsd: 0.25 });
    await pass(1_000);
    expect(world.events("ModelCostBooked")).toMatchObject([{ costUsd: 0.25 }]);
    expect(world.events("ModelAnswered")).toEqual([]);
    expect(world.bus.ended).toMatchObject([{ outcome: "cancelled" }]);
  });

  it("by the end of this process says nothing: the guard starts the call again on a host that lives", async () => {
    await ask();
    const first = world.hand.last;
    first.say("half");
    void host.service.stop();
    expect(first.request.signal.aborted).toBe(true);
    await pass(1_000);
    expect(world.events("ModelCallFailed")).toEqual([]);
    expect(world.state.status).toBe("PLANNING");
    const other = world.host("host-2");
    await world.reminders.fire(other);
    expect(world.hand.calls).toHaveLength(1);
    world.dead.add("host-1");
    await world.reminders.fire(other);
    await until("the call is made again", () => world.hand.calls.length === 2);
    world.hand.last.answer({ text: "whole" });
    await until("the run ends", () => world.bus.ended.length === 1);
    expect(world.events("ModelCallFailed")).toMatchObject([{ kind: "lost", attempt: 1 }]);
    expect(world.events("ModelAnswered")).toMatchObject([{ attempt: 2, text: "whole" }]);
    world.checkFold();
  });

  it("a call that runs here is not taken for lost, however long it takes; one that this host lost is started again", async () => {
    await ask();
    await pass(120_000);
    await world.reminders.fire(host);
    expect(world.events("ModelCallFailed")).toEqual([]);
    // The same host name, another process: nothing runs here.
    const reborn = world.host("host-1");
    await world.reminders.fire(reborn);
    await until("the call is made again", () => world.hand.calls.length === 2);
    expect(world.events("ModelCallFailed")).toMatchObject([{ kind: "lost" }]);
  });

  it("three lost calls ask a person instead of looping", async () => {
    await ask();
    for (let n = 0; n < 3; n += 1) {
      await pass(6_000);
      await world.reminders.fire(world.host("host-1"));
    }
    expect(world.state.status).toBe("ESCALATED");
    expect(world.bus.pending).toMatchObject([{ record: { kind: "escalation", escalation: "model_lost" } }]);
  });
});

describe("an outcome", () => {
  it("is recorded even when the store fails twice: it is worth money", async () => {
    await ask();
    world.store.failNext("before", "before");
    world.hand.last.answer({ text: "dear" });
    await quiet();
    expect(world.events("ModelAnswered")).toEqual([]);
    await pass(100);
    await pass(500);
    await until("the run ends", () => world.bus.ended.length === 1);
    expect(world.events("ModelAnswered")).toHaveLength(1);
    expect(world.hand.calls).toHaveLength(1);
  });

  it("is recorded once when the reply of its commit is lost", async () => {
    await ask();
    world.store.failNext("after");
    world.hand.last.answer();
    await pass(1_000);
    expect(world.events("ModelAnswered")).toHaveLength(1);
    expect(world.bus.ended).toHaveLength(1);
    world.checkFold();
  });

  it("that is a transient failure is tried again when it is due, and the answer of that try counts", async () => {
    await ask();
    world.hand.last.fail(new ModelError("transient", "overloaded", { retryAfterMs: 2_000 }));
    await pass(1_900);
    expect(world.hand.calls).toHaveLength(1);
    await pass(200);
    await until("the second attempt", () => world.hand.calls.length === 2);
    expect(world.hand.last.request.context).toMatchObject({ step: 1, attempt: 2 });
    world.hand.last.answer({ text: "now" });
    await until("the run ends", () => world.bus.ended.length === 1);
    expect(world.bus.ended[0]).toMatchObject({ outcome: "completed", text: "now" });
  });

  it("that is a permanent failure ends the run, and the dead letters have its event", async () => {
    await ask();
    world.hand.last.fail(new ModelError("permanent", "no such model"));
    await until("the letter is out", () => world.bus.letters.length === 1);
    expect(world.bus.ended).toMatchObject([{ outcome: "failed", code: "model_failed" }]);
    expect(world.bus.letters[0]).toMatchObject({ reason: "model_failed", kind: "event", message: "no such model" });
  });

  it("that is no ModelError at all is a call that was not made: it is tried again, and nothing crashes", async () => {
    await ask();
    world.hand.last.fail(new TypeError("undefined is not a function"));
    await pass(100);
    expect(world.events("ModelCallFailed")).toMatchObject([{ kind: "not_sent", message: "the call could not be made: undefined is not a function" }]);
  });

  it("keeps the provider's own state of the answer and hands it back unchanged with the next call", async () => {
    await ask();
    const carry = JSON.stringify({ thinking: "…", signature: "sig" });
    world.hand.last.answer({ text: "I look.", carry, stop: "tool_use", calls: [{ id: "p1", name: "nothing-like-it", args: "{}" }] });
    await until("the model is called again", () => world.hand.calls.length === 2);
    expect(world.events("ModelAnswered")[0]?.carry).toBe(carry);
    expect(world.hand.last.request.messages).toEqual(expect.arrayContaining([expect.objectContaining({ role: "assistant", text: "I look.", carry })]));
  });
});
