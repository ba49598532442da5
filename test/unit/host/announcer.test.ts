/** What readers are told of commits, and in how many messages. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { JOURNAL_APPENDED, JournalBatch } from "../../../src/contracts/journal.js";
import { LIVE_ADVANCED, LiveAdvanced } from "../../../src/contracts/messages.js";
import { systemClock } from "../../../src/platform/clock.js";
import { createLogger } from "../../../src/platform/log.js";
import { Announcer, MAX_QUEUED } from "../../../src/session/host/announcer.js";
import { ACTOR, AT_ONCE, decisionOn, fakeTime, pass, prompt, quiet, until, World, type Host } from "./support.js";

let world: World;
let host: Host;
beforeEach(() => {
  fakeTime();
  world = new World();
  host = world.host();
});
afterEach(() => { vi.useRealTimers(); });

const batches = (): number[][] => world.bus.envelopes(JOURNAL_APPENDED).map((envelope) => JournalBatch.parse(JSON.parse(envelope.data)).appended.map(({ entry }) => entry.rev));
const hints = (): LiveAdvanced["advanced"] => world.bus.envelopes(LIVE_ADVANCED).flatMap((envelope) => LiveAdvanced.parse(JSON.parse(envelope.data)).advanced);
const told = (): number[] => batches().flat();

/** Holds back what is published on a channel until the returned function is called. */
function slow(channel: "journal" | "live"): () => void {
  let release: () => void = () => undefined;
  world.bus.slow = { channel, until: new Promise((resolve) => { release = resolve; }) };
  return () => { world.bus.slow = undefined; release(); };
}

describe("announcements", () => {
  it("are made at once by a host with nothing else to say, and together by one that waits for the broker", async () => {
    const release = slow("journal");
    await host.take("tasks", prompt("a"));
    await quiet(20);
    expect(batches()).toEqual([]);
    const { rev } = world.state;
    expect(rev, "nothing waited for the journal").toBeGreaterThan(1);
    release();
    await quiet(20);
    expect(batches()[0]).toEqual([1]);
    expect(batches()).toHaveLength(2);
    expect(told()).toEqual(Array.from({ length: rev }, (_, index) => index + 1));
  });

  /** An announcer beside the host's, and something to say. */
  async function onItsOwn() {
    await host.take("tasks", prompt("a"));
    await quiet(20);
    const { state } = world;
    const [entry] = world.store.journalOf(ACTOR);
    const announcer = new Announcer({ bus: world.bus, clock: systemClock, logger: createLogger("test", "silent"), pace: AT_ONCE });
    return { announcer, state, entry };
  }

  it("are made for whoever speaks again as soon as the last word is out", async () => {
    const { announcer, state, entry } = await onItsOwn();
    const before = told().length;
    for (let n = 0; n < 3; n += 1) await announcer.announce(state, entry!);
    expect(told().length).toBe(before + 3);
  });

  it("beyond ten thousand that wait for the broker: the oldest is dropped, and whoever waited for it goes on", async () => {
    const { announcer, state, entry } = await onItsOwn();
    const before = told().length;
    const release = slow("journal");
    const said: number[] = [];
    const all = Array.from({ length: MAX_QUEUED + 2 }, async (_, n) => { await announcer.announce(state, { ...entry!, rev: 1_000 + n }); said.push(n); });
    await quiet(20);
    expect(said, "the first is under way, the second was dropped").toEqual([1]);
    release();
    await Promise.all(all);
    expect(told().slice(before)).toEqual([1_000, ...Array.from({ length: MAX_QUEUED }, (_, n) => 1_002 + n)]);
  });

  it("of a busy host go out together, one publish in each pause; the last ones before it stops", async () => {
    await host.take("tasks", prompt("a"));
    await quiet(20);
    const { state } = world;
    const [entry] = world.store.journalOf(ACTOR);
    const announcer = new Announcer({ bus: world.bus, clock: systemClock, logger: createLogger("test", "silent"), pace: { journal: 40, live: 10 } });
    const quietly = batches().length;
    for (let n = 0; n < 20; n += 1) await announcer.announce(state, entry!);
    expect(batches().length, "who is not busy speaks at once").toBe(quietly + 20);
    const before = batches().length;
    const hintsBefore = hints().length;
    void announcer.announce(state, entry!);
    await quiet(20);
    expect(batches().length).toBe(before + 1);
    for (let n = 0; n < 5; n += 1) void announcer.announce(state, entry!);
    await pass(10);
    expect(hints().length).toBe(hintsBefore + 6);
    expect(batches().length).toBe(before + 1);
    await pass(30);
    expect(batches().slice(before).map((batch) => batch.length)).toEqual([1, 5]);
    void announcer.announce(state, entry!);
    await announcer.said();
    expect(batches().slice(before).map((batch) => batch.length)).toEqual([1, 5, 1]);
  });

  it("carry the entries to streams, in order", async () => {
    await host.take("tasks", prompt("a"));
    await quiet(20);
    expect(hints().map(({ actorId, rev, entry }) => [actorId, rev, entry?.rev])).toEqual(Array.from({ length: world.state.rev }, (_, index) => [ACTOR, index + 1, index + 1]));
  });

  it("leave an entry that is large to the stream's own read", async () => {
    await host.take("tasks", prompt("a", "a", { agent: "hand" }));
    world.hand.last.answer({ text: "\u0001".repeat(8_000) });
    await quiet(20);
    expect(hints().some(({ entry }) => entry === undefined)).toBe(true);
    expect(told()).toContain(world.state.rev);
  });

  it("that the broker refuses are dropped, and the next ones go out", async () => {
    world.bus.down.add("journal");
    await host.take("tasks", prompt("a"));
    await quiet(20);
    const { rev } = world.state;
    world.bus.down.clear();
    await host.take("tasks", prompt("b"));
    await quiet(20);
    expect(Math.min(...told())).toBe(rev + 1);
    expect(told()).toContain(world.state.rev);
  });

  it("are out before a host that stops has stopped", async () => {
    const release = slow("journal");
    await host.take("tasks", prompt("a"));
    await quiet(20);
    let stopped = false;
    const stopping = host.service.stop().then(() => { stopped = true; });
    await quiet(20);
    expect(stopped).toBe(false);
    release();
    await stopping;
    expect(told()).toContain(world.state.rev);
  });

  it("of a session without a guard are out before the delivery is acknowledged: nobody would say them after a crash", async () => {
    await host.take("tasks", prompt("r", "refund A1", { agent: "clerk" }));
    await until("asked", () => world.bus.pending.length === 1);
    await host.take("approvalsResolved", decisionOn(world.bus.pending[0]!, "d1", { kind: "reject" }));
    await until("told", () => world.bus.ended.length === 1);
    await pass(11_000);
    expect(world.state.guard.armed).toBe(false);
    const release = slow("journal");
    let acked = false;
    // A refused decision is recorded and leaves the session as it was: at rest, without a guard.
    const delivery = host.take("approvalsResolved", decisionOn(world.bus.pending[0]!, "d2")).then(() => { acked = true; });
    await quiet(20);
    expect(acked).toBe(false);
    release();
    await delivery;
    expect(told()).toContain(world.state.rev);
  });
});
