/** The guard's reminders: there before the commit that relies on them, patient with a scheduler that hangs, gone when stale. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { JOURNAL_APPENDED, JournalBatch } from "../../../src/contracts/journal.js";
import { SESSION_NUDGE } from "../../../src/contracts/messages.js";
import { createLogger } from "../../../src/platform/log.js";
import { guardIsOver } from "../../../src/session/core/rest.js";
import { NEW_SESSION, type SessionState } from "../../../src/session/core/state.js";
import { guardOf, Guards } from "../../../src/session/host/guard.js";
import { ACTOR, command, decisionOn, FakeReminders, fakeTime, pass, prompt, quiet, REMOVED_BY_THEN_MS, until, World, type Host } from "./support.js";

const logger = createLogger("test", "silent");
const PLAN = { generation: 3, dueMs: 5_000, periodMs: 5_000 };

const tickOf = (generation: number): string => JSON.stringify({ purpose: "guard", generation, name: `guard-${String(generation)}` });

beforeEach(fakeTime);
afterEach(() => { vi.useRealTimers(); });

describe("guards", () => {
  let reminders: FakeReminders;
  let guards: Guards;
  /** What the store says of a guard that was registered late. */
  let isOver: (actorId: string, generation: number) => Promise<boolean>;
  beforeEach(() => {
    reminders = new FakeReminders();
    isOver = () => Promise.resolve(false);
    guards = new Guards(reminders, logger, (actorId, generation) => isOver(actorId, generation));
  });

  /** Whether a promise has resolved by now. */
  async function isDone(promise: Promise<unknown>): Promise<boolean> {
    let done = false;
    void promise.then(() => { done = true; });
    await quiet();
    return done;
  }

  it("are armed when the scheduler has them, under a name and with data that only their own generation has", async () => {
    await guards.arm(ACTOR, PLAN);
    const [registered] = [...reminders.registered.values()];
    expect(registered).toMatchObject({ actorId: ACTOR, name: "guard-3", dueMs: 5_000, periodMs: 5_000 });
    expect(guardOf(registered!.data)).toMatchObject({ generation: 3, name: "guard-3" });
  });

  it("wait one second for a scheduler that hangs, and not longer", async () => {
    reminders.hanging = true;
    const armed = guards.arm(ACTOR, PLAN);
    await pass(999);
    expect(await isDone(armed)).toBe(false);
    await pass(1);
    expect(await isDone(armed)).toBe(true);
  });

  it("are registered beside the turn as soon as a scheduler that refused takes them", async () => {
    reminders.failing = true;
    const armed = guards.arm(ACTOR, PLAN);
    await pass(1_000);
    expect(await isDone(armed)).toBe(true);
    await pass(3_000);
    expect(reminders.names).toEqual([]);
    reminders.failing = false;
    await pass(2_000);
    expect(reminders.names).toEqual(["guard-3"]);
    const tries = reminders.history.length;
    await pass(60_000);
    expect(reminders.history).toHaveLength(tries);
  });

  it("are not registered late where a newer generation is wanted, or the guard was released meanwhile", async () => {
    reminders.failing = true;
    void guards.arm(ACTOR, PLAN);
    await pass(100);
    void guards.arm(ACTOR, { ...PLAN, generation: 4 });
    void guards.arm("other", PLAN);
    await pass(100);
    guards.release("other", 3);
    reminders.failing = false;
    await pass(10_000);
    expect(reminders.names).toEqual(["guard-4"]);
  });

  // A host that stood still beside a scheduler that was away: chaos, seed 2412, `freeze:host`. The reminder was due an hour later.
  it.each([
    ["that another host has released meanwhile is removed", () => Promise.resolve(true), []],
    ["that a commit relies on stays", () => Promise.resolve(false), ["guard-3"]],
    ["of which the store says nothing is left to its next tick", () => Promise.reject(new Error("the store is away")), ["guard-3"]],
  ])("registered late, one %s", async (_what, answer, left) => {
    isOver = answer;
    reminders.failing = true;
    void guards.arm(ACTOR, { ...PLAN, dueMs: 3_600_000 });
    await pass(3_000);
    reminders.failing = false;
    // In small steps: the scheduler answers at once.
    for (let step = 0; step < 15 && reminders.names.length === 0; step += 1) await pass(100);
    expect(reminders.names).toEqual(["guard-3"]);
    await pass(REMOVED_BY_THEN_MS);
    expect(reminders.names).toEqual(left);
  });

  it("that were registered by a host which then stood still, and were released by another one, are removed", async () => {
    isOver = (actorId, generation) => Promise.resolve(actorId === ACTOR && generation === 3);
    let answer = (): void => undefined;
    reminders.set = async (actorId, name, options) => {
      await new Promise<void>((resolve) => { answer = resolve; });
      reminders.registered.set(`${actorId}/${name}`, { actorId, name, ...options });
    };
    void guards.arm(ACTOR, PLAN);
    await quiet();
    vi.setSystemTime(Date.now() + 26_000); // its timers have not run meanwhile
    answer();
    await quiet();
    await pass(REMOVED_BY_THEN_MS);
    expect(reminders.names).toEqual([]);
  });

  it("registered in time cost no look into the store", async () => {
    let looks = 0;
    isOver = () => { looks += 1; return Promise.resolve(true); };
    await guards.arm(ACTOR, PLAN);
    await pass(REMOVED_BY_THEN_MS);
    expect([looks, reminders.names]).toEqual([0, ["guard-3"]]);
  });

  it("released while they are being registered do not stay", async () => {
    const answers: (() => void)[] = [];
    reminders.set = async (actorId, name, options) => {
      await new Promise<void>((resolve) => { answers.push(resolve); });
      reminders.registered.set(`${actorId}/${name}`, { actorId, name, ...options });
    };
    const armed = guards.arm(ACTOR, PLAN);
    await quiet();
    guards.release(ACTOR, PLAN.generation);
    await pass(REMOVED_BY_THEN_MS);
    for (const answer of answers) answer();
    await armed;
    await pass(REMOVED_BY_THEN_MS);
    expect(reminders.names).toEqual([]);
  });

  it("are tried no more after a stop", async () => {
    reminders.failing = true;
    void guards.arm(ACTOR, PLAN);
    await pass(100);
    guards.stop();
    const tries = reminders.history.length;
    await pass(60_000);
    expect(reminders.history).toHaveLength(tries);
  });

  it("are released beside the turn, and a release that fails harms nobody", async () => {
    await guards.arm(ACTOR, PLAN);
    reminders.failing = true;
    guards.release(ACTOR, 3);
    await pass(REMOVED_BY_THEN_MS);
    expect(reminders.names).toEqual(["guard-3"]);
    reminders.failing = false;
    guards.release(ACTOR, 3);
    await pass(REMOVED_BY_THEN_MS);
    expect(reminders.names).toEqual([]);
  });

  it("are removed after their last tick, never between two", async () => {
    await guards.arm(ACTOR, PLAN);
    for (let tick = 0; tick < 5; tick += 1) {
      guards.release(ACTOR, 3);
      await pass(2_000);
      expect(reminders.names).toEqual(["guard-3"]);
    }
    await pass(REMOVED_BY_THEN_MS - 2_000);
    expect(reminders.history).toEqual(["set guard-3", "remove guard-3"]);
  });

  it("are not removed by a host that has just stood still: it waits for the ticks that it missed", async () => {
    await guards.arm(ACTOR, PLAN);
    guards.release(ACTOR, 3);
    vi.setSystemTime(Date.now() + 26_000); // its timers have not run meanwhile
    await pass(REMOVED_BY_THEN_MS);
    guards.release(ACTOR, 3); // a tick that was missed
    await pass(2_000);
    expect(reminders.names).toEqual(["guard-3"]);
    await pass(REMOVED_BY_THEN_MS - 2_000);
    expect(reminders.history).toEqual(["set guard-3", "remove guard-3"]);
  });

  it("are due at whole seconds, and removed half a second after one, whenever they were found released", async () => {
    const removedAtMs: number[] = [];
    reminders.remove = () => { removedAtMs.push(Date.now() % 1000); return Promise.resolve(); };
    for (let n = 0; n < 20; n += 1) {
      await guards.arm(ACTOR, { generation: n, dueMs: 4_001 + 37 * n, periodMs: 5_000 });
      guards.release(ACTOR, n);
      await pass(REMOVED_BY_THEN_MS + 37);
    }
    expect([...reminders.registered.values()].map(({ dueMs }) => dueMs % 1000)).toEqual(Array.from({ length: 20 }, () => 0));
    expect(removedAtMs).toEqual(Array.from({ length: 20 }, () => 500));
  });

  it("are never removed twice at once, however often they are found released while a removal gets no answer", async () => {
    const answers: ((error?: Error) => void)[] = [];
    reminders.remove = (_actorId, name) => {
      reminders.history.push(`remove ${name}`);
      return new Promise((resolve, reject) => { answers.push((error) => { if (error === undefined) resolve(); else reject(error); }); });
    };
    for (let tick = 0; tick < 12; tick += 1) {
      guards.release(ACTOR, 3);
      await pass(5_000);
    }
    expect(reminders.history).toEqual(["remove guard-3"]);
    answers[0]!(new Error("the scheduler is back and knows nothing of it"));
    await pass(10_000);
    expect(reminders.history).toEqual(["remove guard-3", "remove guard-3"]);
    answers[1]!();
    await pass(60_000);
    expect(reminders.history).toHaveLength(2);
  });

  it("are removed a few at a time, so that a scheduler that hangs does not take all connections", async () => {
    const answers: (() => void)[] = [];
    const asked = new Set<string>();
    reminders.remove = (actorId) => new Promise((resolve) => { asked.add(actorId); answers.push(resolve); });
    for (let n = 0; n < 40; n += 1) guards.release(`actor-${String(n)}`, 1);
    await pass(30_000);
    expect(asked.size).toBe(16);
    while (asked.size < 40) {
      for (const answer of answers.splice(0)) answer();
      await pass(5_000);
    }
    expect(asked.size).toBe(40);
  });

  it("are not removed where the same generation was armed again meanwhile", async () => {
    await guards.arm(ACTOR, PLAN);
    guards.release(ACTOR, 3);
    await pass(1_000);
    await guards.arm(ACTOR, PLAN);
    await pass(10_000);
    expect(reminders.names).toEqual(["guard-3"]);
  });

  it("wait for nobody once the scheduler is known to be away, and are all registered when it is back", async () => {
    reminders.failing = true;
    const first = guards.arm("first", PLAN);
    await pass(1_000);
    await first;
    const others = Array.from({ length: 20 }, (_, n) => guards.arm(`other-${String(n)}`, PLAN));
    expect(await isDone(Promise.all(others))).toBe(true);
    reminders.failing = false;
    await pass(1_000);
    expect(reminders.registered.size).toBe(21);
    await guards.arm("later", PLAN);
    expect(reminders.registered.size).toBe(22);
  });

  it("wait for nobody while the scheduler stays away, also where nothing was wanted in between", async () => {
    reminders.failing = true;
    const first = guards.arm("first", PLAN);
    await pass(1_000);
    await first;
    guards.forget("first", PLAN.generation);
    await pass(5_000);
    expect(await isDone(guards.arm("second", PLAN))).toBe(true);
    reminders.failing = false;
    await pass(1_000);
    expect(reminders.registered.size).toBe(1);
    reminders.failing = true;
    expect(await isDone(guards.arm("third", PLAN))).toBe(false);
  });

  it.each(["", "{", "null", "7", '"guard"', '{"purpose":"other","generation":1}', '{"purpose":"guard"}', '{"purpose":"guard","generation":"1"}', '{"purpose":"guard","generation":1.5}'])("know that %j is not theirs", (data) => {
    expect(guardOf(data)).toBeUndefined();
  });
});

