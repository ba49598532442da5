/**
 * Owns: session hosts with hand-driven surroundings: one store, one broker, one scheduler, one clock for all of them, and
 * the composition of src/main/sessions.ts over it. What the broker gets is checked against the schema of its type.
 */
import { setImmediate as yieldToOthers } from "node:timers/promises";
import { expect, vi } from "vitest";
import type { z } from "zod";
import type { AgentDefinition } from "../../../src/agent/definition.js";
import type { ChannelName } from "../../../src/contracts/channels.js";
import { serializeEnvelope, type Envelope, type Principal } from "../../../src/contracts/cloudevent.js";
import { APPROVAL_PENDING, DECISION_MADE, PendingApproval, type DecisionClaims } from "../../../src/contracts/decisions.js";
import { actorIdOf, argsDigest, eventKeyOf } from "../../../src/contracts/ids.js";
import { JOURNAL_APPENDED, JournalBatch, type SessionEvent } from "../../../src/contracts/journal.js";
import { DEAD_LETTERED, DeadLetter, EVENT_ACCEPTED, EventAccepted, LIVE_ADVANCED, LIVE_DELTA, LiveAdvanced, LiveDelta, PROMPT_RECEIVED, RUN_ENDED, RunEndedMessage, type DeliveryStatus } from "../../../src/contracts/messages.js";
import { Problem } from "../../../src/contracts/problems.js";
import { TOOL_CLAIMED, TOOL_COMPLETED, TOOL_REQUESTED, ToolManifest, ToolRequest, type ToolResult, WORKSPACE_RELEASED, WorkspaceReleased } from "../../../src/contracts/tools.js";
import { ModelError, type Model, type ModelAnswer, type ModelRequest } from "../../../src/model/model.js";
import { createModels } from "../../../src/model/registry.js";
import { parseScript } from "../../../src/model/script.js";
import { systemClock } from "../../../src/platform/clock.js";
import { createLogger } from "../../../src/platform/log.js";
import { evolveAll } from "../../../src/session/core/evolve.js";
import { compilePolicy } from "../../../src/session/core/policy/compile.js";
import { NEW_SESSION, type OpenSession, type SessionState } from "../../../src/session/core/state.js";
import type { Pace } from "../../../src/session/host/announcer.js";
import { actorMethods } from "../../../src/session/host/actor-methods.js";
import type { Catalog } from "../../../src/session/host/agents.js";
import { Deliveries, type SessionChannel, type Target } from "../../../src/session/host/deliveries.js";
import type { Bus, Reminders } from "../../../src/session/host/ports.js";
import { Refusals } from "../../../src/session/host/refusals.js";
import { Router } from "../../../src/session/host/router.js";
import { SessionService } from "../../../src/session/host/service.js";
import { MemorySessionStore } from "../../support/memory-session-store.js";

/** Reminders are removed a while after their last tick (guard.ts). */
export const REMOVED_BY_THEN_MS = 3_000;
export const ANNA: Principal = { id: "anna", class: "person", roles: ["approver"] };
export const ACTOR_KEY = "only-session-hosts-know";
/** Announcements without pauses. */
export const AT_ONCE: Pace = { journal: 0, live: 0 };
export const SESSION = "order-1";
export const ACTOR = actorIdOf("default", SESSION);
export const TARGET: Target = { tenant: "default", sessionId: SESSION, actorId: ACTOR };

/** Fakes time; everything else stays. Call in beforeEach, and `vi.useRealTimers()` in afterEach. */
export function fakeTime(): void {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"], now: Date.parse("2026-01-01T00:00:00Z") });
}

/** Lets the clock run, timers and all that follows from them included. */
export async function pass(ms: number): Promise<void> {
  await quiet();
  await vi.advanceTimersByTimeAsync(ms);
  await quiet();
}

/** Lets everything that is ready run. Nothing in a host waits for anything but the store, which takes one round, and time. */
export async function quiet(rounds = 60): Promise<void> {
  for (let round = 0; round < rounds; round += 1) await yieldToOthers();
}

/** Waits for a condition without waiting for time. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  for (let round = 0; round < 5_000; round += 1) {
    if (holds()) return;
    await yieldToOthers();
  }
  throw new Error(`did not happen: ${what}`);
}

const SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  [TOOL_REQUESTED]: ToolRequest, [WORKSPACE_RELEASED]: WorkspaceReleased, [APPROVAL_PENDING]: PendingApproval, [RUN_ENDED]: RunEndedMessage, [DEAD_LETTERED]: DeadLetter,
  [EVENT_ACCEPTED]: EventAccepted, [JOURNAL_APPENDED]: JournalBatch, [LIVE_DELTA]: LiveDelta, [LIVE_ADVANCED]: LiveAdvanced,
};

/** Takes what fits its schema, with no member that the schema does not know; refuses while a channel is down. */
export class FakeBus implements Bus {
  readonly sent: { readonly channel: ChannelName; readonly envelope: Envelope }[] = [];
  readonly down = new Set<ChannelName>();
  /** Publishes of these channels wait for this. */
  slow: { readonly channel: ChannelName; readonly until: Promise<void> } | undefined;

