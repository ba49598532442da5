/** What goes out for each outbox row, again and again the same inside, until there is evidence (DESIGN 3: outbox). */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { parseEnvelope } from "../../../src/contracts/cloudevent.js";
import { eventKeyOf } from "../../../src/contracts/ids.js";
import { CHANNELS } from "../../../src/contracts/channels.js";
import { APPROVAL_PENDING } from "../../../src/contracts/decisions.js";
import { RUN_ENDED, SESSION_CLOSE } from "../../../src/contracts/messages.js";
import { TOOL_REQUESTED } from "../../../src/contracts/tools.js";
import { publicationOf, type PublicationSource } from "../../../src/session/host/publications.js";
import { ACTOR, claimOf, command, decisionOn, fakeTime, keyOf, pass, prompt, quiet, readSigned, resultOf, SESSION, signed, until, World, type Host } from "./support.js";

let world: World;
let host: Host;
let source: PublicationSource;
beforeEach(() => {
  fakeTime();
  world = new World();
  host = world.host();
  source = { entries: (from, to) => world.store.readEntries(ACTOR, from, to), readBlob: (key) => world.store.readBlob(key), signer: { sign: (claims) => Promise.resolve(signed(claims)) } };
});
afterEach(() => { vi.useRealTimers(); });

async function lookingUp(): Promise<void> {
  await host.take("tasks", prompt("look", "look up A1", { agent: "clerk", correlationid: "corr-1" }));
  await until("a tool request is out", () => world.bus.requests.length === 1);
}

