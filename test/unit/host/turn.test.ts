/** The turn engine on a store that races, loses replies and fails (I2, I3, I7). */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { SESSION_CANCEL } from "../../../src/contracts/messages.js";
import { RECENT_RUNS } from "../../../src/session/core/limits.js";
import type { TurnWrite } from "../../../src/session/host/ports.js";
import { INLINE_TEXT_BYTES } from "../../../src/session/host/turn.js";
import type { CommitFault } from "../../support/memory-session-store.js";
import { ACTOR, command, fakeTime, keyOf, pass, prompt, quiet, TARGET, until, World } from "./support.js";

beforeEach(fakeTime);
afterEach(() => { vi.useRealTimers(); });

/** Every write of the next commits, in order. */
function watchCommits(world: World): TurnWrite[] {
  const writes: TurnWrite[] = [];
  const commit = world.store.commit.bind(world.store);
  world.store.commit = async (write) => { writes.push(write); return await commit(write); };
  return writes;
}

describe("two hosts on one store", () => {
  it("never both commit a revision: the loser takes the winner's state and tries again", async () => {
    const world = new World();
    const [one, two] = [world.host("host-1"), world.host("host-2")];
    world.store.beforeCommit = async () => { expect(await two.take("tasks", prompt("b", "b", { agent: "hand" }))).toBe("SUCCESS"); };
    expect(await one.take("tasks", prompt("a", "a", { agent: "hand" }))).toBe("SUCCESS");
    await quiet();
    const journal = world.store.journalOf(ACTOR);
    expect(world.events("EventReceived").map((event) => event.id)).toEqual(["b", "a"]);
    expect(journal.map((entry) => entry.host)).toEqual(["host-2", "host-1"]);
    expect(world.state).toMatchObject({ status: "PLANNING", mailbox: [{ key: keyOf("a") }] });
    world.checkFold();
  });

  it("a cached document that another host has overtaken costs a retry, not an event", async () => {
    const world = new World();
    const [one, two] = [world.host("host-1"), world.host("host-2")];
    await one.take("tasks", prompt("1", "1", { agent: "hand" }));
    for (const [host, id] of [[two, "2"], [one, "3"]] as const) expect(await host.take("tasks", prompt(id, id, { agent: "hand" }))).toBe("SUCCESS");
    expect(world.events("EventReceived").map((event) => event.id)).toEqual(["1", "2", "3"]);
    world.checkFold();
  });

  it("gives up for the broker to repeat when twelve commits in a row are lost", async () => {
    const world = new World();
    const host = world.host();
    world.store.failNext(...Array.from({ length: 12 }, (): CommitFault => "conflict"));
    expect(await host.take("tasks", prompt("a"))).toBe("RETRY");
    expect(world.lastError).toMatchObject({ code: "actor_unavailable" });
    expect(world.store.journalOf(ACTOR)).toEqual([]);
    expect(await host.take("tasks", prompt("a"))).toBe("SUCCESS");
    expect(world.bus.letters).toEqual([]);
  });

  it("turns of one session in one process come one after the other, of several at once", async () => {
    const world = new World();
    const host = world.host();
    let open: () => void = () => undefined;
    world.store.slow = new Promise((resolve) => { open = resolve; });
    const deliveries = [host.take("tasks", prompt("a")), host.take("tasks", prompt("b")), host.take("tasks", prompt("c", "c", { subject: "other" }))];
    await quiet();
    expect(world.store.count("commit")).toBe(2);
    open();
    expect(await Promise.all(deliveries)).toEqual(["SUCCESS", "SUCCESS", "SUCCESS"]);
    await quiet();
    expect(world.events("EventReceived").map((event) => event.id)).toEqual(["a", "b"]);
  });

  it("keep I1, I2, I3 and I7 whatever is raced, repeated, lost or failed", async () => {
    const fault = fc.constantFrom<CommitFault | "none">("none", "none", "before", "after", "conflict");
    const step = fc.record({ host: fc.integer({ min: 0, max: 1 }), event: fc.integer({ min: 0, max: 5 }), fault, together: fc.boolean(), afterRounds: fc.integer({ min: 0, max: 12 }) });
    // At most two, since the third lost model call of a step is a person's to look at.
    const deaths = fc.uniqueArray(fc.integer({ min: 0, max: 15 }), { maxLength: 2 });
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 16 }), deaths, async (steps, dying) => {
      const world = new World();
      const names = ["host-1", "host-2"];
      const hosts = names.map((name) => world.host(name));
      const die = (host: number): void => {
        void hosts[host]!.service.stop();
        world.dead.add(names[host]!);
        names[host] = `${names[host]!}-again`;
        hosts[host] = world.host(names[host]);
      };
      const delivered = new Set<number>();
      const running: Promise<unknown>[] = [];
      for (const [at, { host, event, fault: kind, together, afterRounds }] of steps.entries()) {
        if (kind !== "none") world.store.failNext(kind);
        delivered.add(event);
        // As a broker does: again and again until it is taken.
        const delivery = (async () => { while (await hosts[host]!.take("tasks", prompt(String(event))) !== "SUCCESS") await quiet(2); })();
        if (together) running.push(delivery); else await delivery;
        await quiet(afterRounds);
        if (dying.includes(at)) die(host);
      }
      await Promise.all(running);
      for (let round = 0; round < 40 && (world.state.status !== "IDLE" || world.state.mailbox.length > 0 || world.state.outbox.length > 0); round += 1) {
        await pass(31_000);
        await world.reminders.fire(hosts[round % 2]!);
      }
      const ids = world.events("EventReceived").map((event) => event.id);
      expect([...ids].sort()).toEqual([...delivered].map(String).sort());
      expect(world.events("RunStarted").map((event) => event.key)).toEqual(ids.map(keyOf));
      expect(world.events("RunEnded").map((event) => [event.key, event.outcome])).toEqual(ids.map((id) => [keyOf(id), "completed"]));
      expect(world.bus.letters).toEqual([]);
      expect(new Set(world.bus.ended.map((ended) => ended.key)).size).toBe(ids.length);
      world.checkFold();
    }), { numRuns: 60 });
  }, 60_000);
});

