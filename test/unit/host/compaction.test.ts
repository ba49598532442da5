/** What is left of a long session's journal, and that nothing which anybody still needs has gone. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { isCheckpoint, type JournalEntry } from "../../../src/contracts/journal.js";
import { SESSION_COMPACT, SESSION_DELETE, type SessionCompact } from "../../../src/contracts/messages.js";
import { fold } from "../../../src/session/core/evolve.js";
import type { SessionState } from "../../../src/session/core/state.js";
import { ACTOR, command, fakeTime, keyOf, pass, prompt, quiet, World, type Host } from "./support.js";

const DAY_MS = 86_400_000;
const ASK: SessionCompact = { projectedRev: 10_000, keepEntries: 16, olderThanMs: 30 * DAY_MS };
let world: World;
let host: Host;
beforeEach(() => {
  fakeTime();
  world = new World();
  world.limits("echo", { windowRounds: 2 });
  host = world.host();
});
afterEach(() => { vi.useRealTimers(); });

/** A session of twenty runs, at rest, one after the other; one message is long enough for a blob. */
async function lived(): Promise<number> {
  for (let n = 0; n < 20; n += 1) {
    await host.take("tasks", prompt(`e${String(n)}`, n === 5 ? "ä".repeat(20_000) : `message ${String(n)}`));
    for (let waits = 0; waits < 100 && world.state.status !== "IDLE"; waits += 1) await pass(1_000);
  }
  await atRest();
  return world.state.rev;
}
async function atRest(): Promise<void> {
  for (let n = 0; n < 20 && (world.state.guard.armed || world.state.outbox.length > 0); n += 1) await pass(5_000);
  expect(world.state).toMatchObject({ status: "IDLE", outbox: [], guard: { armed: false } });
}
async function compact(about: Partial<SessionCompact> = {}, on = host): Promise<void> {
  expect(await on.take("tasks", command(SESSION_COMPACT, `c${String(Date.now())}`, { ...ASK, ...about }))).toBe("SUCCESS");
  await quiet(2_000);
}
const revs = (): number[] => world.store.journalOf(ACTOR).map(({ rev }) => rev);
const from = (rev: number, to: number): number[] => Array.from({ length: to - rev + 1 }, (_, n) => rev + n);

/** I7: what is left, from its checkpoint on, is the state. */
function foldsFromCheckpoint(): void {
  const journal: JournalEntry[] = world.store.journalOf(ACTOR);
  const folded: SessionState = fold(journal.slice(journal.findLastIndex(isCheckpoint)));
  expect(JSON.parse(JSON.stringify(folded))).toEqual(world.store.stateOf(ACTOR));
}

describe("the journal of a living session", () => {
  it("is shortened at a run's end, once its entries are old enough; the first and the newest stay, and the session is what it was", async () => {
    const rev = await lived();
    expect(world.store.blobKeys).toHaveLength(1);
    await pass(31 * DAY_MS);
    const before = world.state;
    await compact();
    await atRest();
    const kept = world.state.keptFromRev ?? 0;
    expect(kept).toBeGreaterThan(rev / 2);
    expect(rev - kept + 1).toBeGreaterThanOrEqual(16);
    expect(kept).toBeLessThanOrEqual(before.window.fromRev);
    expect(revs()).toEqual([1, ...from(kept, world.state.rev)]);
    expect(world.store.journalOf(ACTOR)[1]?.events[0]?.type).toBe("EventReceived");
    expect(world.store.blobKeys).toEqual([]);
    expect(world.state).toMatchObject({ totals: before.totals, window: before.window, recentRuns: before.recentRuns, recentDecisions: before.recentDecisions });
    expect(world.state.erase).toBeUndefined();
    foldsFromCheckpoint();
    await host.take("tasks", prompt("later"));
    await pass(1_000);
    expect(world.bus.ended.at(-1)).toMatchObject({ outcome: "completed" });
    foldsFromCheckpoint();
  });

  it("tells its readers from where it can be read, and what it knows of an event whose entries are gone", async () => {
    const rev = await lived();
    await pass(31 * DAY_MS);
    await compact();
    await atRest();
    const kept = world.state.keptFromRev ?? 0;
    const page = await host.service.reads.journal(ACTOR, 3, 10);
    expect(page).toMatchObject({ fromRev: kept, headRev: world.state.rev });
    expect(page?.entries.map((entry) => entry.rev)).toEqual(from(kept, kept + 9));
    expect((await host.service.reads.journal(ACTOR, rev, 10))?.entries[0]?.rev).toBe(rev + 1);
    expect((await host.service.reads.session(ACTOR))?.summary.journalFromRev).toBe(kept);
    expect(await host.service.reads.outcome(ACTOR, keyOf("e0"))).toMatchObject({ state: "ended", code: "journal_compacted" });
    expect(await host.service.reads.outcome(ACTOR, keyOf("e19"))).toMatchObject({ state: "ended", outcome: "completed" });
  });

  it("is sound for a host that meets it first, which knows its old events and finds no fault", async () => {
    await lived();
    await pass(31 * DAY_MS);
    await compact();
    await atRest();
    const calls = world.modelCalls;
    await world.host("host-2").take("tasks", prompt("e0", "message 0"));
    await pass(1_000);
    expect(world.bus.receipts.at(-1)).toMatchObject({ verdict: "duplicate" });
    expect(world.modelCalls).toBe(calls);
    expect(world.events("SessionRepaired")).toEqual([]);
    expect(world.state.quarantine).toBeUndefined();
  });

  it("is shortened again from where it was left, and deleted whole", async () => {
    await lived();
    await pass(31 * DAY_MS);
    await compact();
    await atRest();
    const first = world.state.keptFromRev ?? 0;
    for (let n = 0; n < 10; n += 1) {
      await host.take("tasks", prompt(`again${String(n)}`));
      await pass(1_000);
    }
    await atRest();
    await pass(31 * DAY_MS);
    await compact({}, world.host("host-2"));
    await atRest();
    const second = world.state.keptFromRev ?? 0;
    expect(second).toBeGreaterThan(first);
    expect(revs()).toEqual([1, ...from(second, world.state.rev)]);
    foldsFromCheckpoint();
    const { rev } = world.state;
    await host.take("tasks", command(SESSION_DELETE, "d1", { reason: "enough" }));
    await pass(DAY_MS);
    await world.reminders.fire(host);
    expect(revs()).toEqual([rev + 1, rev + 2]);
    foldsFromCheckpoint();
  });
});

