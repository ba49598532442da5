/** What becomes of a delivery: a commit, a no-op, a dead letter with reason and bytes (ack), or a repetition (no ack). */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { serializeEnvelope, type Envelope } from "../../../src/contracts/cloudevent.js";
import { APPROVAL_RECEIVED, DECISION_MADE } from "../../../src/contracts/decisions.js";
import { CHANNELS } from "../../../src/contracts/channels.js";
import { SESSION_CANCEL, SESSION_CLOSE, SESSION_REDRIVE } from "../../../src/contracts/messages.js";
import { Problem } from "../../../src/contracts/problems.js";
import { TOOL_CLAIMED, TOOL_COMPLETED } from "../../../src/contracts/tools.js";
import type { SessionChannel } from "../../../src/session/host/deliveries.js";
import { ACTOR, claimOf, command, decisionOn, fakeTime, keyOf, pass, prompt, quiet, resultOf, SESSION, TARGET, until, World, type Host } from "./support.js";

let world: World;
let host: Host;
beforeEach(() => { fakeTime(); world = new World(); host = world.host(); });
afterEach(() => { vi.useRealTimers(); });

const addressed = { tenant: "default", sessionId: SESSION, actorId: ACTOR };
const report = (type: string, data: object): Envelope => ({ specversion: "1.0", id: "r1", source: "worker", type, data: JSON.stringify(data) });

/** A session that waits for a person's word on a refund. */
async function askedForRefund(): Promise<void> {
  await host.take("tasks", prompt("refund", "refund A1", { agent: "clerk" }));
  await until("an approval is pending", () => world.bus.pending.length === 1);
}
/** A session whose lookup has been sent out. */
async function lookingUp(): Promise<void> {
  await host.take("tasks", prompt("look", "look up A1", { agent: "clerk" }));
  await until("a tool request is out", () => world.bus.requests.length === 1);
}