describe("a commit", () => {
  it("whose reply was lost meets itself: one entry, the event is acked, its run goes on", async () => {
    const world = new World();
    const host = world.host();
    world.store.failNext("after");
    expect(await host.take("tasks", prompt("a"))).toBe("SUCCESS");
    await until("the run ends", () => world.bus.ended.length === 1);
    expect(world.events("EventReceived")).toHaveLength(1);
    expect(world.modelCalls).toBe(1);
    world.checkFold();
  });

  it("whose reply and whose reading after it were lost is repeated by the broker and found done", async () => {
    const world = new World();
    const host = world.host();
    world.store.failNext("after");
    const readEntries = world.store.readEntries.bind(world.store);
    world.store.readEntries = async () => { world.store.readEntries = readEntries; throw new Error("the store is gone"); };
    expect(await host.take("tasks", prompt("a"))).toBe("RETRY");
    expect(world.store.journalOf(ACTOR)).toHaveLength(1);
    expect(await host.take("tasks", prompt("a"))).toBe("SUCCESS");
    expect(world.bus.receipts.map((receipt) => receipt.verdict)).toEqual(["duplicate"]);
    expect(world.modelCalls).toBe(0);
    // The effects were lost with the reply: the guard repeats them.
    for (let round = 0; round < 3; round += 1) { await pass(6_000); await world.reminders.fire(host); }
    await until("the run ends", () => world.bus.ended.length === 1);
    expect(world.modelCalls).toBe(1);
  });

  it("that failed for real leaves nothing behind and is repeated by the broker", async () => {
    const world = new World();
    const host = world.host();
    world.store.failNext("before");
    expect(await host.take("tasks", prompt("a", "x".repeat(40_000)))).toBe("RETRY");
    expect(world.store.journalOf(ACTOR)).toEqual([]);
    expect(world.store.stateOf(ACTOR)).toBeUndefined();
    expect(world.store.ledgerKeys).toEqual([]);
    expect(world.store.blobKeys).toEqual([]);
    expect(world.bus.sent).toEqual([]);
    expect(await host.take("tasks", prompt("a", "x".repeat(40_000)))).toBe("SUCCESS");
    expect(world.store.blobKeys).toHaveLength(1);
    expect(world.bus.letters).toEqual([]);
  });

  it("carries the etag only after a load; a document is loaded again after 60 s, and only then", async () => {
    const world = new World();
    const host = world.host();
    const writes = watchCommits(world);
    await host.take("tasks", prompt("1"));
    await pass(59_000);
    const loads = world.store.count("load");
    await host.take("tasks", prompt("2"));
    expect(world.store.count("load")).toBe(loads);
    expect(writes.at(-1)?.documentEtag).toBeUndefined();
    await pass(1_000);
    writes.length = 0;
    await host.take("tasks", prompt("3"));
    expect(world.store.count("load")).toBe(loads + 1);
    expect(writes[0]?.documentEtag).toEqual(expect.any(String));
    await quiet();
    expect(writes.slice(1).every((write) => write.documentEtag === undefined)).toBe(true);
  });

  it("that a foreign document appears under is refused by the etag, and decided again", async () => {
    const world = new World();
    const [one, two] = [world.host("host-1"), world.host("host-2")];
    await two.take("tasks", prompt("1", "1", { agent: "hand" }));
    world.store.beforeCommit = async () => { await two.take("tasks", prompt("2", "2", { agent: "hand" })); };
    expect(await one.take("tasks", prompt("3", "3", { agent: "hand" }))).toBe("SUCCESS");
    expect(world.events("EventReceived").map((event) => event.id)).toEqual(["1", "2", "3"]);
    world.checkFold();
  });
});

