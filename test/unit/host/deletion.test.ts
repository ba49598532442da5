/** What is left of a deleted session: nothing but its revision, and the ledger for as long as it matters. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { JOURNAL_APPENDED, JournalBatch, type SessionSummary } from "../../../src/contracts/journal.js";
import { SESSION_DELETE } from "../../../src/contracts/messages.js";
import { evolveAll } from "../../../src/session/core/evolve.js";
import { NEW_SESSION, type SessionState } from "../../../src/session/core/state.js";
import { ACTOR, command, fakeTime, pass, prompt, World, type Host } from "./support.js";

const DAY_MS = 86_400_000;
let world: World;
let host: Host;
beforeEach(() => {
  fakeTime();
  world = new World();
  host = world.host();
});
afterEach(() => { vi.useRealTimers(); });

async function lived(text = "hello"): Promise<number> {
  await host.take("tasks", prompt("lived", text));
  for (let n = 0; n < 100 && world.state.status !== "IDLE"; n += 1) await pass(1_000);
  await host.service.tick(ACTOR);
  await pass(5_000);
  return world.state.rev;
}
const remove = (id: string, data: object = { reason: "asked for" }) => host.take("tasks", command(SESSION_DELETE, id, data));
const summaries = (): SessionSummary[] => world.bus.envelopes(JOURNAL_APPENDED).flatMap((envelope) => JournalBatch.parse(JSON.parse(envelope.data)).appended.map(({ summary }) => summary));

function foldsFromTombstone(): void {
  const journal = world.store.journalOf(ACTOR);
  expect(journal[0]?.events[0]?.type).toBe("SessionDeleted");
  const folded = journal.reduce<SessionState>((state, entry) => evolveAll(state, entry.events, entry), NEW_SESSION);
  expect(JSON.parse(JSON.stringify(folded))).toEqual(world.store.stateOf(ACTOR));
}

describe("a session that is deleted", () => {
  it("is a tombstone at once and shows nothing of what it was; a day later its journal and blobs are erased, not sooner", async () => {
    const last = await lived("ä".repeat(20_000));
    expect(world.store.blobKeys).toHaveLength(1);
    await remove("d1");
    expect(world.state).toMatchObject({ status: "DELETED", rev: last + 1, window: { rounds: [] }, recentRuns: [], totals: { modelCalls: 0 } });
    expect((await host.service.reads.journal(ACTOR, 0, 100))?.entries.map(({ rev }) => rev)).toEqual([last + 1]);
    await pass(DAY_MS - 60_000);
    await world.reminders.fire(host);
    expect(world.store.journalOf(ACTOR)[0]?.rev).toBe(1);
    await pass(60_000);
    await world.reminders.fire(host);
    expect(world.store.journalOf(ACTOR).map(({ rev }) => rev)).toEqual([last + 1, last + 2]);
    expect(world.store.blobKeys).toEqual([]);
    expect(world.reminders.names).toEqual([]);
    expect(summaries().at(-1)).toMatchObject({ status: "DELETED", rev: last + 2 });
    expect(summaries().at(-1)?.nextDueAtMs).toBeUndefined();
    foldsFromTombstone();
  });

  it("does not run an old event again, whose sender repeats it", async () => {
    await lived();
    await remove("d1");
    const calls = world.modelCalls;
    await world.host("host-2").take("tasks", prompt("lived", "hello"));
    await pass(1_000);
    expect(world.bus.receipts.at(-1)).toMatchObject({ verdict: "duplicate" });
    expect([world.modelCalls, world.state.status]).toEqual([calls, "DELETED"]);
  });

  it.each([["the same host", 0], ["another", 1]])("is not deleted again by the same order, which comes once more to %s when a new event has opened it", async (_where, other) => {
    await lived();
    await remove("d1");
    await host.take("tasks", prompt("new", "again"));
    await pass(1_000);
    await host.service.tick(ACTOR);
    await pass(5_000);
    const { rev } = world.state;
    const at = other === 0 ? host : world.host("host-2");
    expect(await at.take("tasks", command(SESSION_DELETE, "d1", { reason: "asked for" }))).toBe("SUCCESS");
    expect(world.state).toMatchObject({ status: "IDLE", rev });
    await remove("d2");
    expect(world.state.status).toBe("DELETED");
  });

  it("is opened anew by a new event, behind its tombstone, without memory; what was before is erased all the same", async () => {
    const last = await lived();
    const before = world.state.guard.generation;
    await remove("d1");
    await host.take("tasks", prompt("new", "again"));
    await pass(1_000);
    expect(world.bus.ended.at(-1)).toMatchObject({ outcome: "completed" });
    expect(world.state).toMatchObject({ status: "IDLE", baseRev: last + 2, erase: { fromRev: 1, toRev: last } });
    expect(world.state.window.fromRev).toBeGreaterThan(last);
    expect(world.state.guard.generation).toBeGreaterThan(before);
    await pass(DAY_MS);
    await world.reminders.fire(host);
    expect(world.state.erase).toBeUndefined();
    foldsFromTombstone();
    await world.host("host-3").take("tasks", prompt("later", "and again"));
    await pass(1_000);
    expect(world.state.quarantine).toBeUndefined();
    foldsFromTombstone();
  });

  it("is not written by a host that stood still since before: its revision is taken", async () => {
    await lived();
    const slow = world.host("host-slow");
    await slow.service.tick(ACTOR);
    world.store.beforeCommit = async () => { await remove("d1"); };
    await slow.take("tasks", prompt("b"));
    await pass(1_000);
    expect(world.events("SessionOpened")).toHaveLength(2);
    expect(world.store.journalOf(ACTOR).map(({ rev }) => rev)).toEqual(world.store.journalOf(ACTOR).map((_, index) => index + 1));
  });
});

describe("a delete is refused or does nothing", () => {
  it("while a run is open or events wait", async () => {
    await host.take("tasks", prompt("busy", "busy", { agent: "hand" }));
    await remove("d1");
    expect(world.state.status).toBe("PLANNING");
  });

  it("by retention, when the session has moved since", async () => {
    await lived();
    const before = world.state;
    await remove("d1", { reason: "retention", idleForMs: DAY_MS });
    expect(world.state).toEqual(before);
    await pass(DAY_MS);
    await remove("d2", { reason: "retention", idleForMs: DAY_MS });
    expect(world.state.status).toBe("DELETED");
    await pass(2_000);
    await world.reminders.fire(host);
    expect(world.store.journalOf(ACTOR)[0]?.events[0]?.type).toBe("SessionDeleted");
  });

  it("for a session that is not there", async () => {
    expect(await remove("d1")).toBe("SUCCESS");
    expect(world.store.stateOf(ACTOR)).toBeUndefined();
  });
});