describe("the message of a row (its schema is checked by the bus)", () => {
  it("tool_request: the sealed arguments with a grant for exactly this call", async () => {
    await lookingUp();
    const [request] = world.bus.requests;
    const [call] = world.state.status === "EXECUTING_TOOL" ? world.state.run.calls : [];
    expect(request).toMatchObject({ sessionId: SESSION, actorId: ACTOR, agent: "clerk", tool: "lookup", args: '{"order":"A1"}', argsDigest: call?.argsDigest, try: 1, publication: 1, idempotencyKey: call?.callId, correlationId: "corr-1" });
    expect(readSigned(request!.grant)).toEqual({ iss: "docket/sessions", aud: "docket/tools", sub: ACTOR, jti: call?.callId, tool: "lookup", digest: call?.argsDigest, iat: Math.floor(call!.grant!.issuedAtMs / 1000), exp: Math.floor(call!.grant!.expiresAtMs / 1000) });
    expect(world.bus.envelopes(TOOL_REQUESTED)[0]).toMatchObject({ partitionkey: "lookup", correlationid: "corr-1", subject: SESSION, tenant: "default" });
  });

  it("tool_request, published again: another event id, the same grant and the same idempotency key", async () => {
    await lookingUp();
    await pass(16_000);
    await host.service.tick(ACTOR);
    expect(world.bus.requests).toHaveLength(2);
    const [first, second] = world.bus.requests;
    expect(second).toEqual({ ...first, publication: 2 });
    const ids = world.bus.envelopes(TOOL_REQUESTED).map((envelope) => envelope.id);
    expect(new Set(ids).size).toBe(2);
  });

  it("tool_request of a second try: the grant that was minted once", async () => {
    await lookingUp();
    const [first] = world.bus.requests;
    await host.take("toolResults", claimOf(first!));
    await host.take("toolResults", resultOf(first!, { outcome: "failed", output: "", failure: { kind: "transient", message: "busy" } }));
    await pass(2_000);
    await until("the second try is out", () => world.bus.requests.length === 2);
    const [, second] = world.bus.requests;
    expect(second).toMatchObject({ try: 2, publication: 1, idempotencyKey: first?.idempotencyKey, grant: first?.grant });
  });

  it("approval_pending: what is asked, whole, with what led to it", async () => {
    await host.take("tasks", prompt("r", "refund A1", { agent: "clerk" }));
    await until("asked", () => world.bus.pending.length === 1);
    expect(world.bus.pending[0]).toMatchObject({ sessionId: SESSION, agent: "clerk", args: '{"order":"A1"}', rationale: "I refund it.", trigger: '{"text":"refund A1"}', record: { kind: "tool_call", tool: "refund", requestedBy: "rita", version: 1 } });
    await pass(31_000);
    await host.service.tick(ACTOR);
    expect(world.bus.pending).toHaveLength(2);
    expect(world.bus.pending[1]).toEqual(world.bus.pending[0]);
    const ids = world.bus.envelopes(APPROVAL_PENDING).map((envelope) => envelope.id);
    expect(new Set(ids).size).toBe(2);
  });

  it("approval_pending of an escalation: a question without arguments", async () => {
    await host.take("tasks", prompt("a", "a", { agent: "hand" }));
    for (let n = 0; n < 3; n += 1) { await pass(6_000); await host.service.tick(ACTOR); await world.reminders.fire(world.host()); }
    await until("asked", () => world.bus.pending.length >= 1);
    const [pending] = world.bus.pending;
    expect(pending).toMatchObject({ args: "{}", record: { kind: "escalation" } });
    expect(pending?.rationale).toBe(pending?.record.question);
  });

  it("response: how a run ended, and how an event ended that never ran", async () => {
    await host.take("tasks", prompt("a", "a", { agent: "hand" }));
    await host.take("tasks", prompt("b", "b", { agent: "hand" }));
    await host.take("tasks", command(SESSION_CLOSE, "c", { reason: "over" }));
    await until("both are told", () => world.bus.ended.length === 2);
    expect(world.bus.ended.map(({ key, outcome, code, text }) => ({ key, outcome, code, text })).sort((x, y) => x.outcome.localeCompare(y.outcome))).toEqual([
      { key: keyOf("a"), outcome: "cancelled", code: "session_closed", text: "over" },
      { key: keyOf("b"), outcome: "rejected", code: "session_closed", text: "the session was closed: over" },
    ]);
  });

  it("dead_letter of a tool call: tool, arguments, last error, and the event behind it, which a redrive delivers again", async () => {
    await lookingUp();
    for (let attempt = 1; attempt <= 2; attempt += 1) {
      await until("a try is out", () => world.bus.requests.length === attempt);
      await host.take("toolResults", resultOf(world.bus.requests.at(-1)!, { outcome: "failed", output: "", failure: { kind: "transient", message: "the shop is closed" } }));
      await pass(3_000);
    }
    await until("the letter is out", () => world.bus.letters.length === 1);
    const [letter] = world.bus.letters;
    expect(letter).toMatchObject({ kind: "tool_request", reason: "transient", message: "the shop is closed", tries: 2, tool: "lookup", callId: world.bus.requests[0]?.callId, topic: CHANNELS.toolRequests.topic, envelope: { id: "look" } });
    const payload = JSON.parse(letter!.payload) as { tool: string; args: string; error: string; event: string };
    expect(payload).toMatchObject({ tool: "lookup", args: '{"order":"A1"}', error: "the shop is closed" });
    const event = parseEnvelope(payload.event);
    expect(event).toMatchObject({ id: "look", source: "test", subject: SESSION, agent: "clerk", data: '{"text":"look up A1"}' });
    expect(eventKeyOf(event.source, event.id)).toBe(keyOf("look"));
  });

  it("dead_letter of a large event: all of it", async () => {
    const text = "x".repeat(50_000);
    await host.take("tasks", prompt("late", text, { expirytime: "2025-12-31T23:59:59Z" }));
    await until("the letter is out", () => world.bus.letters.length === 1);
    expect(JSON.parse(world.bus.letters[0]!.payload)).toMatchObject({ data: { text } });
  });

  it("none where the row's subject is gone", async () => {
    await lookingUp();
    const state = world.state;
    for (const kind of ["tool_request", "approval_pending", "response", "dead_letter"] as const) {
      expect(await publicationOf(state, { rowId: "x", kind, rev: 1, subject: "gone", publication: 1, publishedAtMs: 1 }, source)).toBeUndefined();
    }
  });
});

