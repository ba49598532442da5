/** An event that no session takes has one outcome, the dead letter, and keeps it (I1, I2): whatever is repeated, raced or lost. */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { serializeEnvelope } from "../../../src/contracts/cloudevent.js";
import { eventKeyOf } from "../../../src/contracts/ids.js";
import { SESSION_CANCEL, SESSION_CLOSE, SESSION_NUDGE, SESSION_REDRIVE } from "../../../src/contracts/messages.js";
import { Problem } from "../../../src/contracts/problems.js";
import { ACTOR, command, decisionOn, fakeTime, keyOf, pass, prompt, resultOf, SESSION, until, World, type Host } from "./support.js";

let world: World;
let host: Host;
beforeEach(() => { fakeTime(); world = new World(); host = world.host(); });
afterEach(() => { vi.useRealTimers(); });

const forHand = (id: string, text = id) => prompt(id, text, { agent: "hand", expirytime: "2026-02-01T00:00:00Z" });
/** The session works, and two events wait: its limit. */
async function flooded(): Promise<void> {
  for (const id of ["running", "waiting-1", "waiting-2"]) expect(await host.take("tasks", forHand(id))).toBe("SUCCESS");
  await until("the model is called", () => world.hand.calls.length === 1);
}
async function drained(): Promise<void> {
  for (let call = 0; call < 3; call += 1) {
    await until("a model call", () => world.hand.calls.length > call);
    world.hand.calls[call]!.answer();
    await pass(10);
  }
  expect(world.state.status).toBe("IDLE");
}
const outcomeOf = (key: string) => host.service.reads.outcome(ACTOR, key);

describe("a refused event", () => {
  it("costs no commit of its session: one row of the ledger is written", async () => {
    await flooded();
    const commits = world.store.count("commit");
    for (let n = 0; n < 20; n += 1) expect(await host.take("tasks", forHand(`surplus-${String(n)}`))).toBe("SUCCESS");
    expect(world.store.count("commit")).toBe(commits);
    expect(world.store.count("refuse")).toBe(20);
    expect(new Set(world.bus.letters.map((letter) => letter.deadLetterId)).size).toBe(20);
  });

  it("stays refused when it comes again and there is room by now: one letter, no run", async () => {
    await flooded();
    await host.take("tasks", forHand("surplus"));
    const [letter] = world.bus.letters;
    expect(await outcomeOf(keyOf("surplus"))).toEqual({ state: "ended", outcome: "dead_lettered", code: "mailbox_full", deadLetterId: letter!.deadLetterId });
    await drained();
    expect(await host.take("tasks", forHand("surplus"))).toBe("SUCCESS");
    await pass(1_000);
    expect(world.events("EventReceived")).toHaveLength(3);
    expect(new Set(world.bus.letters.map((one) => one.deadLetterId))).toEqual(new Set([letter!.deadLetterId]));
    expect(world.bus.receipts.filter((receipt) => receipt.key === keyOf("surplus"))).toMatchObject([1, 2].map(() => ({ verdict: "mailbox_full", deadLetterId: letter!.deadLetterId })));
  });

  it("is said once the broker takes it: a letter or receipt that could not go out is repeated, though there is room by now", async () => {
    await flooded();
    world.bus.down.add("deadLetters");
    expect(await host.take("tasks", forHand("surplus"))).toBe("RETRY");
    await drained();
    world.bus.down.clear();
    world.bus.down.add("responses");
    expect(await host.take("tasks", forHand("surplus"))).toBe("RETRY");
    world.bus.down.clear();
    expect(await host.take("tasks", forHand("surplus"))).toBe("SUCCESS");
    expect(world.events("EventReceived")).toHaveLength(3);
    expect(new Set(world.bus.letters.map((one) => one.deadLetterId)).size).toBe(1);
    expect(world.bus.receipts.at(-1)).toMatchObject({ verdict: "mailbox_full", deadLetterId: world.bus.letters[0]!.deadLetterId });
  });

  it("is never one that was accepted: too old by the time it comes again, it is a duplicate", async () => {
    const event = prompt("a", "a", { time: "2026-01-01T00:00:00Z" });
    await host.take("tasks", event);
    await pass(31 * 24 * 3_600_000);
    expect(await host.take("tasks", event)).toBe("SUCCESS");
    expect(world.bus.letters).toEqual([]);
    expect(world.bus.receipts.map((receipt) => receipt.verdict)).toEqual(["accepted", "duplicate"]);
  });

  it.each([
    ["too old", prompt("x", "x", { time: "2025-01-01T00:00:00Z" }), "too_old"],
    ["for an agent that nobody knows", prompt("x", "x", { agent: "ecko" }), "agent_unknown"],
  ])("%s, has its outcome where its sender looks, in a session that was never opened", async (_name, event, code) => {
    await host.take("tasks", event);
    expect(await outcomeOf(keyOf("x"))).toMatchObject({ state: "ended", outcome: "dead_lettered", code, deadLetterId: world.bus.letters[0]?.deadLetterId });
    expect(world.bus.receipts).toMatchObject([{ verdict: code, deadLetterId: world.bus.letters[0]?.deadLetterId }]);
    expect(world.store.journalOf(ACTOR)).toEqual([]);
  });

  it("is refused by all hosts or accepted by one, never both, when they disagree at the same time", async () => {
    let both = 0;
    await fc.assert(fc.asyncProperty(fc.array(fc.constantFrom("refuse", "accept"), { minLength: 2, maxLength: 6 }), async (ways) => {
      const shared = new World();
      const knowing = shared.host("knows-the-agent");
      const other = new World();
      Object.assign(other, { store: shared.store, bus: shared.bus, reminders: shared.reminders });
      (other.catalog.agents as Map<string, unknown>).delete("strict");
      const ignorant = other.host("does-not");
      const event = prompt("x", "x", { agent: "strict" });
      expect(new Set(await Promise.all(ways.map((way) => (way === "accept" ? knowing : ignorant).take("tasks", event))))).toEqual(new Set(["SUCCESS"]));
      const accepted = shared.events("EventReceived").length;
      const letters = new Set(shared.bus.letters.map((letter) => letter.deadLetterId)).size;
      expect(accepted + letters).toBe(1);
      if (new Set(ways).size === 2) both += 1;
    }), { numRuns: 60 });
    expect(both).toBeGreaterThan(10);
  });
});