  async publish(channel: ChannelName, envelope: Envelope): Promise<void> {
    if (this.slow?.channel === channel) await this.slow.until;
    if (this.down.has(channel)) throw new Problem("broker_unavailable", `the broker does not take ${channel} (test)`);
    const schema = SCHEMAS[envelope.type];
    if (schema === undefined) throw new Error(`nobody knows the type ${envelope.type}`);
    const data: unknown = JSON.parse(envelope.data);
    expect(schema.parse(data), envelope.type).toEqual(data);
    this.sent.push({ channel, envelope });
  }

  envelopes(type: string): Envelope[] { return this.sent.filter(({ envelope }) => envelope.type === type).map(({ envelope }) => envelope); }
  #data<T extends z.ZodType>(schema: T, type: string): z.output<T>[] { return this.envelopes(type).map((envelope) => schema.parse(JSON.parse(envelope.data))); }
  get letters(): DeadLetter[] { return this.#data(DeadLetter, DEAD_LETTERED); }
  get ended(): RunEndedMessage[] { return this.#data(RunEndedMessage, RUN_ENDED); }
  get receipts(): EventAccepted[] { return this.#data(EventAccepted, EVENT_ACCEPTED); }
  get requests(): ToolRequest[] { return this.#data(ToolRequest, TOOL_REQUESTED); }
  get pending(): PendingApproval[] { return this.#data(PendingApproval, APPROVAL_PENDING); }
  get deltas(): LiveDelta[] { return this.#data(LiveDelta, LIVE_DELTA); }
}

/** A scheduler that remembers; `failing` refuses, `hanging` never answers. */
export class FakeReminders implements Reminders {
  readonly registered = new Map<string, { actorId: string; name: string; dueMs: number; periodMs?: number; data: string }>();
  readonly history: string[] = [];
  failing = false;
  hanging = false;

  async set(actorId: string, name: string, options: { dueMs: number; periodMs?: number; data: string }): Promise<void> {
    this.history.push(`set ${name}`);
    await this.#answer();
    this.registered.set(`${actorId}/${name}`, { actorId, name, ...options });
  }

  async remove(actorId: string, name: string): Promise<void> {
    this.history.push(`remove ${name}`);
    await this.#answer();
    this.registered.delete(`${actorId}/${name}`);
  }

  get names(): string[] { return [...this.registered.values()].map(({ name }) => name); }

  /** Every reminder fires once, on the given host; a removal that follows from it has been made. */
  async fire(host: Host): Promise<void> {
    for (const { actorId, data } of [...this.registered.values()]) await host.service.onReminder(actorId, data);
    await pass(REMOVED_BY_THEN_MS);
  }

  async #answer(): Promise<void> {
    if (this.hanging) await new Promise(() => undefined);
    await yieldToOthers();
    if (this.failing) throw new Problem("actor_unavailable", "the scheduler does not answer (test)");
  }
}

/** A model whose every answer the test gives. */
export class HandModel implements Model {
  readonly provider = "hand";
  readonly calls: { readonly request: ModelRequest; say(delta: string): void; answer(answer?: Partial<ModelAnswer>): void; fail(error: Error): void }[] = [];
  /** Does not heed aborts. */
  deaf = false;
  reserveUsd(): number { return 0; }

  answer(request: ModelRequest): Promise<ModelAnswer> {
    return new Promise((resolve, reject) => {
      let partialText = "";
      this.calls.push({
        request,
        say: (delta) => { partialText += delta; request.onDelta?.(delta); },
        answer: (answer = {}) => { resolve({ model: "hand", text: "done", calls: [], stop: "end", usage: USAGE, costUsd: 0.01, ...answer }); },
        fail: reject,
      });
      request.signal.addEventListener("abort", () => { if (!this.deaf) reject(new ModelError("aborted", "aborted", { partialText, usage: USAGE })); });
    });
  }

  get last() { return this.calls.at(-1)!; }
}
const USAGE = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0 };

const tool = (name: string, about: Partial<ToolManifest> = {}): [string, ToolManifest] => [name, ToolManifest.parse({
  name, description: name, inputSchema: { type: "object", properties: { order: { type: "string" } }, required: ["order"], additionalProperties: false }, effects: "once", critical: false,
  reconcilable: false, timeoutMs: 10_000, outputCapBytes: 50_000, maxTries: 2, risk: "medium", allowedDecisions: ["approve", "modify", "reject", "respond"], defaultVerdict: "ask", ...about,
})];

const base = { version: "1", description: "x", instructions: "x", triggers: [] } as const;
const AGENTS: AgentDefinition[] = [
  { ...base, name: "echo", model: "scripted:echo", tools: [] },
  { ...base, name: "clerk", model: "scripted:clerk", tools: ["refund", "lookup"], triggers: [{ types: ["shop.order.*"], session: (event) => (event.data as { order?: string }).order }] },
  { ...base, name: "hand", model: "hand:any", tools: ["refund", "lookup"], limits: { maxMailbox: 2 } },
  { ...base, name: "strict", model: "scripted:echo", tools: [], check: () => ({ ok: false, code: "not_today", message: "closed on this day" }) },
];

const CLERK = parseScript({ rules: [
  { when: { user: "/^refund (?<order>\\w+)/" }, say: "I refund it.", call: { tool: "refund", args: { order: "{{order}}" } } },
  { when: { user: "/^look up (?<order>\\w+)/" }, say: "I look.", call: { tool: "lookup", args: { order: "{{order}}" } } },
  { when: { tool: "*" }, say: "It is done: {{result}}" },
  { say: "Hello." },
] }, "clerk");

/** Not a signature: the text says what a verifier would have found. */
export const signed = (claims: object): string => `signed.${Buffer.from(JSON.stringify(claims)).toString("base64url")}`;
export const readSigned = (jws: string): unknown => JSON.parse(Buffer.from(jws.replace(/^signed\./, ""), "base64url").toString("utf8"));
const verifier = <T>() => ({
  verify: (jws: string): Promise<T> => (jws.startsWith("signed.") ? Promise.resolve(readSigned(jws) as T) : Promise.reject(new Problem("bad_signature", "the signature is not over this text"))),
});

export interface Host {
  readonly service: SessionService;
  readonly deliveries: Deliveries;
  readonly methods: ReturnType<typeof actorMethods>;
  /** A delivery of the broker, by way of router and actor: its status, or RETRY where the handler throws. */
  take(channel: SessionChannel, message: Envelope | string): Promise<DeliveryStatus>;
}

/** The world that hosts share. */
export class World {
  readonly store = new MemorySessionStore();
  readonly bus = new FakeBus();
  readonly reminders = new FakeReminders();
  readonly models = createModels({ scripted: { scripts: new Map([["clerk", CLERK]]) } });
  readonly hand = new HandModel();
  readonly dead = new Set<string>();
  readonly catalog: Catalog = {
    agents: new Map(AGENTS.map((agent) => [agent.name, agent])), manifests: new Map([tool("refund"), tool("lookup", { effects: "none", defaultVerdict: "allow" })]),
    policy: compilePolicy([]), defaultModel: "scripted:echo", defaultAgent: "echo",
  };
  /** Error of the last delivery that was not acked. */
  lastError: unknown;
  modelCalls = 0;

  host(name = "host-1"): Host {
    const { store, bus, reminders, catalog, models, hand } = this;
    const counted = (model: Model): Model => ({ provider: model.provider, reserveUsd: (request) => model.reserveUsd(request), answer: (request) => { this.modelCalls += 1; return model.answer(request); } });
    const service = new SessionService({
      host: name, store, bus, reminders, heartbeats: { isAlive: (host) => Promise.resolve(!this.dead.has(host)) },
      grantSigner: { sign: (claims) => Promise.resolve(signed(claims)) }, decisions: verifier(), results: verifier(), catalog,
      resolveModel: (full) => (full.startsWith("hand:") ? { model: counted(hand), name: "any" } : { ...models.resolve(full), model: counted(models.resolve(full).model) }),
      clock: systemClock, random: () => 0.5, logger: createLogger("test", "silent"), pace: AT_ONCE,
    });
    const refusals = new Refusals({ store, bus, deadLetters: service.deadLetters, clock: systemClock });
    const deliveries = new Deliveries(service, refusals);
    const methods = actorMethods(service, deliveries, ACTOR_KEY);
    const router = new Router({
      catalog, deadLetters: service.deadLetters, refusals, logger: createLogger("test", "silent"), nowMs: () => Date.now(),
      deliver: async (target, channel, text) => {
        const answer = await methods["deliver"](target.actorId, { key: ACTOR_KEY, channel, text, tenant: target.tenant, sessionId: target.sessionId }) as { ok: boolean; code?: string; message?: string };
        if (!answer.ok) throw new Problem("actor_unavailable", `${String(answer.code)}: ${String(answer.message)}`);
      },
    });
    const take = async (channel: SessionChannel, message: Envelope | string): Promise<DeliveryStatus> => {
      try {
        return await router.handle(channel, typeof message === "string" ? message : serializeEnvelope(message));
      } catch (error) {
        this.lastError = error;
        return "RETRY";
      }
    };
    return { service, deliveries, methods, take };
  }

  /** Other limits for an agent, before its first event. */
  limits(agent: string, limits: NonNullable<AgentDefinition["limits"]>): void {
    (this.catalog.agents as Map<string, AgentDefinition>).set(agent, { ...this.catalog.agents.get(agent)!, limits });
  }
  get state(): OpenSession {
    const state = this.store.stateOf(ACTOR);
    if (state === undefined || state.status === "NEW") throw new Error("the session is not there");
    return state;
  }
  events<T extends SessionEvent["type"]>(type: T): Extract<SessionEvent, { type: T }>[] {
    return this.store.journalOf(ACTOR).flatMap((entry) => entry.events).filter((event): event is Extract<SessionEvent, { type: T }> => event.type === type);
  }
  /** I7: the journal has no gap, and its fold is the state. */
  checkFold(): void {
    const journal = this.store.journalOf(ACTOR);
    expect(journal.map((entry) => entry.rev)).toEqual(journal.map((_, index) => index + 1));
    const folded = journal.reduce<SessionState>((state, entry) => evolveAll(state, entry.events, entry), NEW_SESSION);
    expect(JSON.parse(JSON.stringify(folded))).toEqual(this.store.stateOf(ACTOR));
  }
}

/** An input event for the session. */
export function prompt(id: string, text = `message ${id}`, about: Partial<Envelope> = {}): Envelope {
  return { specversion: "1.0", id, source: "test", type: PROMPT_RECEIVED, subject: SESSION, agent: "echo", principal: JSON.stringify({ id: "rita", class: "person", roles: [] }), data: JSON.stringify({ text }), ...about };
}
export const keyOf = (id: string): string => eventKeyOf("test", id);

export function command(type: string, id: string, data: object): Envelope {
  return { specversion: "1.0", id, source: "console", type, subject: SESSION, data: JSON.stringify(data) };
}

/** The worker's claim and result for a request. */
export function claimOf(request: ToolRequest): Envelope {
  const { tenant, sessionId, actorId, runId, callId } = request;
  return { specversion: "1.0", id: `claim-${callId}-${String(request.try)}`, source: "worker", type: TOOL_CLAIMED, data: JSON.stringify({ tenant, sessionId, actorId, runId, callId, try: request.try, worker: "w1", claimedAtMs: 1 }) };
}

export function resultOf(request: ToolRequest, about: Partial<ToolResult> = {}, claims: object = {}): Envelope {
  const { tenant, sessionId, actorId, runId, callId, tool: name } = request;
  const result = { tenant, sessionId, actorId, runId, callId, tool: name, try: request.try, outcome: "succeeded" as const, output: "ok", truncated: false, worker: "w1", startedAtMs: 1, endedAtMs: 2, ...about };
  const proof = signed({ iss: "docket/tools", aud: "docket/sessions", sub: actorId, jti: callId, try: result.try, outcome: result.outcome, outputDigest: argsDigest(result.output), iat: 1, ...claims });
  return { specversion: "1.0", id: `result-${callId}-${String(request.try)}`, source: "worker", type: TOOL_COMPLETED, data: JSON.stringify({ proof, ...result, ...(about.proof === undefined ? {} : { proof: about.proof }) }) };
}

export function decisionOn(pending: PendingApproval, decisionId: string, about: Partial<DecisionClaims> & { readonly jws?: string } = {}): Envelope {
  const { jws, ...claims } = about;
  const { tenant, sessionId, actorId, record } = pending;
  const decision = jws ?? signed({
    iss: "docket/console", aud: "docket/sessions", sub: actorId, jti: decisionId, approvalId: record.approvalId, version: record.version, argsDigest: record.argsDigest,
    kind: "approve", principal: ANNA, via: "cli", iat: 1, exp: 4_000_000_000, ...claims,
  });
  return { specversion: "1.0", id: decisionId, source: "console", type: DECISION_MADE, data: JSON.stringify({ tenant, sessionId, actorId, approvalId: record.approvalId, decision }) };
}
