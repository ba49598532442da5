/** In-memory ports of the gateway, and a gateway on a real listener over them. */
import type { AgentDefinition } from "../../src/agent/definition.js";
import { routeEvent } from "../../src/agent/route.js";
import type { EventOutcome, JournalPage, SessionView } from "../../src/contracts/api.js";
import { serializeEnvelope, type Envelope } from "../../src/contracts/cloudevent.js";
import { actorIdOf } from "../../src/contracts/ids.js";
import type { JournalEntry, SessionEvent } from "../../src/contracts/journal.js";
import type { DeadLetter } from "../../src/contracts/messages.js";
import { Problem } from "../../src/contracts/problems.js";
import { GatewayConfig } from "../../src/gateway/config.js";
import { createGateway, type Gateway } from "../../src/gateway/gateway.js";
import { createInbox } from "../../src/gateway/inbox/inbox.js";
import { RefusalBook } from "../../src/gateway/refusals.js";
import type { DeadLetters, Inbox, KeyValue, KeyValueOperation, Sessions, TaskPublisher } from "../../src/gateway/ports.js";
import { createApiKey, createApiKeys, type ApiKeyRecord } from "../../src/platform/apikeys.js";
import { listen, type Listening } from "../../src/platform/http.js";
import { createLogger, type Logger } from "../../src/platform/log.js";

export class TestClock {
  constructor(public ms = Date.now()) {}
  nowMs(): number { return this.ms; }
  advance(byMs: number): void { this.ms += byMs; }
}

/** A store with etags, create-only and all-or-nothing, as PostgreSQL and SQLite behave. */
export class MemoryKeyValue implements KeyValue {
  readonly items = new Map<string, { value: string; etag: string }>();
  /** Throws on the next calls while true. */
  down = false;
  /** Calls that met the store down. */
  refused = 0;
  /** Runs between a reader's read and its write, to play another replica. */
  beforeTransact: ((operations: readonly KeyValueOperation[]) => Promise<void>) | undefined;
  reads = 0;
  transactions = 0;
  conflicts = 0;
  #etags = 0;

