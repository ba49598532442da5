/** Which agent takes an event, and to which session it goes; what users wrote may misbehave in every way (I14). */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AgentDefinition, AgentEvent } from "../../../src/agent/definition.js";
import { checkEvent, inputOf, prepareEvent, toAgentEvent } from "../../../src/agent/event.js";
import { matchesType, routeEvent } from "../../../src/agent/route.js";
import type { Envelope } from "../../../src/contracts/cloudevent.js";

const agent = (name: string, overrides: Partial<AgentDefinition> = {}): AgentDefinition => ({ name, version: "1", description: "d", instructions: "i", tools: [], triggers: [], ...overrides });
const envelope = (overrides: Partial<Envelope> = {}): Envelope => ({ specversion: "1.0", id: "e1", source: "/x", type: "shop.order.placed", data: "{\"order\":{\"id\":7}}", ...overrides });
const orders = agent("orders", { triggers: [{ types: ["shop.order.*"], session: (event) => `order-${String((event.data as { order: { id: number } }).order.id)}` }, { types: ["shop.note"] }] });
const mail = agent("mail", { triggers: [{ types: ["shop.order.placed", "mail.*"] }] });
const agents = [orders, mail];

describe("routeEvent", () => {
  it("takes the first agent with a matching trigger, and the trigger's session", () => {
    expect(routeEvent(agents, envelope())).toEqual({ ok: true, agent: orders, sessionId: "order-7" });
    expect(routeEvent(agents, envelope({ subject: "ignored" }))).toMatchObject({ sessionId: "order-7" });
  });

  it("takes the subject where the trigger derives nothing", () => {
    expect(routeEvent(agents, envelope({ type: "mail.in", subject: "thread-1" }))).toEqual({ ok: true, agent: mail, sessionId: "thread-1" });
  });

  it("an explicit agent wins, and then the subject; without one its trigger derives the session", () => {
    expect(routeEvent(agents, envelope({ agent: "mail", subject: "s" }))).toMatchObject({ agent: mail, sessionId: "s" });
    expect(routeEvent(agents, envelope({ agent: "orders", subject: "s" }))).toMatchObject({ agent: orders, sessionId: "s" });
    expect(routeEvent(agents, envelope({ agent: "orders" }))).toMatchObject({ agent: orders, sessionId: "order-7" });
    expect(routeEvent(agents, envelope({ agent: "orders", type: "other", subject: "s" }))).toMatchObject({ agent: orders, sessionId: "s" });
  });

  it("a prompt goes to the named or to the default agent, never to a trigger", () => {
    const prompt = envelope({ type: "com.docket.prompt.received.v1", subject: "s", data: "{\"text\":\"hi\"}" });
    const greedy = agent("greedy", { triggers: [{ types: ["*"] }] });
    expect(routeEvent([greedy, ...agents], prompt)).toMatchObject({ ok: false, problem: { code: "agent_unknown" } });
    expect(routeEvent([greedy, ...agents], prompt, { defaultAgent: "mail" })).toMatchObject({ agent: mail, sessionId: "s" });
    expect(routeEvent(agents, { ...prompt, agent: "orders" }, { defaultAgent: "mail" })).toMatchObject({ agent: orders });
  });

  it.each([
    ["an unknown agent", envelope({ agent: "ordrs", subject: "s" }), "agent_unknown", /did you mean "orders"\?/],
    ["an unknown type", envelope({ type: "other" }), "agent_unknown", /no agent has a trigger/],
    ["no subject", envelope({ type: "mail.in" }), "session_id_missing", /no subject/],
    ["an explicit agent without any session", envelope({ type: "other", agent: "mail" }), "session_id_missing", /no subject/],
    ["data that makes the function throw", envelope({ data: "null" }), "session_id_missing", /failed: Cannot read/],
  ])("%s is a problem", (_, event, code, message) => {
    const routed = routeEvent(agents, event);
    expect(routed).toMatchObject({ ok: false, problem: { code } });
    if (!routed.ok) expect(routed.problem.message).toMatch(message);
  });

  it.each([
    ["undefined", () => undefined], ["an empty text", () => ""], ["a number", () => 7 as never], ["control characters", () => "a\nb"], ["too long a text", () => "x".repeat(201)],
    ["a promise", (() => Promise.reject(new Error("later"))) as never], ["a throw of nothing", () => { throw undefined; }], // eslint-disable-line @typescript-eslint/only-throw-error -- what users write may throw anything
  ])("a session function that gives %s is a problem, never a crash", (_, session: (event: AgentEvent) => string | undefined) => {
    expect(routeEvent([agent("a", { triggers: [{ types: ["*"], session }] })], envelope())).toMatchObject({ ok: false, problem: { code: "session_id_missing" } });
  });

  it("never throws (fuzz)", () => {
    fc.assert(fc.property(fc.string(), fc.string(), fc.option(fc.string(), { nil: undefined }), fc.json(), (type, subject, named, data) => {
      const event = envelope({ type, subject, data, ...(named === undefined ? {} : { agent: named }) });
      expect(typeof routeEvent(agents, event).ok).toBe("boolean");
    }));
  });

  it.each([["a.b", "a.b", true], ["a.b", "a.bc", false], ["a.*", "a.b.c", true], ["a.*", "a", false], ["*", "anything", true], ["a*", "ab", true]])("pattern %s, type %s: %s", (pattern, type, expected) => {
    expect(matchesType(pattern, type)).toBe(expected);
  });
});