describe("dead letters: SUCCESS, with the reason and the bytes as they came", () => {
  const cases: readonly { name: string; channel: SessionChannel; reason: string; kind: string; before?: () => Promise<void>; make: () => Envelope; receipt?: boolean }[] = [
    { name: "a cancel whose data does not fit", channel: "tasks", reason: "validation_failed", kind: "event", receipt: true, make: () => command(SESSION_CANCEL, "c", { reason: 5 }) },
    { name: "a close without data", channel: "tasks", reason: "validation_failed", kind: "event", receipt: true, make: () => ({ ...command(SESSION_CLOSE, "c", {}), data: "null" }) },
    { name: "an approval receipt that names nothing", channel: "tasks", reason: "validation_failed", kind: "event", receipt: true, make: () => command(APPROVAL_RECEIVED, "c", { version: 1 }) },
    { name: "a redrive of nothing", channel: "tasks", reason: "validation_failed", kind: "event", receipt: true, make: () => command(SESSION_REDRIVE, "c", { redrive: 0 }) },
    { name: "a redrive of what is not JSON", channel: "tasks", reason: "not_json", kind: "event", receipt: true, make: () => command(SESSION_REDRIVE, "c", { deadLetterId: "d", redrive: 1, event: "{" }) },
    { name: "a redrive of what is no event", channel: "tasks", reason: "not_a_cloudevent", kind: "event", receipt: true, make: () => command(SESSION_REDRIVE, "c", { deadLetterId: "d", redrive: 1, event: "{}" }) },
    { name: "an event for an agent that nobody knows", channel: "tasks", reason: "agent_unknown", kind: "event", receipt: true, make: () => prompt("a", "a", { agent: "ecko" }) },
    { name: "a tool report of an unknown type", channel: "toolResults", reason: "unknown_type", kind: "tool_result", make: () => report("com.docket.tool.shrugged.v1", addressed) },
    { name: "a claim that does not fit", channel: "toolResults", reason: "validation_failed", kind: "tool_result", make: () => report(TOOL_CLAIMED, { ...addressed, callId: 7 }) },
    { name: "a result that does not fit", channel: "toolResults", reason: "validation_failed", kind: "tool_result", make: () => report(TOOL_COMPLETED, { ...addressed, outcome: "great" }) },
    { name: "a result whose proof is no signature", channel: "toolResults", reason: "bad_signature", kind: "tool_result", before: lookingUp, make: () => resultOf(world.bus.requests[0]!, { proof: "forged" }) },
    { name: "a result whose proof is for another session", channel: "toolResults", reason: "bad_signature", kind: "tool_result", before: lookingUp, make: () => resultOf(world.bus.requests[0]!, {}, { sub: "default_other" }) },
    { name: "a result whose proof is for another call", channel: "toolResults", reason: "bad_signature", kind: "tool_result", before: lookingUp, make: () => resultOf(world.bus.requests[0]!, {}, { jti: "call_other" }) },
    { name: "a result whose proof is for another try", channel: "toolResults", reason: "bad_signature", kind: "tool_result", before: lookingUp, make: () => resultOf(world.bus.requests[0]!, {}, { try: 2 }) },
    { name: "a result whose proof is for another outcome", channel: "toolResults", reason: "bad_signature", kind: "tool_result", before: lookingUp, make: () => resultOf(world.bus.requests[0]!, {}, { outcome: "failed" }) },
    { name: "a result whose proof is for another output", channel: "toolResults", reason: "bad_signature", kind: "tool_result", before: lookingUp, make: () => resultOf(world.bus.requests[0]!, {}, { outputDigest: "sha256:00" }) },
    { name: "a decision that does not fit", channel: "approvalsResolved", reason: "validation_failed", kind: "decision", make: () => report(DECISION_MADE, addressed) },
    { name: "a decision with a bad signature", channel: "approvalsResolved", reason: "bad_signature", kind: "decision", before: askedForRefund, make: () => decisionOn(world.bus.pending[0]!, "d1", { jws: "forged" }) },
    { name: "a decision signed for another session", channel: "approvalsResolved", reason: "bad_signature", kind: "decision", before: askedForRefund, make: () => decisionOn(world.bus.pending[0]!, "d1", { sub: "default_other" }) },
    { name: "a decision signed for another approval", channel: "approvalsResolved", reason: "bad_signature", kind: "decision", before: askedForRefund, make: () => decisionOn(world.bus.pending[0]!, "d1", { approvalId: "apr_other" }) },
  ];

  it("an event for another agent than the session's is rejected where its sender looks: in the journal, with a receipt", async () => {
    await host.take("tasks", prompt("first"));
    await pass(1_000);
    await host.take("tasks", prompt("a", "a", { agent: "clerk" }));
    expect(world.store.journalOf(ACTOR).flatMap((entry) => entry.events).filter((event) => event.type === "EventRejected")).toMatchObject([{ code: "agent_mismatch" }]);
    expect(world.bus.receipts.at(-1)).toMatchObject({ verdict: "agent_mismatch" });
    expect(world.bus.letters).toEqual([]);
  });

  it.each(cases)("$name", async ({ channel, reason, kind, before, make, receipt }) => {
    await before?.();
    await pass(1_000);
    const journal = world.store.journalOf(ACTOR).length;
    const receipts = world.bus.receipts.length;
    const text = serializeEnvelope(make());
    expect(await host.take(channel, text)).toBe("SUCCESS");
    expect(world.bus.letters).toHaveLength(1);
    expect(world.bus.letters[0]).toMatchObject({ reason, kind, payload: text, payloadEncoding: "utf8", app: "sessions", topic: CHANNELS[channel].topic, tries: 1 });
    expect(world.bus.letters[0]?.message).not.toBe("");
    expect(world.store.journalOf(ACTOR)).toHaveLength(journal);
    // The gateway is told, so that it does not send the event again.
    expect(world.bus.receipts.slice(receipts)).toMatchObject(receipt === true ? [{ verdict: reason }] : []);
    // Delivered again, it is the same letter.
    expect(await host.take(channel, text)).toBe("SUCCESS");
    expect(new Set(world.bus.letters.map((letter) => letter.deadLetterId)).size).toBe(1);
  });

  it("a decision for a session that is not there", async () => {
    await askedForRefund();
    const pending = { ...world.bus.pending[0]!, sessionId: "gone" };
    const envelope = decisionOn({ ...pending, actorId: "default_gone" }, "d1");
    expect(await host.take("approvalsResolved", envelope)).toBe("SUCCESS");
    expect(world.bus.letters).toMatchObject([{ reason: "session_not_found", kind: "decision", sessionId: "gone" }]);
  });

  it("an event that has expired: before any model is called, as it came", async () => {
    const event = prompt("late", "too late 9007199254740993", { expirytime: "2025-12-31T23:59:59Z" });
    expect(await host.take("tasks", event)).toBe("SUCCESS");
    await until("the letter is out", () => world.bus.letters.length === 1);
    expect(world.bus.letters[0]).toMatchObject({ reason: "expired", kind: "event" });
    expect(JSON.parse(world.bus.letters[0]!.payload)).toMatchObject({ id: "late", source: "test", subject: SESSION, agent: "echo", data: JSON.parse(event.data) as object });
    expect(world.bus.ended).toMatchObject([{ key: keyOf("late"), outcome: "expired" }]);
    expect(world.bus.receipts).toMatchObject([{ verdict: "accepted" }]);
    expect(world.modelCalls).toBe(0);
  });

  it("an event older than the ledger remembers", async () => {
    const text = serializeEnvelope(prompt("old", "old", { time: "2025-11-01T00:00:00Z" }));
    expect(await host.take("tasks", text)).toBe("SUCCESS");
    expect(world.bus.letters).toMatchObject([{ reason: "too_old", kind: "event", payload: text }]);
    expect(world.store.journalOf(ACTOR)).toEqual([]);
  });

  it("an event that finds the mailbox full, and it is the one outcome of that event (I1)", async () => {
    for (const id of ["running", "waiting-1", "waiting-2"]) expect(await host.take("tasks", prompt(id, id, { agent: "hand" }))).toBe("SUCCESS");
    const text = serializeEnvelope(prompt("too-many", "too many", { agent: "hand" }));
    expect(await host.take("tasks", text)).toBe("SUCCESS");
    expect(world.bus.letters).toMatchObject([{ reason: "mailbox_full", kind: "event", payload: text }]);
    expect(world.bus.receipts.at(-1)).toMatchObject({ key: keyOf("too-many"), verdict: "mailbox_full" });
    expect(world.events("EventReceived").map((event) => event.id)).toEqual(["running", "waiting-1", "waiting-2"]);
  });
});