describe("a refusal or a no-op on a cached document", () => {
  it("is decided again on a fresh one: a cancel of a run that another host has started", async () => {
    const world = new World();
    const [one, two] = [world.host("host-1"), world.host("host-2")];
    await one.take("tasks", prompt("0", "0", { agent: "hand" }));
    await quiet();
    world.hand.last.answer();
    await pass(1_000);
    expect(world.state.status).toBe("IDLE");
    await two.take("tasks", prompt("1", "1", { agent: "hand" }));
    const outcome = await one.deliveries.handle(TARGET, "tasks", JSON.stringify({ ...command(SESSION_CANCEL, "c1", {}), data: { reason: "stop" } }));
    expect(outcome.verdict).toBe("accepted");
    expect(world.events("RunEnded").at(-1)).toMatchObject({ key: keyOf("1"), outcome: "cancelled" });
  });

  it("is believed when the document was just loaded: a tick that finds nothing to do", async () => {
    const world = new World();
    const host = world.host();
    await host.take("tasks", prompt("1"));
    await pass(31_000);
    await world.reminders.fire(host);
    await pass(61_000);
    const before = world.store.count("load");
    await host.service.tick(ACTOR);
    expect(world.store.count("load")).toBe(before + 1);
  });
});

describe("the ledger (I2)", () => {
  it("finds an event that the document has long forgotten, and its repetition costs no model call", async () => {
    const world = new World();
    const host = world.host();
    for (let n = 0; n <= RECENT_RUNS; n += 1) {
      await host.take("tasks", prompt(String(n)));
      await pass(1_000);
    }
    expect(world.state.recentRuns).toHaveLength(RECENT_RUNS);
    expect(world.state.recentRuns.some((run) => run.key === keyOf("0"))).toBe(false);
    const { modelCalls } = world;
    const journal = world.store.journalOf(ACTOR).length;
    expect(await host.take("tasks", prompt("0"))).toBe("SUCCESS");
    await pass(1_000);
    expect(world.bus.receipts.at(-1)).toMatchObject({ key: keyOf("0"), verdict: "duplicate" });
    expect(world.modelCalls).toBe(modelCalls);
    expect(world.store.journalOf(ACTOR)).toHaveLength(journal);
    expect(await host.service.reads.outcome(ACTOR, keyOf("0"))).toMatchObject({ state: "ended", outcome: "completed" });
  });

  it("knows an old event also where the session could not take a new one: it is a duplicate, not refused a second time (I1)", async () => {
    const world = new World();
    const host = world.host();
    for (let n = 0; n < 8; n += 1) {
      await host.take("tasks", prompt(String(n), String(n), { agent: "hand" }));
      await until("the model is called", () => world.hand.calls.length === n + 1);
      world.hand.last.answer();
      await pass(1_000);
    }
    for (const id of ["running", "waiting-1", "waiting-2"]) await host.take("tasks", prompt(id, id, { agent: "hand" }));
    expect(await world.host("host-2").take("tasks", prompt("0", "0", { agent: "hand" }))).toBe("SUCCESS");
    expect(world.bus.receipts.at(-1)).toMatchObject({ key: keyOf("0"), verdict: "duplicate" });
    expect(await host.take("tasks", prompt("1", "1", { agent: "echo" }))).toBe("SUCCESS");
    expect(world.bus.receipts.at(-1)).toMatchObject({ key: keyOf("1"), verdict: "duplicate" });
    expect(world.bus.letters).toEqual([]);
  });

  it("is not read for an event that is new", async () => {
    const world = new World();
    const host = world.host();
    for (let n = 0; n < 3; n += 1) { await host.take("tasks", prompt(String(n))); await pass(1_000); }
    expect(world.store.count("ledger")).toBe(0);
  });

  it("a large text is kept whole beside the journal and comes back whole; a lost blob does not wedge the session", async () => {
    const world = new World();
    const host = world.host();
    const long = `${"ä".repeat(15_000)} the end`;
    await host.take("tasks", prompt("short", "y".repeat(INLINE_TEXT_BYTES - '{"text":""}'.length), { agent: "hand" }));
    await host.take("tasks", prompt("long", long, { agent: "hand" }));
    await host.take("tasks", prompt("lost", long, { agent: "hand" }));
    const [short, kept, lost] = world.events("EventReceived");
    expect(short?.data).toMatchObject({ truncated: false });
    expect(Buffer.byteLength(kept!.data.text)).toBeLessThanOrEqual(INLINE_TEXT_BYTES);
    expect(kept?.data).toMatchObject({ truncated: true, blob: { key: expect.stringContaining(`blob:${ACTOR}:2-`) as string } });
    world.store.loseBlob(lost!.data.blob!.key);
    for (const at of [0, 1]) {
      await until("the model is called", () => world.hand.calls.length === at + 1);
      world.hand.last.answer();
      await pass(1_000);
    }
    await until("the third run is there", () => world.events("RunStarted").length === 3);
    expect(world.events("RunStarted")[1]?.input).toBe(long);
    expect(world.events("RunStarted")[2]?.input).toContain("ä".repeat(1000));
  });
});
