/** What a host does beyond its limits (docs/limits.md). */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { MAX_DOCUMENT_BYTES } from "../../../src/dapr/session-store.js";
import { APPROVAL_TEND } from "../../../src/contracts/decisions.js";
import { eventKeyOf } from "../../../src/contracts/ids.js";
import { SESSION_CANCEL } from "../../../src/contracts/messages.js";
import { MAX_CALLS, MAX_OUTBOX, RING } from "../../../src/session/core/limits.js";
import { MAX_ARGS_BYTES } from "../../../src/session/core/seal.js";
import { DEFAULT_LIMITS, limitsOf } from "../../../src/session/host/agents.js";
import { MAX_INPUT_CHARS } from "../../../src/session/host/intake.js";
import { ACTOR, command, decisionOn, fakeTime, keyOf, pass, prompt, SESSION, until, World, type Host } from "./support.js";

let world: World;
let host: Host;
beforeEach(() => { fakeTime(); world = new World(); host = world.host(); });
afterEach(() => { vi.useRealTimers(); });

const ask = async (id: string, text = id): Promise<void> => {
  const calls = world.hand.calls.length;
  expect(await host.take("tasks", prompt(id, text, { agent: "hand" }))).toBe("SUCCESS");
  await until("the model is called", () => world.hand.calls.length === calls + 1);
};
const shown = () => world.hand.last.request.messages;

describe("what is too large", () => {
  it("of a message is cut between characters, and the model is told", async () => {
    const room = MAX_INPUT_CHARS - 1;
    await ask("long", `${"x".repeat(room)}😀 and more`);
    const [message] = shown();
    expect(message).toEqual({ role: "user", text: `${"x".repeat(room)}\uFFFD\n[truncated: ${String(room + 11)} characters]` });
  });

  it("of a call's arguments goes back to the model as failed, and no tool hears of it", async () => {
    await ask("a");
    world.hand.last.answer({ stop: "tool_use", calls: [{ id: "p", name: "lookup", args: JSON.stringify({ order: "x".repeat(MAX_ARGS_BYTES) }) }] });
    await until("the model is called again", () => world.hand.calls.length === 2);
    expect(shown().at(-1)).toMatchObject({ role: "tool_results", results: [{ isError: true, text: expect.stringContaining(`the limit is ${String(MAX_ARGS_BYTES)}`) as string }] });
    expect([world.bus.requests, world.events("ToolResultRecorded")]).toMatchObject([[], [{ status: "failed" }]]);
  });

  it("of a document is not written, and the event becomes a dead letter", async () => {
    await host.take("tasks", prompt("a"));
    await pass(1_000);
    const { state } = world;
    world.store.damageDocument(ACTOR, { ...state, recentCommands: ["x".repeat(MAX_DOCUMENT_BYTES)] });
    expect(await world.host("host-2").take("tasks", prompt("b"))).toBe("SUCCESS");
    expect(world.bus.letters).toMatchObject([{ reason: "session_too_large", kind: "event", sessionId: SESSION }]);
    expect(world.store.journalOf(ACTOR)).toHaveLength(state.rev);
  });
});

describe("a full mailbox", () => {
  it("is no larger for an agent that asks for more", () => {
    world.limits("hand", { maxMailbox: 10_000 });
    expect(limitsOf(world.catalog, "hand").maxMailbox).toBe(DEFAULT_LIMITS.maxMailbox);
  });

  it("whose events expire all at once gives each its outcome, no more at a time than the outbox holds", async () => {
    world.limits("hand", { maxMailbox: 256 });
    await ask("running");
    for (let n = 0; n < 200; n += 1) await host.take("tasks", prompt(`e-${String(n)}`, "x", { agent: "hand", expirytime: "2026-01-01T00:00:30Z" }));
    const waiting = world.state.mailbox.length;
    expect(waiting).toBeGreaterThan(MAX_OUTBOX);
    world.hand.last.answer({ stop: "tool_use", calls: Array.from({ length: MAX_CALLS }, (_, n) => ({ id: `p${String(n)}`, name: "refund", args: JSON.stringify({ order: `A${String(n)}` }) })) });
    await until("the document is as full as it gets", () => world.state.approvals.length === MAX_CALLS);
    world.bus.down.add("responses").add("deadLetters");
    await pass(40_000);
    await host.service.tick(ACTOR);
    expect(world.state.outbox).toHaveLength(MAX_OUTBOX);
    world.bus.down.clear();
    for (let round = 0; round < 20 && world.state.mailbox.length > 0; round += 1) { await pass(31_000); await world.reminders.fire(host); }
    await pass(31_000);
    expect(world.events("RunEnded").map(({ outcome }) => outcome)).toEqual(Array.from({ length: waiting }, () => "expired"));
    expect(new Set(world.bus.letters.map((letter) => letter.deadLetterId)).size).toBe(waiting);
    world.checkFold();
  });
});

describe("what the document has forgotten, the ledger knows (RING)", () => {
  it("a command: its repetition does not stop what came later, and its outcome can still be asked for (I2)", async () => {
    for (let n = 0; n <= RING; n += 1) {
      await ask(`run-${String(n)}`);
      expect(await host.take("tasks", command(SESSION_CANCEL, `cancel-${String(n)}`, {}))).toBe("SUCCESS");
    }
    expect(world.state.recentCommands).toHaveLength(RING);
    await ask("later");
    expect(await host.take("tasks", command(SESSION_CANCEL, "cancel-0", {}))).toBe("SUCCESS");
    expect(world.events("RunEnded").map(({ key }) => key)).not.toContain(keyOf("later"));
    expect(world.bus.receipts.at(-1)).toMatchObject({ verdict: "duplicate" });
    expect(await host.service.reads.outcome(ACTOR, eventKeyOf("console", "cancel-0"))).toMatchObject({ state: "ended", outcome: "completed" });
  });

  it("an assignment and a decision: their repetition changes nothing, and writes nothing", async () => {
    await host.take("tasks", prompt("refund", "refund A1", { agent: "clerk" }));
    await until("an approval is pending", () => world.bus.pending.length === 1);
    const pending = world.bus.pending[0]!;
    const assign = (n: number) => command(APPROVAL_TEND, `assign-${String(n)}`, { approvalId: pending.record.approvalId, assignTo: `person-${String(n)}`, snoozeUntilMs: 4_000_000_000_000 });
    const decide = (n: number) => decisionOn(pending, `stale-${String(n)}`, { version: 9 });
    for (let n = 0; n <= RING; n += 1) {
      expect(await host.take("tasks", assign(n))).toBe("SUCCESS");
      expect(await host.take("approvalsResolved", decide(n))).toBe("SUCCESS");
    }
    expect(world.state.recentDecisions).toHaveLength(RING);
    const { rev } = world.state;
    expect(await host.take("tasks", assign(0))).toBe("SUCCESS");
    expect(await host.take("approvalsResolved", decide(0))).toBe("SUCCESS");
    expect(world.state).toMatchObject({ rev, approvals: [{ assignedTo: `person-${String(RING)}` }] });
  });
});