describe("a document that fills up (I9, I14)", () => {
  it("takes no more events while there is still room for all that the open run may add", async () => {
    world.limits("hand", { maxMailbox: 256 });
    const about = { agent: "hand", expirytime: "2026-02-01T00:00:00Z" };
    await host.take("tasks", prompt("first", "first", about));
    await until("the model is called", () => world.hand.calls.length === 1);
    for (const busymode of ["enqueue", "steer"]) {
      for (let n = 0; n < 256; n += 1) expect(await host.take("tasks", prompt(`${busymode}-${String(n)}`, "x", { ...about, busymode }))).toBe("SUCCESS");
    }
    expect(world.bus.letters.length).toBeGreaterThan(0);
    expect(new Set(world.bus.letters.map((letter) => letter.reason))).toEqual(new Set(["mailbox_full"]));
    expect(world.events("EventReceived").length).toBeGreaterThan(200);
    world.hand.last.answer({ stop: "tool_use", calls: Array.from({ length: 16 }, (_, n) => ({ id: `p${String(n)}`, name: "refund", args: JSON.stringify({ order: `A${String(n)}` }) })) });
    await until("sixteen people's questions are open", () => world.state.approvals.length === 16);
    expect(Buffer.byteLength(JSON.stringify(world.state))).toBeLessThan(64 * 1024);
    world.checkFold();
  });
});