describe("nothing is taken", () => {
  it.each([
    ["that is younger than asked for", {}, 29 * DAY_MS],
    ["that is younger than a day, whatever is asked for", { olderThanMs: 0 }, DAY_MS - 600_000],
    ["that the console has not shown to have", { projectedRev: 5 }, 31 * DAY_MS],
    ["of the newest entries", { keepEntries: 1_000 }, 31 * DAY_MS],
  ] as const)("%s", async (_what, about, afterMs) => {
    await lived();
    await pass(afterMs);
    const before = world.state;
    await compact(about);
    await pass(5_000);
    expect(world.state).toEqual(before);
    expect(revs()).toEqual(from(1, before.rev));
  });

  it("while a run is open, and of a journal that is damaged", async () => {
    await lived();
    await pass(31 * DAY_MS);
    world.store.damageEntry(ACTOR, 4, (entry) => ({ ...entry, events: entry.events.slice(1) }));
    const before = world.state;
    await compact();
    expect(world.state).toEqual(before);
    expect(revs()).toEqual(from(1, before.rev));
  });
});

describe("a crash", () => {
  it("between the checkpoint and the erasing leaves a valid session, and another host finishes it", async () => {
    const rev = await lived();
    await pass(31 * DAY_MS);
    const erase = world.store.erase.bind(world.store);
    // The first ones die half-way, with their host.
    const dying = vi.spyOn(world.store, "erase").mockImplementation(async (actorId, fromRev) => {
      await erase(actorId, fromRev, fromRev + 5);
      throw new Error("killed");
    });
    await compact();
    await pass(2_000);
    expect(dying).toHaveBeenCalled();
    await host.service.stop();
    expect(world.state.erase).toBeDefined();
    expect(revs()).toEqual([1, ...from(8, world.state.rev)]);
    foldsFromCheckpoint();
    dying.mockRestore();

    const other = world.host("host-2");
    expect((await other.service.reads.journal(ACTOR, 0, 200))?.fromRev).toBe(world.state.keptFromRev);
    await other.take("tasks", prompt("meanwhile"));
    await pass(1_000);
    expect(world.bus.ended.at(-1)).toMatchObject({ outcome: "completed" });
    await world.reminders.fire(other);
    await atRest();
    expect(world.state.erase).toBeUndefined();
    expect(revs()[1]).toBe(world.state.keptFromRev);
    expect(rev).toBeGreaterThan(world.state.keptFromRev ?? 0);
    foldsFromCheckpoint();
  });

  it("that loses the document is repaired from the checkpoint; one that loses the checkpoint too is quarantined, not tried for ever", async () => {
    await lived();
    await pass(31 * DAY_MS);
    await compact();
    await atRest();
    const { state } = world;
    world.store.damageDocument(ACTOR, undefined);
    expect(await world.host("host-2").take("tasks", prompt("next"))).toBe("SUCCESS");
    await pass(1_000);
    expect(world.state).toMatchObject({ createdAtMs: state.createdAtMs, keptFromRev: state.keptFromRev });
    expect(world.events("SessionRepaired")[0]?.found[0]?.what).toBe("document_lost");
    foldsFromCheckpoint();

    world.store.damageDocument(ACTOR, undefined);
    world.store.damageEntry(ACTOR, world.store.journalOf(ACTOR).findLast(isCheckpoint)?.rev ?? 0);
    const head = revs().at(-1) ?? 0;
    expect(await world.host("host-3").take("tasks", prompt("after"))).toBe("SUCCESS");
    expect(world.state).toMatchObject({ quarantine: { reason: "journal_gap" }, rev: head + 1 });
    expect(world.bus.letters.at(-1)).toMatchObject({ reason: "session_quarantined" });
  });
});
