/** What a session does that wakes up on a host and finds its document or journal damaged. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { SESSION_CLOSE, SESSION_RELEASE } from "../../../src/contracts/messages.js";
import { assemble, partsOf } from "../../../src/session/core/parts.js";
import type { JournalEntry, SessionEvent } from "../../../src/contracts/journal.js";
import { entryDigest } from "../../../src/session/core/digest.js";
import { evolveAll } from "../../../src/session/core/evolve.js";
import { NEW_SESSION, type SessionState } from "../../../src/session/core/state.js";
import { CHECKED_ENTRIES, examine, MAX_REBUILT } from "../../../src/session/host/checkup.js";
import { ACTOR, command, fakeTime, pass, prompt, quiet, resultOf, until, World, type Host } from "./support.js";

let world: World;
beforeEach(() => {
  fakeTime();
  world = new World();
});
afterEach(() => { vi.useRealTimers(); });

/** Some runs, then rest. */
async function lived(runs: number): Promise<Host> {
  const host = world.host();
  for (let n = 0; n < runs; n += 1) {
    await host.take("tasks", prompt(`lived-${String(n)}`));
    await pass(1_000);
  }
  await world.reminders.fire(host);
  return host;
}

describe("a sound session", () => {
  it("costs one bounded read more when a host meets it first, and none after that", async () => {
    await lived(30);
    const host = world.host("host-2");
    world.store.calls.length = 0;
    await host.take("tasks", prompt("a"));
    expect(world.store.calls.slice(0, 3)).toEqual(["load", "entries", "commit"]);
    await pass(61_000);
    world.store.calls.length = 0;
    await host.service.tick(ACTOR);
    expect(world.store.calls).toEqual(["load"]);
    expect(world.events("SessionRepaired")).toEqual([]);
    world.checkFold();
  });

  it.each([["behind the last eight entries is not looked at", 0, undefined], ["within them is found", 1, "journal_gap"]] as const)("a gap %s", async (_, nearer, reason) => {
    await lived(6);
    const { rev } = world.state;
    world.store.damageEntry(ACTOR, rev - CHECKED_ENTRIES + nearer);
    const read = vi.spyOn(world.store, "readEntries");
    await world.host("host-2").service.tick(ACTOR);
    expect(read.mock.calls[0]).toEqual([ACTOR, rev - CHECKED_ENTRIES + 1, rev + 1]);
    expect(world.state.quarantine?.reason).toBe(reason);
  });

  it("is not taken for a damaged one while another host commits between the two reads", async () => {
    const first = await lived(1);
    const second = world.host("host-2");
    const read = world.store.readEntries.bind(world.store);
    const meddling = vi.spyOn(world.store, "readEntries").mockImplementationOnce(async (...about) => {
      await first.take("tasks", prompt("meanwhile", "x", { agent: "hand" }));
      return await read(...about);
    });
    await second.take("tasks", prompt("a"));
    expect(meddling).toHaveBeenCalled();
    await pass(1_000);
    expect([world.events("SessionRepaired"), world.events("SessionQuarantined")]).toEqual([[], []]);
    world.checkFold();
  });
});

describe("a document that is wrong while its journal is whole", () => {
  it.each([
    ["lost", undefined], ["from before the last entries", 2], ["made by another journal", 0],
  ] as const)("%s: it is folded from the journal again, which is recorded, and nothing runs twice", async (_, stale) => {
    await lived(2);
    const now = world.state;
    if (stale === undefined) world.store.damageDocument(ACTOR, undefined);
    else world.store.damageDocument(ACTOR, { ...now, rev: now.rev - stale, journalDigest: "f".repeat(64), mailbox: [] });
    const calls = world.modelCalls;
    const host = world.host("host-2");
    expect(await host.take("tasks", prompt("lived-0"))).toBe("SUCCESS");
    await pass(1_000);
    expect(world.modelCalls).toBe(calls);
    expect(await host.take("tasks", prompt("new"))).toBe("SUCCESS");
    await pass(1_000);
    expect(world.modelCalls).toBe(calls + 1);
    expect(world.events("SessionRepaired")).toMatchObject([{ found: [{ what: stale === undefined ? "document_lost" : "document_stale" }] }]);
    world.checkFold();
  });
});

