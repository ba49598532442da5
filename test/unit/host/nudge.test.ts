/** What a nudge repairs: a reader who missed the last entry of a session would otherwise never hear of it. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { APPROVAL_PENDING } from "../../../src/contracts/decisions.js";
import { JOURNAL_APPENDED, JournalBatch } from "../../../src/contracts/journal.js";
import { SESSION_NUDGE } from "../../../src/contracts/messages.js";
import { command, fakeTime, pass, prompt, until, World, type Host } from "./support.js";

let world: World;
let host: Host;
beforeEach(() => {
  fakeTime();
  world = new World();
  host = world.host();
});
afterEach(() => { vi.useRealTimers(); });

const announced = (): number[] => world.bus.envelopes(JOURNAL_APPENDED).flatMap((envelope) => JournalBatch.parse(JSON.parse(envelope.data)).appended.map(({ entry }) => entry.rev));

describe("a nudge", () => {
  it("says the latest entry again, which a host that died after its commit had not said", async () => {
    await host.take("tasks", prompt("a"));
    await pass(1_000);
    world.bus.down.add("journal");
    await pass(61_000);
    await world.reminders.fire(host);
    world.bus.down.clear();
    expect(announced()).not.toContain(world.state.rev);
    expect(await host.take("tasks", command(SESSION_NUDGE, "n1", {}))).toBe("SUCCESS");
    expect(announced().at(-1)).toBe(world.state.rev);
  });

  it("puts an open question before the console again, with what is to be shown of it", async () => {
    await host.take("tasks", prompt("r", "refund A1", { agent: "clerk" }));
    await until("asked", () => world.bus.pending.length === 1);
    const [first] = world.bus.pending;
    await host.take("tasks", command("com.docket.approval.received.v1", "seen", { approvalId: first?.record.approvalId }));
    expect(world.state.outbox).toEqual([]);
    expect(await host.take("tasks", command(SESSION_NUDGE, "n1", {}))).toBe("SUCCESS");
    expect(world.bus.pending).toEqual([first, first]);
    expect(new Set(world.bus.envelopes(APPROVAL_PENDING).map(({ id }) => id)).size).toBe(2);
    expect(world.events("ApprovalOpened")).toHaveLength(1);
  });

  it("changes nothing in a session at rest", async () => {
    await host.take("tasks", prompt("a"));
    await pass(1_000);
    await world.reminders.fire(host);
    const before = world.state;
    expect(await host.take("tasks", command(SESSION_NUDGE, "n1", {}))).toBe("SUCCESS");
    expect(world.state).toEqual(before);
  });
});