describe("a session's guard", () => {
  let world: World;
  let host: Host;
  beforeEach(() => { world = new World(); host = world.host(); });

  it("is armed before the first commit that leaves a model call open", async () => {
    let armedBefore: string[] | undefined;
    world.store.beforeCommit = async () => { armedBefore = world.reminders.names; };
    await host.take("tasks", prompt("a", "a", { agent: "hand" }));
    expect(armedBefore).toEqual(["guard-1"]);
    expect(world.events("GuardArmed")).toMatchObject([{ generation: 1, periodMs: 5_000 }]);
  });

  it("does not hold up an event when the scheduler hangs; it is registered when the scheduler is back", async () => {
    world.reminders.failing = true;
    const delivery = host.take("tasks", prompt("a", "a", { agent: "hand" }));
    await pass(1_000);
    expect(await delivery).toBe("SUCCESS");
    expect(world.reminders.names).toEqual([]);
    world.reminders.failing = false;
    await pass(2_000);
    expect(world.reminders.names).toEqual(["guard-1"]);
  });

  it("is not needed where its host lives: a session that has been quiet for a period is looked at by the process itself", async () => {
    await host.take("tasks", prompt("a"));
    await until("told", () => world.bus.ended.length === 1);
    await pass(4_000);
    await host.take("tasks", prompt("b"));
    await until("told", () => world.bus.ended.length === 2);
    await pass(4_999);
    expect(world.events("GuardReleased")).toEqual([]);
    await pass(1);
    expect(world.store.journalOf(ACTOR).at(-1)?.events.map(({ type }) => type)).toEqual(["PublicationsCleared", "GuardReleased"]);
    expect(world.reminders.history, "the reminder is left to its next tick").toEqual(["set guard-1"]);
    world.checkFold();
  });

  it("that stopped firing holds up nothing: a lost tool request is published again all the same", async () => {
    world.bus.down.add("toolRequests");
    await host.take("tasks", prompt("r", "look up A1", { agent: "clerk" }));
    await pass(1_000);
    world.bus.down.clear();
    const before = world.bus.requests.length;
    await pass(60_000);
    expect(world.bus.requests.length).toBeGreaterThan(before);
  });

  it("is looked at again when a look failed", async () => {
    await host.take("tasks", prompt("a"));
    await until("told", () => world.bus.ended.length === 1);
    world.store.down = true;
    await pass(5_000);
    world.store.down = false;
    expect(world.events("GuardReleased")).toEqual([]);
    await pass(5_000);
    expect(world.events("GuardReleased")).toHaveLength(1);
  });

  it("is one per busy period, released by the tick that finds the session at rest, and named anew in the next", async () => {
    await host.take("tasks", prompt("a"));
    await pass(1_000);
    expect(world.reminders.history).toEqual(["set guard-1"]);
    await world.reminders.fire(host);
    expect(world.events("GuardReleased")).toMatchObject([{ generation: 1 }]);
    expect(world.reminders.names).toEqual([]);
    await host.take("tasks", prompt("b"));
    expect(world.reminders.names).toEqual(["guard-2"]);
  });

  it("of an older generation removes itself, whether its release failed or another host made the newer one", async () => {
    await host.take("tasks", prompt("a"));
    await pass(1_000);
    world.reminders.failing = true;
    await host.service.onReminder(ACTOR, tickOf(1));
    await pass(REMOVED_BY_THEN_MS);
    world.reminders.failing = false;
    expect(world.reminders.names).toEqual(["guard-1"]);
    await host.take("tasks", prompt("b", "b"));
    expect(world.reminders.names).toEqual(["guard-1", "guard-2"]);
    await host.service.onReminder(ACTOR, tickOf(1));
    await pass(REMOVED_BY_THEN_MS);
    expect(world.reminders.names).toEqual(["guard-2"]);
  });

  it("left behind by a host that died after its last commit says that commit's entry again", async () => {
    await host.take("tasks", prompt("a"));
    await pass(6_000);
    expect(world.events("GuardReleased")).toHaveLength(1);
    const { rev } = world.state;
    world.bus.sent.length = 0;
    const said = (): number[] => world.bus.envelopes(JOURNAL_APPENDED).flatMap((envelope) => JournalBatch.parse(JSON.parse(envelope.data)).appended.map(({ entry }) => entry.rev));
    await host.service.onReminder(ACTOR, tickOf(1));
    expect(said(), "the host that committed it has said it").toEqual([]);
    await world.host("host-2").service.onReminder(ACTOR, tickOf(1));
    expect(said()).toEqual([rev]);
  });

  it("that is left over where no session came to be removes itself", async () => {
    world.store.failNext("before");
    expect(await host.take("tasks", prompt("a"))).toBe("RETRY");
    expect(world.reminders.names).toEqual(["guard-1"]);
    await world.reminders.fire(host);
    expect(world.reminders.names).toEqual([]);
  });

  it("that was armed for a commit which turned out to be a repetition removes itself (I8: a session at rest costs nothing)", async () => {
    for (let n = 0; n < 8; n += 1) { await host.take("tasks", prompt(String(n))); await pass(1_000); }
    await world.reminders.fire(host);
    expect(world.reminders.names).toEqual([]);
    expect(await host.take("tasks", prompt("0"))).toBe("SUCCESS");
    await pass(5_000);
    await world.reminders.fire(host);
    expect(world.reminders.names).toEqual([]);
  });

  it("that was left over and is then used by a commit stays", async () => {
    world.store.failNext("before");
    expect(await host.take("tasks", prompt("a", "a", { agent: "hand" }))).toBe("RETRY");
    await host.service.onReminder(ACTOR, tickOf(1));
    expect(await host.take("tasks", prompt("a", "a", { agent: "hand" }))).toBe("SUCCESS");
    await pass(60_000);
    expect(world.reminders.names).toEqual(["guard-1"]);
    expect(world.state.guard).toMatchObject({ generation: 1, armed: true });
  });

  it("never throws, whatever fails: its next tick tries again", async () => {
    await host.take("tasks", prompt("a", "a", { agent: "hand" }));
    world.store.down = true;
    await pass(61_000);
    await expect(host.service.onReminder(ACTOR, tickOf(1))).resolves.toBeUndefined();
    await expect(host.service.onReminder(ACTOR, "nonsense")).resolves.toBeUndefined();
    expect(world.reminders.names).toEqual(["guard-1"]);
  });

  it("that the scheduler has lost is registered again by a nudge", async () => {
    await host.take("tasks", prompt("a", "a", { agent: "hand" }));
    world.reminders.registered.clear();
    world.reminders.history.length = 0;
    for (const id of ["n1", "n2"]) expect(await host.take("tasks", command(SESSION_NUDGE, id, {}))).toBe("SUCCESS");
    expect(world.reminders.history, "once, and not under the name of a reminder that may just be firing").toEqual(["set guard-1-again"]);
    expect(world.events("GuardArmed")).toHaveLength(1);
    world.hand.last.answer();
    await pass(6_000);
    await world.reminders.fire(host);
    expect(world.reminders.names).toEqual([]);
  });

  it("is not made by a nudge where nothing is to be guarded, nor is a session", async () => {
    expect(await host.take("tasks", command(SESSION_NUDGE, "n1", {}))).toBe("SUCCESS");
    await host.take("tasks", prompt("a"));
    await pass(1_000);
    await world.reminders.fire(host);
    expect(await host.take("tasks", command(SESSION_NUDGE, "n2", {}))).toBe("SUCCESS");
    expect(world.reminders.names).toEqual([]);
  });

  it("of a session that waits for a person fires at its deadline only, and brings the expiry about", async () => {
    await host.take("tasks", prompt("r", "refund A1", { agent: "clerk" }));
    await until("asked", () => world.bus.pending.length === 1);
    await host.take("tasks", command("com.docket.approval.received.v1", "seen", { approvalId: world.bus.pending[0]!.record.approvalId }));
    await pass(31_000);
    await world.reminders.fire(host);
    const parked = [...world.reminders.registered.values()];
    expect(parked).toHaveLength(1);
    expect(parked[0]?.dueMs).toBeGreaterThan(23 * 3_600_000);
    await pass(parked[0]!.dueMs + 1);
    await world.reminders.fire(host);
    await until("the run ends", () => world.bus.ended.length === 1);
    expect(world.events("ApprovalExpired")).toHaveLength(1);
    world.checkFold();
  });

  it("of a session that waited for a person goes when the person has decided, and not at the deadline days later", async () => {
    await host.take("tasks", prompt("r", "refund A1", { agent: "clerk" }));
    await until("asked", () => world.bus.pending.length === 1);
    await host.take("tasks", command("com.docket.approval.received.v1", "seen", { approvalId: world.bus.pending[0]!.record.approvalId }));
    await pass(11_000);
    await world.reminders.fire(host);
    expect(world.reminders.names).toEqual(["guard-2"]);
    await host.take("approvalsResolved", decisionOn(world.bus.pending[0]!, "d1"));
    await pass(REMOVED_BY_THEN_MS);
    expect(world.reminders.names).toEqual(["guard-3"]);
  });

  it("takes up the head of a mailbox that was forgotten with its host", async () => {
    await host.take("tasks", prompt("a", "a", { agent: "hand" }));
    await host.take("tasks", prompt("b", "b", { agent: "hand" }));
    world.hand.last.answer();
    await quiet(8);
    void host.service.stop();
    await pass(20_000);
    world.dead.add("host-1");
    const other = world.host("host-2");
    await world.reminders.fire(other);
    await world.reminders.fire(other);
    await until("the second call", () => world.hand.calls.length >= 2);
    world.hand.last.answer();
    await until("both runs end", () => world.events("RunEnded").length === 2);
  });
});

describe("a generation", () => {
  const session = (generation: number, armed: boolean): SessionState => ({ ...NEW_SESSION, status: "IDLE", guard: { generation, armed, periodMs: 5_000 } }) as unknown as SessionState;

  it.each<[string, SessionState, boolean]>([
    ["that no commit has used yet is not over", session(2, false), false],
    ["that is armed is not over", session(3, true), false],
    ["that was released is over", session(3, false), true],
    ["that another one followed is over", session(4, true), true],
    ["of a session that there is not yet is not over", NEW_SESSION, false],
  ])("%s", (_what, state, over) => { expect(guardIsOver(state, 3)).toBe(over); });
});