describe("an agent's own functions", () => {
  const event = toAgentEvent(envelope({ data: "{\"id\":9007199254740993,\"total\":1.5}", subject: "s" }));

  it("see data with all digits", () => {
    expect(event).toEqual({ id: "e1", source: "/x", type: "shop.order.placed", subject: "s", data: { id: 9007199254740993n, total: 1.5 } });
  });

  it.each([
    ["no check", undefined, { ok: true }],
    ["a refusal", () => ({ ok: false as const, code: "total_zero", message: "nothing to do" }), { ok: false, code: "total_zero", message: "nothing to do" }],
    ["a throw", () => { throw new Error("boom"); }, { ok: false, code: "check_failed" }],
    ["true", (() => true) as never, { ok: false, code: "check_failed" }],
    ["nothing", (() => undefined) as never, { ok: false, code: "check_failed" }],
    ["a refusal without code", (() => ({ ok: false })) as never, { ok: false, code: "check_failed" }],
    ["a promise", (() => Promise.resolve({ ok: true })) as never, { ok: false, code: "check_failed" }],
  ])("check: %s", (_, check, expected) => {
    expect(checkEvent(agent("a", check === undefined ? {} : { check }), event)).toMatchObject(expected);
  });

  it("input: the text of a prompt, else the whole event as JSON with all digits", () => {
    expect(inputOf(agent("a"), toAgentEvent(envelope({ data: "{\"text\":\"hi\"}" })))).toEqual({ ok: true, text: "hi" });
    expect(inputOf(agent("a"), event)).toMatchObject({ ok: true, text: expect.stringContaining("\"data\":{\"id\":9007199254740993,\"total\":1.5}") as string });
    expect(inputOf(agent("a"), toAgentEvent(envelope({ data: "null" })))).toMatchObject({ ok: true });
  });

  it("input: a throw, or no text, is a refusal", () => {
    expect(inputOf(agent("a", { input: () => { throw new Error("boom"); } }), event)).toMatchObject({ ok: false, code: "input_failed" });
    expect(inputOf(agent("a", { input: () => " " }), event)).toMatchObject({ ok: false, code: "input_failed" });
    expect(prepareEvent(agent("a", { input: () => 7 as never }), event)).toMatchObject({ check: { ok: false, code: "input_failed" }, input: "" });
    expect(prepareEvent(agent("a", { input: () => "go" }), event)).toEqual({ check: { ok: true }, input: "go" });
  });
});