describe("commands", () => {
  it("that found nothing to stop do not stop what comes later, however often they are repeated", async () => {
    await host.take("tasks", prompt("a", "a"));
    await pass(1_000);
    await host.take("tasks", command(SESSION_CANCEL, "c", { reason: "stop" }));
    await host.take("tasks", forHand("long"));
    const open = prompt("b", "b", { agent: "echo" });
    await host.take("tasks", open);
    await host.take("tasks", command(SESSION_CANCEL, "c", { reason: "stop" }));
    await pass(1_000);
    expect(world.events("CancelRequested")).toEqual([]);
    expect(world.bus.receipts.filter((receipt) => receipt.key === eventKeyOf("console", "c")).map((receipt) => receipt.verdict)).toEqual(["not_found", "not_found"]);
    expect(await outcomeOf(eventKeyOf("console", "c"))).toMatchObject({ state: "ended", outcome: "rejected", code: "not_found" });
  });

  it("that stopped something have ended", async () => {
    await flooded();
    await host.take("tasks", command(SESSION_CANCEL, "c", { reason: "stop" }));
    expect(await outcomeOf(eventKeyOf("console", "c"))).toEqual({ state: "ended", outcome: "completed" });
  });
});

describe("what is for a session that is not there", () => {
  it.each([
    ["a cancel", "tasks", () => command(SESSION_CANCEL, "c", {}), "event"],
    ["a close", "tasks", () => command(SESSION_CLOSE, "c", {}), "event"],
    ["a tool result", "toolResults", () => resultOf({ tenant: "default", sessionId: SESSION, actorId: ACTOR, agent: "a", runId: "r", callId: "c", tool: "refund", args: "{}", argsDigest: "", try: 1, publication: 1, idempotencyKey: "", deadlineAtMs: 1, grant: "" }), "tool_result"],
    ["a decision", "approvalsResolved", () => decisionOn({ tenant: "default", sessionId: SESSION, actorId: ACTOR, agent: "a", record: { approvalId: "apr_1", version: 1, argsDigest: "d" } as never, args: "{}", rationale: "", trigger: "" }, "d1"), "decision"],
  ] as const)("%s is recorded once", async (_name, channel, make, kind) => {
    const text = serializeEnvelope(make());
    for (let n = 0; n < 3; n += 1) expect(await host.take(channel, text)).toBe("SUCCESS");
    expect(world.bus.letters[0]).toMatchObject({ kind, reason: "session_not_found", payload: text, tries: 1 });
    expect(new Set(world.bus.letters.map((letter) => letter.deadLetterId)).size).toBe(1);
    expect(world.store.journalOf(ACTOR)).toEqual([]);
  });

  it("a nudge is nothing", async () => {
    expect(await host.take("tasks", command(SESSION_NUDGE, "n", {}))).toBe("SUCCESS");
    expect(world.bus.sent).toEqual([]);
  });
});