  async get(key: string) { this.#assertUp(); this.reads += 1; await tick(); return this.items.get(key); }

  async bulkGet(keys: readonly string[]) {
    this.#assertUp();
    this.reads += 1;
    await tick();
    return new Map(keys.flatMap((key) => { const item = this.items.get(key); return item === undefined ? [] : [[key, item] as const]; }));
  }

  async transact(operations: readonly KeyValueOperation[]): Promise<"committed" | "conflict"> {
    this.#assertUp();
    await tick();
    await this.beforeTransact?.(operations);
    this.transactions += 1;
    const refused = operations.some((operation) => operation.op === "put"
      && ((operation.createOnly === true && this.items.has(operation.key)) || (operation.etag !== undefined && this.items.get(operation.key)?.etag !== operation.etag)));
    if (refused) { this.conflicts += 1; return "conflict"; }
    for (const operation of operations) {
      if (operation.op === "delete") this.items.delete(operation.key);
      // The real adapter parses and re-serialises values: so does this one.
      else this.items.set(operation.key, { value: JSON.stringify(JSON.parse(operation.value)), etag: String(++this.#etags) });
    }
    return "committed";
  }

  #assertUp(): void {
    if (!this.down) return;
    this.refused += 1;
    throw new Problem("store_unavailable", "the store is down (test)");
  }
}

class FakePublisher implements TaskPublisher {
  readonly published: Envelope[] = [];
  down = false;
  hangs = false;
  async publish(envelope: Envelope): Promise<void> {
    if (this.hangs) await new Promise(() => undefined);
    if (this.down) throw new Problem("broker_unavailable", "the broker is down (test)");
    this.published.push(envelope);
  }
  /** What would be on the wire. */
  texts(): string[] { return this.published.map(serializeEnvelope); }
}

class FakeDeadLetters implements DeadLetters {
  readonly letters: DeadLetter[] = [];
  down = false;
  async record(letter: DeadLetter): Promise<void> {
    if (this.down) throw new Problem("broker_unavailable", "the dead-letter channel is down (test)");
    this.letters.push(letter);
  }
}

/** Sessions with hand-written journals. */
class FakeSessions implements Sessions {
  readonly journals = new Map<string, JournalEntry[]>();
  readonly outcomes = new Map<string, EventOutcome>();
  readonly recentRuns = new Map<string, SessionView["recentRuns"]>();
  down = false;
  reads = 0;

  append(tenant: string, sessionId: string, ...events: SessionEvent[]): JournalEntry {
    const actorId = actorIdOf(tenant, sessionId);
    const journal = this.journals.get(actorId) ?? [];
    const entry: JournalEntry = { v: 1, actorId, rev: journal.length + 1, commitId: `c${journal.length + 1}`, atMs: 1, command: "ReceiveEvent", host: "secret-host", digest: "d", events };
    this.journals.set(actorId, [...journal, entry]);
    return entry;
  }

  async readSession(actorId: string): Promise<SessionView | undefined> {
    this.#assertUp();
    const journal = this.journals.get(actorId);
    if (journal === undefined) return undefined;
    return {
      summary: { tenant: "acme", sessionId: "s", actorId, agent: "order-triage", agentVersion: "1", status: "IDLE", rev: journal.length, createdAtMs: 1, updatedAtMs: 1, waitingFor: "", mailboxLength: 0,
        openApprovals: 0, modelCalls: 0, toolCalls: 0, inputTokens: 0, outputTokens: 0, costUsd: 0 },
      approvals: [], recentRuns: this.recentRuns.get(actorId) ?? [], unknownCalls: [],
    };
  }

  async readJournal(actorId: string, afterRev: number, limit: number): Promise<JournalPage | undefined> {
    this.#assertUp();
    this.reads += 1;
    await tick();
    const journal = this.journals.get(actorId);
    if (journal === undefined) return undefined;
    return { entries: journal.filter((entry) => entry.rev > afterRev).slice(0, limit), headRev: journal.at(-1)?.rev ?? 0 };
  }

  async readOutcome(actorId: string, key: string): Promise<EventOutcome> {
    this.#assertUp();
    return this.outcomes.get(`${actorId}/${key}`) ?? { state: "unknown" };
  }

  #assertUp(): void { if (this.down) throw new Problem("actor_unavailable", "the actor does not answer (test)"); }
}

/** An agent without more than its triggers. */
export const agent = (name: string, triggers: AgentDefinition["triggers"]): AgentDefinition => ({ name, version: "1", description: name, instructions: "x", tools: [], triggers });
const TEST_AGENTS: AgentDefinition[] = [
  agent("order-triage", [{ types: ["shop.order.*"] }]),
  agent("repo-helper", [{ types: ["com.github.issues.*", "com.github.pull_request.*", "com.github.push"] }]),
  agent("billing", [{ types: ["com.stripe.*"], session: (event) => (event.data as { data?: { object?: { customer?: string } } }).data?.object?.customer }]),
];

export const GITHUB_SECRET = "github-secret-1";
export const STRIPE_SECRET = "stripe-secret-1";

export interface TestGateway {
  readonly url: string;
  readonly gateway: Gateway;
  readonly listening: Listening;
  readonly store: MemoryKeyValue;
  readonly inbox: Inbox;
  readonly publisher: FakePublisher;
  readonly sessions: FakeSessions;
  readonly deadLetters: FakeDeadLetters;
  readonly refusals: RefusalBook;
  /** What the refusals were reported by. */
  readonly reports: readonly Envelope[];
  readonly clock: TestClock;
  /** Keys: `all` has every scope in tenant acme, `other` is of tenant umbra, `reader` reads only, `old` has expired, `brief` expires in 300 ms. */
  readonly keys: Record<"all" | "other" | "reader" | "old" | "brief", string>;
  close(): Promise<void>;
}

export interface TestGatewayOptions { readonly config?: Record<string, unknown>; readonly store?: MemoryKeyValue; readonly clock?: TestClock; readonly sessions?: FakeSessions; readonly agents?: readonly AgentDefinition[]; readonly logger?: Logger }

/** A gateway on port 0 over fakes. */
export async function startTestGateway(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const clock = options.clock ?? new TestClock();
  const store = options.store ?? new MemoryKeyValue();
  const config = GatewayConfig.parse({
    webhooks: { github: { secrets: [GITHUB_SECRET, "github-secret-0"], tenant: "acme" }, stripe: { secrets: [STRIPE_SECRET, "stripe-secret-0"], tenant: "acme" } },
    rateLimit: { perPrincipal: 100_000, perAddress: 100_000 }, ...options.config,
  });
  const scopes = ["prompts:write", "sessions:read", "sessions:cancel"];
  const made = {
    all: createApiKey({ tenant: "acme", principalId: "ann@example.com", class: "person", roles: ["operator"], scopes }),
    other: createApiKey({ tenant: "umbra", principalId: "bob", class: "machine", scopes }),
    reader: createApiKey({ tenant: "acme", principalId: "ria", class: "person", scopes: ["sessions:read"] }),
    old: createApiKey({ tenant: "acme", principalId: "old", class: "person", scopes, expiresAt: "2020-01-01T00:00:00Z" }),
    brief: createApiKey({ tenant: "acme", principalId: "brief", class: "person", scopes, expiresAt: new Date(clock.ms + 300).toISOString() }),
  };
  const records: ApiKeyRecord[] = Object.values(made).map((one) => one.record);
  const inbox = createInbox(store, { clock, receiptWaitMs: config.sweep.receiptWaitMs, idempotencyMs: config.idempotencyMs });
  const publisher = new FakePublisher();
  const sessions = options.sessions ?? new FakeSessions();
  const deadLetters = new FakeDeadLetters();
  const reports: Envelope[] = [];
  const refusals = new RefusalBook({ publish: (envelope) => { reports.push(envelope); return Promise.resolve(); }, clock, logger: createLogger("test", "silent") });
  const gateway = createGateway({
    publisher, inbox, sessions, deadLetters, refusals, clock, logger: options.logger ?? createLogger("test", "silent"), apiKeys: createApiKeys(records, clock),
    route: (envelope) => routeEvent(options.agents ?? TEST_AGENTS, envelope, { defaultAgent: "order-triage" }),
  }, config);
  const listening = await listen(gateway.publicApp, { host: "127.0.0.1", port: 0 });
  return {
    url: listening.url, gateway, listening, store, inbox, publisher, sessions, deadLetters, refusals, reports, clock,
    keys: { all: made.all.key, other: made.other.key, reader: made.reader.key, old: made.old.key, brief: made.brief.key },
    close: async () => { await gateway.stop(); await listening.close(100); },
  };
}

/** POSTs with the key of tenant acme unless another is given. */
export async function post(gw: TestGateway, path: string, body: string | object, headers: Record<string, string> = {}): Promise<{ status: number; json: Record<string, unknown>; headers: Headers }> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const res = await fetch(gw.url + path, { method: "POST", body: text, headers: { authorization: `Bearer ${gw.keys.all}`, "content-type": "application/json", ...headers } });
  return { status: res.status, json: (await res.json()) as Record<string, unknown>, headers: res.headers };
}

function tick(): Promise<void> { return new Promise((resolve) => { setImmediate(resolve); }); }