describe("failures of the way: RETRY, never a dead letter", () => {
  it("the store is down, whatever comes in", async () => {
    await askedForRefund();
    await pass(61_000);
    world.store.down = true;
    const deliveries: [SessionChannel, Envelope][] = [
      ["tasks", prompt("a")], ["tasks", command(SESSION_CANCEL, "c", {})], ["approvalsResolved", decisionOn(world.bus.pending[0]!, "d1")],
      ["toolResults", resultOf({ ...world.bus.pending[0]!, runId: "r", callId: "c", tool: "refund", args: "{}", argsDigest: "", try: 1, publication: 1, idempotencyKey: "", deadlineAtMs: 1, grant: "" })],
    ];
    for (const [channel, envelope] of deliveries) expect(await host.take(channel, envelope)).toBe("RETRY");
    expect(world.bus.letters).toEqual([]);
    world.store.down = false;
    expect(await host.take("approvalsResolved", decisionOn(world.bus.pending[0]!, "d1"))).toBe("SUCCESS");
  });

  it("the receipt cannot be published: the event is accepted, and repeated until the receipt is out", async () => {
    world.bus.down.add("responses");
    expect(await host.take("tasks", prompt("a"))).toBe("RETRY");
    expect(await host.take("tasks", prompt("a"))).toBe("RETRY");
    world.bus.down.clear();
    expect(await host.take("tasks", prompt("a"))).toBe("SUCCESS");
    expect(world.bus.receipts).toMatchObject([{ key: keyOf("a"), verdict: "duplicate" }]);
    expect(world.events("EventReceived")).toHaveLength(1);
  });

  it("a dead letter cannot be published: nothing is acked that is not recorded", async () => {
    world.bus.down.add("deadLetters");
    const letter = command(SESSION_CANCEL, "c", { reason: 5 });
    expect(await host.take("tasks", letter)).toBe("RETRY");
    expect(await host.take("tasks", "not even JSON")).toBe("RETRY");
    expect(world.bus.receipts).toEqual([]);
    world.bus.down.clear();
    expect(await host.take("tasks", letter)).toBe("SUCCESS");
    expect(world.bus.letters).toHaveLength(1);
  });

  it("too many publications wait for the broker: the event stays with the broker until they are out", async () => {
    const refused = (id: string): Envelope => prompt(id, id, { agent: "strict" });
    world.bus.down.add("responses");
    for (let n = 0; n < 64; n += 1) await host.take("tasks", refused(String(n)));
    expect(world.state.outbox).toHaveLength(64);
    const one = refused("one more");
    await expect(host.deliveries.handle(TARGET, "tasks", serializeEnvelope(one))).rejects.toSatisfy((error) => error instanceof Problem && error.code === "broker_unavailable" && error.retryable);
    expect(await host.take("tasks", one)).toBe("RETRY");
    expect(world.events("EventReceived")).toHaveLength(64);
    expect(world.bus.letters).toEqual([]);
    world.bus.down.clear();
    await pass(31_000);
    await world.reminders.fire(host);
    await pass(1_000);
    expect(await host.take("tasks", one)).toBe("SUCCESS");
    expect(world.bus.ended.filter((ended) => ended.key === keyOf("one more"))).toHaveLength(1);
    world.checkFold();
  });
});