describe("a delivery that fails for a reason that nobody foresaw", () => {
  it("is tried five times, then it is a dead letter with the count, and what comes behind it goes on", async () => {
    const bug = vi.spyOn(host.service, "run").mockRejectedValue(new TypeError("cannot read properties of undefined"));
    const text = serializeEnvelope(prompt("odd"));
    const answers: string[] = [];
    for (let n = 0; n < 5; n += 1) answers.push(await host.take("tasks", text));
    bug.mockRestore();
    expect(answers).toEqual(["RETRY", "RETRY", "RETRY", "RETRY", "SUCCESS"]);
    expect(world.bus.letters[0]).toMatchObject({ kind: "event", reason: "internal", tries: 5, payload: text });
    expect(world.bus.letters[0]?.message).toContain("cannot read properties of undefined");
    expect(await outcomeOf(keyOf("odd"))).toMatchObject({ outcome: "dead_lettered", code: "internal" });
    expect(await host.take("tasks", prompt("behind"))).toBe("SUCCESS");
    expect(await host.take("tasks", text)).toBe("SUCCESS");
    expect(world.events("EventReceived").map((event) => event.id)).toEqual(["behind"]);
  });

  it("does not count an outage, however long", async () => {
    world.store.down = true;
    for (let n = 0; n < 50; n += 1) expect(await host.take("tasks", prompt("good"))).toBe("RETRY");
    vi.spyOn(host.service, "run").mockRejectedValueOnce(new Problem("broker_unavailable", "x")).mockRejectedValueOnce(new Problem("actor_unavailable", "x"));
    world.store.down = false;
    for (let n = 0; n < 2; n += 1) expect(await host.take("tasks", prompt("good"))).toBe("RETRY");
    expect(await host.take("tasks", prompt("good"))).toBe("SUCCESS");
    expect(world.bus.letters).toEqual([]);
    expect(world.events("EventReceived")).toHaveLength(1);
  });
});

describe("a redrive", () => {
  const redrive = (id: string, data: object) => command(SESSION_REDRIVE, id, { redrive: 1, reason: "again", ...data });

  it("that meets a full mailbox is a letter of its own, whose redrive runs the event", async () => {
    await flooded();
    await host.take("tasks", forHand("surplus"));
    const [first] = world.bus.letters;
    await host.take("tasks", redrive("r1", { deadLetterId: first!.deadLetterId, event: first!.payload }));
    const second = world.bus.letters.at(-1)!;
    expect(second.deadLetterId).not.toBe(first!.deadLetterId);
    expect(second).toMatchObject({ kind: "event", reason: "mailbox_full", envelope: { id: "surplus#redrive-1", causationid: first!.deadLetterId } });
    await drained();
    await host.take("tasks", redrive("r2", { deadLetterId: second.deadLetterId, event: second.payload }));
    await until("it runs", () => world.hand.calls.length === 4);
    expect(world.events("EventReceived").at(-1)).toMatchObject({ id: "surplus#redrive-1#redrive-1", causationId: second.deadLetterId });
  });

  it("of a tool result delivers it as it was signed; of a forged one it is a new letter", async () => {
    await host.take("tasks", prompt("look", "look up A1", { agent: "clerk" }));
    await until("a tool request is out", () => world.bus.requests.length === 1);
    const result = resultOf(world.bus.requests[0]!);
    for (const id of ["r1", "r1"]) expect(await host.take("tasks", redrive(id, { deadLetterId: "dl_1", as: "tool_result", event: serializeEnvelope(result) }))).toBe("SUCCESS");
    await pass(1_000);
    expect(world.events("ToolResultRecorded")).toMatchObject([{ status: "succeeded" }]);
    const forged = serializeEnvelope(resultOf(world.bus.requests[0]!, { proof: "forged" }));
    await host.take("toolResults", forged);
    await host.take("tasks", redrive("r2", { deadLetterId: "dl_2", as: "tool_result", event: forged }));
    expect(world.bus.letters.map((letter) => [letter.kind, letter.reason, letter.payload])).toEqual([1, 2].map(() => ["tool_result", "bad_signature", forged]));
    expect(new Set(world.bus.letters.map((letter) => letter.deadLetterId)).size).toBe(2);
  });

  it("of a decision is judged like any other", async () => {
    await host.take("tasks", prompt("refund", "refund A1", { agent: "clerk" }));
    await until("an approval is pending", () => world.bus.pending.length === 1);
    await host.take("tasks", redrive("r1", { deadLetterId: "dl_1", as: "decision", event: serializeEnvelope(decisionOn(world.bus.pending[0]!, "d1")) }));
    await pass(1_000);
    expect(world.events("DecisionRecorded")).toMatchObject([{ decisionId: "d1", kind: "approve" }]);
  });

  it("of a cancel cancels, and of what passes between Docket's own apps is refused", async () => {
    await flooded();
    await host.take("tasks", redrive("r1", { deadLetterId: "dl_1", event: serializeEnvelope(command(SESSION_CANCEL, "c", { reason: "stop" })) }));
    expect(world.events("CancelRequested")).toHaveLength(1);
    await host.take("tasks", redrive("r2", { deadLetterId: "dl_2", event: serializeEnvelope(redrive("r0", { deadLetterId: "dl_0", event: "{}" })) }));
    expect(world.bus.letters.at(-1)).toMatchObject({ reason: "unknown_type" });
  });
});
