/** From topic to actor: what cannot be read or routed is a dead letter and acked; an actor that cannot be reached is neither. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { attributesOf, serializeEnvelope, type Envelope } from "../../../src/contracts/cloudevent.js";
import { actorIdOf, eventKeyOf } from "../../../src/contracts/ids.js";
import { SESSION_CANCEL } from "../../../src/contracts/messages.js";
import { Problem } from "../../../src/contracts/problems.js";
import { TOOL_COMPLETED } from "../../../src/contracts/tools.js";
import { unpacked } from "../../../src/platform/letter-parcel.js";
import { createLogger } from "../../../src/platform/log.js";
import { DeadLetters } from "../../../src/session/host/dead-letters.js";
import type { SessionChannel, Target } from "../../../src/session/host/deliveries.js";
import { LEDGER_HORIZON_MS, Router } from "../../../src/session/host/router.js";
import { Refusals } from "../../../src/session/host/refusals.js";
import { MemorySessionStore } from "../../support/memory-session-store.js";
import { FakeBus, prompt, SESSION, World } from "./support.js";

const NOW = Date.parse("2026-01-01T00:00:00Z");
const { catalog } = new World();

function make() {
  const bus = new FakeBus();
  const delivered: { target: Target; channel: SessionChannel; text: string }[] = [];
  const way = { fails: undefined as Error | undefined };
  const deadLetters = new DeadLetters(bus, { nowMs: () => NOW });
  const router = new Router({
    catalog, deadLetters, refusals: new Refusals({ store: new MemorySessionStore(), bus, deadLetters, clock: { nowMs: () => NOW } }), logger: createLogger("test", "silent"), nowMs: () => NOW,
    deliver: async (target, channel, text) => { if (way.fails !== undefined) throw way.fails; delivered.push({ target, channel, text }); },
  });
  return { bus, delivered, router, way };
}

const event = (about: Partial<Envelope> = {}): Envelope => ({ specversion: "1.0", id: "1", source: "shop", type: "shop.order.created", data: '{"order":"A1"}', ...about });
const deep = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;

describe("router", () => {
  it.each<[string, SessionChannel, string, string]>([
    ["nothing", "tasks", "", "not_json"],
    ["half of a text", "tasks", '{"specversion":"1.0","id":', "not_json"],
    ["a number", "tasks", "7", "not_a_cloudevent"],
    ["null", "toolResults", "null", "not_a_cloudevent"],
    ["a list", "approvalsResolved", "[]", "not_a_cloudevent"],
    ["an object without attributes", "tasks", "{}", "not_a_cloudevent"],
    ["another version of CloudEvents", "tasks", serializeEnvelope({ ...event(), specversion: "0.3" as "1.0" }), "not_a_cloudevent"],
    ["a tenant with a slash", "tasks", serializeEnvelope(event({ tenant: "a/b" })), "not_a_cloudevent"],
    ["a subject with a line end", "tasks", serializeEnvelope(event({ subject: "a\nb" })), "not_a_cloudevent"],
    ["a subject of 201 characters", "tasks", serializeEnvelope(event({ subject: "x".repeat(201) })), "not_a_cloudevent"],
    ["an expiry that is no time", "tasks", serializeEnvelope(event({ expirytime: "tomorrow" })), "not_a_cloudevent"],
    ["an event of 2 MB", "tasks", serializeEnvelope(event({ data: JSON.stringify("x".repeat(2_000_000)) })), "payload_too_large"],
    ["an event of 300 kB", "tasks", serializeEnvelope(event({ data: JSON.stringify("x".repeat(300_000)) })), "payload_too_large"],
    ["a bomb of brackets", "tasks", serializeEnvelope(event({ data: deep(10_000) })), "not_json"],
    ["a key given twice", "tasks", '{"specversion":"1.0","id":"1","id":"2","source":"s","type":"t"}', "not_json"],
    ["an event nobody takes", "tasks", serializeEnvelope(event({ type: "shop.parcel.lost" })), "agent_unknown"],
    ["an event for an unknown agent", "tasks", serializeEnvelope(event({ agent: "clerc" })), "agent_unknown"],
    ["an event whose trigger finds no session", "tasks", serializeEnvelope(event({ data: "{}" })), "session_id_missing"],
    ["an event whose trigger throws", "tasks", serializeEnvelope(event({ data: "null" })), "session_id_missing"],
    ["a session id made of an object", "tasks", serializeEnvelope(event({ data: '{"order":{}}' })), "session_id_missing"],
    ["a command without subject", "tasks", serializeEnvelope(event({ type: SESSION_CANCEL })), "session_id_missing"],
    ["a prompt without subject", "tasks", serializeEnvelope(event({ type: "com.docket.prompt.received.v1" })), "session_id_missing"],
    ["an event from before the ledger", "tasks", serializeEnvelope(event({ time: new Date(NOW - LEDGER_HORIZON_MS - 1).toISOString() })), "too_old"],
    ["a result without address", "toolResults", serializeEnvelope(event({ type: TOOL_COMPLETED })), "validation_failed"],
    ["a result without data", "toolResults", serializeEnvelope(event({ type: TOOL_COMPLETED, data: "null" })), "validation_failed"],
    ["a decision whose session is a number", "approvalsResolved", serializeEnvelope(event({ data: '{"actorId":"a","tenant":"t","sessionId":1}' })), "validation_failed"],
  ])("%s: a dead letter with its reason and its bytes, and acked", async (_name, channel, text, reason) => {
    const { bus, delivered, router } = make();
    expect(await router.handle(channel, text)).toBe("SUCCESS");
    expect(delivered).toEqual([]);
    expect(bus.letters).toHaveLength(1);
    const [letter] = bus.letters.map(unpacked);
    expect(letter).toMatchObject({ reason, payload: text, app: "sessions" });
    const readable = reason !== "not_json" && reason !== "not_a_cloudevent" && text.length < 1_000_000;
    expect(letter?.kind).toBe(readable ? { tasks: "event", toolResults: "tool_result", approvalsResolved: "decision" }[channel] : "unreadable");
    if (readable) expect(letter?.envelope).toMatchObject({ id: "1", source: "shop" });
  });

  it("gives a receipt for an event that it refuses, so that the gateway neither sends it again nor holds back what is behind it", async () => {
    const { bus, router } = make();
    const refused = event({ subject: SESSION, tenant: "default", time: new Date(NOW - LEDGER_HORIZON_MS - 1).toISOString() });
    expect(await router.handle("tasks", serializeEnvelope(refused))).toBe("SUCCESS");
    expect(bus.receipts).toMatchObject([{ tenant: "default", sessionId: SESSION, actorId: "default_order-1", key: eventKeyOf("shop", "1"), rev: 0, verdict: "too_old", deadLetterId: bus.letters[0]!.deadLetterId }]);
    bus.down.add("responses");
    await expect(router.handle("tasks", serializeEnvelope(refused))).rejects.toMatchObject({ retryable: true });
  });

  it("hands any text to its actor or to the dead letters, and never throws for what is in it (I14)", async () => {
    const attribute = fc.oneof(fc.string(), fc.constantFrom("1.0", SESSION, "default", "echo", "clerk", "shop.order.x", "com.docket.prompt.received.v1", SESSION_CANCEL), fc.jsonValue());
    const names = ["specversion", "id", "source", "type", "subject", "time", "tenant", "agent", "busymode", "principal", "expirytime", "traceparent", "data", "data_base64"];
    const shaped = fc.record(Object.fromEntries(names.map((name) => [name, attribute])), { requiredKeys: [] }).map((value) => JSON.stringify({ specversion: "1.0", id: "1", source: "s", type: "shop.order.x", ...value }));
    await fc.assert(fc.asyncProperty(fc.oneof(shaped, fc.json(), fc.string()), fc.constantFrom<SessionChannel>("tasks", "toolResults", "approvalsResolved"), async (text, channel) => {
      const { bus, delivered, router } = make();
      expect(await router.handle(channel, text)).toBe("SUCCESS");
      expect(delivered.length + bus.letters.length).toBe(1);
      for (const { target } of delivered) expect(target.actorId).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    }), { numRuns: 400 });
  });

  it.each<[string, SessionChannel, Envelope, Omit<Target, "actorId">]>([
    ["an event by its agent's trigger", "tasks", event(), { tenant: "default", sessionId: "A1" }],
    ["an event by its subject, where it names its agent", "tasks", event({ agent: "clerk", subject: "given" }), { tenant: "default", sessionId: "given" }],
    ["a prompt by its subject", "tasks", prompt("1"), { tenant: "default", sessionId: SESSION }],
    ["a command by its subject, whatever agent there is", "tasks", event({ type: SESSION_CANCEL, subject: "Zoë's order", tenant: "acme", agent: "gone" }), { tenant: "acme", sessionId: "Zoë's order" }],
    ["a result by its data", "toolResults", event({ type: TOOL_COMPLETED, data: '{"tenant":"acme","sessionId":"s","actorId":"a lie"}' }), { tenant: "acme", sessionId: "s" }],
  ])("%s goes to its session, text and all", async (_name, channel, envelope, { tenant, sessionId }) => {
    const { bus, delivered, router } = make();
    const text = serializeEnvelope(envelope);
    expect(await router.handle(channel, text)).toBe("SUCCESS");
    expect(delivered).toEqual([{ channel, text, target: { tenant, sessionId, actorId: actorIdOf(tenant, sessionId) } }]);
    expect(bus.letters).toEqual([]);
  });

  it("throws when the actor cannot be reached, so that the broker repeats", async () => {
    const { bus, router, way } = make();
    way.fails = new Problem("actor_unavailable", "nobody is there");
    await expect(router.handle("tasks", serializeEnvelope(event()))).rejects.toBe(way.fails);
    way.fails = new TypeError("a bug");
    await expect(router.handle("tasks", serializeEnvelope(event()))).rejects.toBe(way.fails);
    expect(bus.letters).toEqual([]);
  });

  it("throws when a dead letter is not taken: what is not recorded is not acked", async () => {
    const { bus, router } = make();
    bus.down.add("deadLetters");
    await expect(router.handle("tasks", "{")).rejects.toMatchObject({ code: "broker_unavailable" });
  });

  it("gives a poison message one letter however often it comes, and two different ones two", async () => {
    const { bus, router } = make();
    for (const text of ["{", "{", "{{"]) await router.handle("tasks", text);
    expect(new Set(bus.letters.map((letter) => letter.deadLetterId)).size).toBe(2);
    expect(bus.sent[0]?.envelope.id).toBe(bus.sent[1]?.envelope.id);
    expect(attributesOf(bus.sent[0]!.envelope)).not.toHaveProperty("subject");
  });
});