describe("receipts", () => {
  it("tell of every task what became of it, once for each delivery", async () => {
    const cancel = command(SESSION_CANCEL, "c1", { reason: "enough" });
    const event = prompt("a", "a", { agent: "hand" });
    for (const task of [event, event, prompt("b", "b", { agent: "hand", busymode: "reject" }), cancel, cancel, command(SESSION_CANCEL, "c2", {}), command(SESSION_CLOSE, "c3", { reason: "done" }), prompt("d", "d", { agent: "hand" })]) {
      await host.take("tasks", task);
      await pass(1);
    }
    expect(world.bus.receipts.map((receipt) => receipt.verdict)).toEqual(["accepted", "duplicate", "accepted", "accepted", "duplicate", "not_found", "accepted", "session_closed"]);
    expect(world.bus.receipts.every((receipt) => receipt.sessionId === SESSION && receipt.actorId === ACTOR)).toBe(true);
    const ids = world.bus.sent.filter(({ channel }) => channel === "responses").map(({ envelope }) => envelope.id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("of a redrive name the redrive, so that the console's inbox row is dropped; the dead event runs as a new one", async () => {
    await host.take("tasks", prompt("late", "please", { expirytime: "2025-12-31T23:59:59Z" }));
    await pass(1_000);
    const letter = world.bus.letters[0]!;
    const redrive = command(SESSION_REDRIVE, "redrive-1", { deadLetterId: letter.deadLetterId, event: letter.payload, redrive: 1 });
    expect(await host.take("tasks", redrive)).toBe("SUCCESS");
    expect(await host.take("tasks", redrive)).toBe("SUCCESS");
    await pass(1_000);
    expect(world.bus.receipts.slice(-2).map((receipt) => receipt.verdict)).toEqual(["accepted", "duplicate"]);
    expect(world.events("EventReceived").at(-1)).toMatchObject({ id: "late#redrive-1", causationId: letter.deadLetterId });
    expect(world.bus.ended.at(-1)).toMatchObject({ outcome: "completed", text: "You said: please" });
    expect(world.modelCalls).toBe(1);
  });
});

describe("tools and people", () => {
  it("a refund goes out once a person has approved it, and its result comes back to the model", async () => {
    await askedForRefund();
    expect(world.bus.requests).toEqual([]);
    expect(await host.take("tasks", command(APPROVAL_RECEIVED, "seen", { approvalId: world.bus.pending[0]!.record.approvalId }))).toBe("SUCCESS");
    expect(world.state.outbox.filter((row) => row.kind === "approval_pending")).toEqual([]);
    expect(await host.take("approvalsResolved", decisionOn(world.bus.pending[0]!, "d1"))).toBe("SUCCESS");
    await until("the request is out", () => world.bus.requests.length === 1);
    const [request] = world.bus.requests;
    expect(request).toMatchObject({ tool: "refund", args: '{"order":"A1"}', try: 1 });
    await host.take("toolResults", claimOf(request!));
    expect(world.state.outbox.filter((row) => row.kind === "tool_request")).toEqual([]);
    await host.take("toolResults", resultOf(request!, { output: "refunded 9007199254740993" }));
    await host.take("toolResults", resultOf(request!, { output: "refunded 9007199254740993" }));
    await until("the run ends", () => world.bus.ended.length === 1);
    expect(world.bus.ended[0]).toMatchObject({ outcome: "completed", text: "It is done: refunded 9007199254740993" });
    expect(world.events("ToolResultRecorded")).toHaveLength(1);
    expect(world.bus.letters).toEqual([]);
    world.checkFold();
  });

  it("tells the verdict on a decision to who asks for it, also when it was refused, repeated, or long ago", async () => {
    await askedForRefund();
    const [pending] = world.bus.pending;
    expect(await host.service.reads.decision(ACTOR, "d2")).toEqual({ known: false });
    await host.take("approvalsResolved", decisionOn(pending!, "d1", { principal: { id: "bob", class: "person", roles: [] } }));
    await host.take("approvalsResolved", decisionOn(pending!, "d2", { kind: "reject", text: "no" }));
    await host.take("approvalsResolved", decisionOn(pending!, "d2", { kind: "reject", text: "no" }));
    await host.take("approvalsResolved", decisionOn(pending!, "d3"));
    expect(await host.service.reads.decision(ACTOR, "d1")).toMatchObject({ known: true, verdict: "not_an_approver" });
    expect(await host.service.reads.decision(ACTOR, "d2")).toMatchObject({ known: true, verdict: "rejected" });
    expect(await host.service.reads.decision(ACTOR, "d3")).toMatchObject({ known: true, verdict: "already_decided" });
    expect(world.events("DecisionRecorded")).toHaveLength(1);
    expect(world.bus.letters).toEqual([]);
    await quiet();
    expect(world.bus.requests).toEqual([]);
  });

  it("edited arguments are sealed anew and run as edited; those that do not fit change nothing (I5, I10)", async () => {
    await askedForRefund();
    const [pending] = world.bus.pending;
    await host.take("approvalsResolved", decisionOn(pending!, "d1", { kind: "modify", args: '{"order":7}' }));
    expect(await host.service.reads.decision(ACTOR, "d1"), "with the place and what was expected there").toMatchObject({ known: true, verdict: "arguments_invalid", message: expect.stringMatching(/\/order: got 7 \(a number\), expected: it must be string/) as string });
    await host.take("approvalsResolved", decisionOn(pending!, "d2", { kind: "modify", args: '{"order":"B2"}' }));
    expect(await host.service.reads.decision(ACTOR, "d2")).toMatchObject({ known: true, verdict: "modified" });
    await until("the request is out", () => world.bus.requests.length === 1);
    expect(world.bus.requests[0]).toMatchObject({ args: '{"order":"B2"}' });
  });

  it("an output beyond the inline limit is kept whole beside the journal", async () => {
    await lookingUp();
    const output = "z".repeat(20_000);
    await host.take("toolResults", resultOf(world.bus.requests[0]!, { output }));
    const content = world.events("ToolResultRecorded")[0]?.content;
    expect(content).toMatchObject({ truncated: true, blob: { bytes: 20_000 } });
    expect(await world.store.readBlob(content!.blob!.key)).toBe(output);
  });
});