describe("a journal that is not whole", () => {
  it.each([
    ["a missing entry near the head", (rev: number) => { world.store.damageEntry(ACTOR, rev - 2); }, "journal_gap"],
    ["a missing last entry", (rev: number) => { world.store.damageEntry(ACTOR, rev); }, "journal_gap"],
    ["a changed entry", (rev: number) => { world.store.damageEntry(ACTOR, rev - 1, (entry) => ({ ...entry, events: [{ type: "GuardReleased", generation: 99 }] })); }, "journal_digest"],
  ] as const)("%s quarantines the session: events become dead letters with the reason, until it is released", async (_, damage, reason) => {
    await lived(3);
    damage(world.state.rev);
    const host = world.host("host-2");
    expect(await host.take("tasks", prompt("a"))).toBe("SUCCESS");
    expect(world.state.quarantine).toMatchObject({ reason });
    expect(world.bus.letters).toMatchObject([{ reason: "session_quarantined", kind: "event" }]);
    expect(world.bus.receipts.at(-1)).toMatchObject({ verdict: "session_quarantined" });

    expect(await world.host("host-3").take("tasks", prompt("b"))).toBe("SUCCESS");
    expect(world.events("SessionQuarantined")).toHaveLength(1);

    await host.take("tasks", command(SESSION_RELEASE, "release", { reason: "restored as far as it goes" }));
    expect(world.state.quarantine).toBeUndefined();
    expect(await world.host("host-4").take("tasks", prompt("c"))).toBe("SUCCESS");
    await pass(1_000);
    expect(world.bus.ended.at(-1)).toMatchObject({ outcome: "completed" });
    expect(world.events("SessionQuarantined")).toHaveLength(1);
  });

  it("that goes on behind its document, in another way, is quarantined behind its last entry", async () => {
    await lived(2);
    const now = world.state;
    world.store.damageEntry(ACTOR, 2, (entry) => ({ ...entry, digest: "0".repeat(64) }));
    world.store.damageDocument(ACTOR, { ...now, rev: now.rev - 3 });
    await world.host("host-2").take("tasks", prompt("a"));
    expect(world.state).toMatchObject({ rev: now.rev + 1, quarantine: { reason: "journal_digest" } });
  });

  it("is not let go by a release that was meant for its first damage", async () => {
    await lived(3);
    const release = command(SESSION_RELEASE, "release", { reason: "looked at" });
    for (const name of ["host-2", "host-3"]) {
      world.store.damageEntry(ACTOR, world.state.rev, (entry) => ({ ...entry, digest: "0".repeat(64) }));
      await world.host(name).take("tasks", prompt(name));
      expect(world.state.quarantine).toBeDefined();
      expect(await world.host(`${name}-again`).take("tasks", release)).toBe("SUCCESS");
    }
    expect(world.events("SessionReleased")).toHaveLength(1);
    expect(world.state.quarantine).toBeDefined();
  });

  it("can be closed without a release", async () => {
    await lived(1);
    world.store.damageEntry(ACTOR, world.state.rev);
    const host = world.host("host-2");
    await host.take("tasks", command(SESSION_CLOSE, "close", { reason: "beyond repair" }));
    await quiet();
    expect(world.state.status).toBe("CLOSED");
  });
});

describe("a state that nothing would move any more", () => {
  it("a call whose request and claim are both lost is asked for again, and runs on", async () => {
    const host = world.host();
    await host.take("tasks", prompt("1", "look up A17", { agent: "clerk" }));
    await until("the tool is asked", () => world.bus.requests.length === 1);
    const request = world.bus.requests[0]!;
    world.store.damageDocument(ACTOR, { ...world.state, outbox: [] });
    await world.host("host-2").service.tick(ACTOR);
    expect(world.events("SessionRepaired")).toMatchObject([{ found: [{ what: "request_lost", subject: request.callId }] }]);
    expect(world.bus.requests.at(-1)).toMatchObject({ callId: request.callId, publication: 2, idempotencyKey: request.idempotencyKey });
    await world.host("host-3").take("toolResults", resultOf(request));
    await pass(1_000);
    expect(world.bus.ended).toMatchObject([{ outcome: "completed" }]);
  });

  it("a run without model call, calls or questions calls the model again", async () => {
    const host = world.host();
    await host.take("tasks", prompt("1", "look up A17", { agent: "hand" }));
    await until("the model is called", () => world.hand.calls.length === 1);
    const parts = partsOf(world.state);
    world.store.damageDocument(ACTOR, assemble({ common: parts.common, run: parts.run! }));
    await world.host("host-2").service.tick(ACTOR);
    await until("the model is called again", () => world.hand.calls.length === 2);
    expect(world.events("SessionRepaired")).toMatchObject([{ found: [{ what: "run_stuck" }] }]);
  });

  it("an event of the mailbox whose journal entry is gone ends as failed, with a dead letter, and those behind it run", async () => {
    const host = world.host();
    for (const id of ["running", "gone", "behind"]) await host.take("tasks", prompt(id, id, { agent: "hand" }));
    world.store.damageEntry(ACTOR, world.state.mailbox[0]!.rev);
    world.store.damageDocument(ACTOR, { ...world.state, checkedFromRev: world.state.rev });
    world.dead.add("host-1"); // which still has the entry in memory
    await world.host("host-2").service.tick(ACTOR);
    await until("the model is called again", () => world.hand.calls.length === 2);
    world.hand.last.answer();
    await until("the one behind runs", () => world.hand.calls.length === 3);
    await quiet();
    expect(world.bus.ended.map(({ outcome, code }) => [outcome, code])).toContainEqual(["failed", "event_lost"]);
    expect(world.bus.letters).toMatchObject([{ reason: "event_lost" }]);
  });
});

describe("a repair", () => {
  const entries: JournalEntry[] = [];
  const states: SessionState[] = [NEW_SESSION];

  it.each([["folds a journal of so many entries", 0], ["gives up beyond: quarantine", 1]])("%s", async (_, more) => {
    for (let rev = states.length; rev <= MAX_REBUILT + more; rev += 1) {
      const before = states[rev - 1]!;
      const events: SessionEvent[] = rev === 1 ? [{ type: "SessionOpened", tenant: "default", sessionId: "s", actorId: ACTOR, agent: "echo", agentVersion: "1" }] : [{ type: "CancelRequested", key: String(rev), runId: "r", reason: "x" }];
      const entry: JournalEntry = { v: 1, actorId: ACTOR, rev, commitId: String(rev), atMs: rev, command: "c", host: "h", events, digest: entryDigest(before.status === "NEW" ? "" : before.journalDigest, events) };
      entries.push(entry);
      states.push(evolveAll(before, events, entry));
    }
    const last = states[MAX_REBUILT + more]!;
    const journal = { entries: (fromRev: number, toRev: number) => Promise.resolve(entries.slice(fromRev - 1, toRev)), checkpoint: () => Promise.resolve(undefined) };
    const findings = await examine({ ...last, journalDigest: "0".repeat(64) } as SessionState, journal);
    expect(findings).toMatchObject(more === 0 ? { state: last, found: [{ what: "document_stale" }] } : { found: [], quarantine: { reason: "journal_digest" } });
  });
});