describe("rows are cleared by evidence", () => {
  it("a tool request by its claim, an approval by its decision, and not by a publish that went well", async () => {
    await host.take("tasks", prompt("r", "refund A1", { agent: "clerk" }));
    await until("asked", () => world.bus.pending.length === 1);
    await pass(5_000);
    expect(world.state.outbox.map((row) => row.kind)).toEqual(["approval_pending"]);
    await host.take("approvalsResolved", decisionOn(world.bus.pending[0]!, "d1"));
    await until("the request is out", () => world.bus.requests.length === 1);
    await pass(5_000);
    expect(world.state.outbox.map((row) => row.kind)).toEqual(["tool_request"]);
    await host.take("toolResults", claimOf(world.bus.requests[0]!));
    expect(world.state.outbox).toEqual([]);
  });

  it("a response by the next commit, on the way, with no commit of its own", async () => {
    await host.take("tasks", prompt("a"));
    await until("told", () => world.bus.ended.length === 1);
    expect(world.state.outbox).toHaveLength(1);
    await host.take("tasks", prompt("b", "b", { agent: "echo" }));
    const entry = world.store.journalOf(ACTOR).find((one) => one.events.some((event) => event.type === "PublicationsCleared"));
    expect(entry?.command).toBe("ReceiveEvent");
    await pass(5_000);
    expect(world.store.journalOf(ACTOR).filter((one) => one.command === "Tick")).toHaveLength(1);
    expect(world.state.outbox).toEqual([]);
    world.checkFold();
  });

  it("a response by a commit of its own where none comes within the guard's period", async () => {
    await host.take("tasks", prompt("a"));
    await until("told", () => world.bus.ended.length === 1);
    await pass(4_999);
    expect(world.state.outbox).toHaveLength(1);
    await pass(1);
    expect(world.state.outbox).toEqual([]);
    expect(world.store.journalOf(ACTOR).at(-1)?.command).toBe("Tick");
  });

  it("a response that the broker did not take is published again by the guard, and then cleared", async () => {
    world.bus.down.add("responses");
    await host.take("tasks", prompt("a"));
    await pass(5_000);
    expect(world.state.outbox).toHaveLength(1);
    world.bus.down.clear();
    await pass(26_000);
    await world.reminders.fire(host);
    await pass(300);
    expect(world.bus.ended).toHaveLength(1);
    expect(world.bus.envelopes(RUN_ENDED)[0]?.id).toMatch(/:2$/);
    expect(world.state.outbox).toEqual([]);
  });

  it("a publication that comes through late, after another one was confirmed, does not hold up later ones", async () => {
    let release: () => void = () => undefined;
    world.bus.slow = { channel: "responses", until: new Promise((resolve) => { release = resolve; }) };
    const delivery = host.take("tasks", prompt("a"));
    await quiet();
    world.bus.slow = undefined;
    await pass(31_000);
    await host.service.tick(ACTOR);
    await pass(1_000);
    expect(world.state.outbox).toEqual([]);
    release();
    expect(await delivery).toBe("SUCCESS");
    await pass(1_000);
    for (const id of ["b", "c"]) {
      await host.take("tasks", prompt(id));
      await until("told", () => world.bus.ended.some((ended) => ended.key === keyOf(id)));
      await pass(5_000);
      expect(world.state.outbox, `after ${id}`).toEqual([]);
    }
  });

  it("a confirmation that failed is made up for by the next commit", async () => {
    await host.take("tasks", prompt("a"));
    await until("told", () => world.bus.ended.length === 1);
    world.store.failNext("before");
    await pass(5_000);
    expect(world.state.outbox).toHaveLength(1);
    await host.take("tasks", prompt("b"));
    await until("told", () => world.bus.ended.length === 2);
    await pass(5_000);
    expect(world.state.outbox).toEqual([]);
    world.checkFold();
  });

  it("after a stop nothing more is written: what is left is the next host's", async () => {
    await host.take("tasks", prompt("a"));
    await until("told", () => world.bus.ended.length === 1);
    void host.service.stop();
    const { length } = world.store.journalOf(ACTOR);
    await pass(60_000);
    expect(world.store.journalOf(ACTOR)).toHaveLength(length);
    const other = world.host("host-2");
    await world.reminders.fire(other);
    await pass(5_000);
    expect(world.state.outbox).toEqual([]);
  });
});
