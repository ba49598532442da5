/**
 * Owns: all four apps in one process, joined as in production but for the runtime: real console and gateway over HTTP, real session host,
 * real worker, real keys and signatures; a broker and stores in memory. Attacks come in where an attacker could: over HTTP, or as bytes on a topic.
 */
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { defineTool } from "../../src/agent/define-tool.js";
import { routeEvent } from "../../src/agent/route.js";
import type { ChannelName } from "../../src/contracts/channels.js";
import { serializeEnvelope, type Envelope } from "../../src/contracts/cloudevent.js";
import { actorIdOf } from "../../src/contracts/ids.js";
import type { JournalEntry } from "../../src/contracts/journal.js";
import { DEAD_LETTERED, type DeadLetter } from "../../src/contracts/messages.js";
import { Problem } from "../../src/contracts/problems.js";
import { TOOL_CLAIMED, TOOL_COMPLETED } from "../../src/contracts/tools.js";
import { ConsoleConfig } from "../../src/console/config.js";
import { createConsole, type Console } from "../../src/console/console.js";
import { GatewayConfig } from "../../src/gateway/config.js";
import { createGateway, type Gateway } from "../../src/gateway/gateway.js";
import { createInbox } from "../../src/gateway/inbox/inbox.js";
import { RefusalBook } from "../../src/gateway/refusals.js";
import { createModels } from "../../src/model/registry.js";
import { parseScript } from "../../src/model/script.js";
import { createApiKey, createApiKeys, type ApiKeyRecord } from "../../src/platform/apikeys.js";
import { systemClock } from "../../src/platform/clock.js";
import { listen, type Listening } from "../../src/platform/http.js";
import { ensureDevKeys, loadSigner, loadTrust, type Signer, type SigningApp } from "../../src/platform/keys.js";
import { packed } from "../../src/platform/letter-parcel.js";
import { createLogger } from "../../src/platform/log.js";
import { signAuditHead, signDecision, signGrant, signResult, verifyAuditHead, verifyDecision, verifyGrant, verifyResult } from "../../src/platform/signing.js";
import { compilePolicy } from "../../src/session/core/policy/compile.js";
import { actorMethods } from "../../src/session/host/actor-methods.js";
import { Deliveries } from "../../src/session/host/deliveries.js";
import { Refusals } from "../../src/session/host/refusals.js";
import { Router } from "../../src/session/host/router.js";
import { SessionService } from "../../src/session/host/service.js";
import { createWorker, systemWorkerClock } from "../../src/tools/index.js";
import { RED_AGENT, redToolsOf } from "../fixtures/red-agent/red.mjs";
import { noticeSignerOf, settingsFor, startReceiver, type Receiver } from "../support/notices.js";
import { MemoryKeyValue } from "../support/gateway-fakes.js";
import { MemorySessionStore } from "../support/memory-session-store.js";
import { MemoryCallStore } from "../support/tools/memory-call-store.js";
import { GITHUB_SECRET, RED_FOLDER, RED_NOTICES, redKey, RedWorld, STRIPE_SECRET, type App, type Effect, type KeyAbout } from "./world.js";

const ACTOR_KEY = "only-session-hosts-know-this";
const inFolder = (file: string): string => readFileSync(join(RED_FOLDER, file), "utf8");

export class MemoryWorld extends RedWorld {
  readonly patienceMs = 18_000;
  readonly pollMs = 10;
  readonly actorKey = ACTOR_KEY;
  readonly effects: Effect[] = [];
  readonly gatewayLog: Record<string, unknown>[] = [];
  readonly consoleLog: Record<string, unknown>[] = [];
  readonly store = new MemorySessionStore();
  readonly #records: ApiKeyRecord[] = [];
  readonly #handlers = new Map<ChannelName, ((text: string) => Promise<unknown>)[]>();
  readonly #stops: (() => Promise<unknown>)[] = [];
  #console: Console | undefined;
  #receiver: Receiver | undefined;
  #book: RefusalBook | undefined;
  #urls: Record<App, string> = { console: "", gateway: "" };

  /** Bytes on a topic, as whoever may publish there could send them. Resolves when all subscribers have them. */
  async publish(channel: ChannelName, text: string): Promise<void> {
    for (const handle of this.#handlers.get(channel) ?? []) {
      for (let attempt = 0; attempt < 50; attempt += 1) {
        const status = await handle(text).catch(() => "RETRY");
        if (status !== "RETRY") break;
        await new Promise((resolve) => { setTimeout(resolve, 20); });
      }
    }
  }

  get outside(): Receiver { return this.#receiver!; }
  url(app: App): string { return this.#urls[app]; }
  key(id: string, about: KeyAbout = {}): Promise<string> {
    const made = createApiKey(redKey(id, about));
    this.#records.push(made.record);
    this.keys.set(id, made.key);
    this.#replaceKeys();
    return Promise.resolve(made.key);
  }
  revoke(key: string): Promise<void> {
    const id = key.split("_")[1] ?? "";
    this.#records.splice(this.#records.findIndex((record) => record.id === id), 1);
    this.#replaceKeys();
    return Promise.resolve();
  }
  #replaceKeys: () => void = () => undefined;

  journal(sessionId: string, tenant = "default"): JournalEntry[] { return this.store.journalOf(actorIdOf(tenant, sessionId)); }
  async start(): Promise<this> {
    const home = await mkdtemp(join(tmpdir(), "docket-red-"));
    this.#stops.push(() => rm(home, { recursive: true, force: true }));
    await ensureDevKeys(join(home, "keys"));
    for (const app of ["sessions", "console", "tools"] as const) this.signers.set(app, await loadSigner(join(home, "keys"), app));
    const trust = await loadTrust(join(home, "keys"));
    const signer = (app: SigningApp): Signer => this.signers.get(app)!;
    const logger = createLogger("red", "silent");
    const bus = { publish: async (channel: ChannelName, envelope: Envelope): Promise<void> => { void this.publish(channel, serializeEnvelope(envelope)); await Promise.resolve(); } };
    const letters = { record: (letter: DeadLetter): Promise<void> => bus.publish("deadLetters", { specversion: "1.0", id: letter.deadLetterId, source: "docket://red", type: DEAD_LETTERED, data: JSON.stringify(packed(letter)) }) };

    const tools = Object.values(redToolsOf({ defineTool, z, keep: (_workspace, effect) => { this.effects.push(effect); return Promise.resolve(); } }));
    const models = createModels({ scripted: { scripts: new Map([["red", parseScript(parse(inFolder("script.yaml")), "red")]]) } });
    const catalog = { agents: new Map([["red", RED_AGENT]]), manifests: new Map(tools.map((tool) => [tool.manifest.name, tool.manifest])), policy: compilePolicy([{ file: "red.yaml", text: inFolder("policies/red.yaml") }]), defaultModel: "scripted:red", defaultAgent: "red" };

    const service = new SessionService({
      host: "red-1", store: this.store, bus, reminders: { set: () => Promise.resolve(), remove: () => Promise.resolve() }, heartbeats: { isAlive: () => Promise.resolve(true) },
      grantSigner: { sign: (claims) => signGrant(signer("sessions"), claims) }, decisions: { verify: (jws, nowMs) => verifyDecision(trust, jws, nowMs) }, results: { verify: (jws, nowMs) => verifyResult(trust, jws, nowMs) },
      catalog, resolveModel: (name) => models.resolve(name), clock: systemClock, random: Math.random, logger,
    });
    this.#stops.push(() => service.stop());
    const refusals = new Refusals({ store: this.store, bus, deadLetters: service.deadLetters, clock: systemClock });
    const methods = actorMethods(service, new Deliveries(service, refusals), ACTOR_KEY);
    const router = new Router({ catalog, deadLetters: service.deadLetters, refusals, logger, nowMs: () => Date.now(), deliver: async (target, channel, text) => {
      const answer = await methods.deliver(target.actorId, { key: ACTOR_KEY, channel, text, tenant: target.tenant, sessionId: target.sessionId }) as { ok: boolean; code?: string; message?: string };
      if (!answer.ok) throw new Problem("actor_unavailable", `${String(answer.code)}: ${String(answer.message)}`);
    } });
    for (const channel of ["tasks", "toolResults", "approvalsResolved"] as const) this.#handlers.set(channel, [(text) => router.handle(channel, text)]);
    this.callActor = async (method, actorId, body) => await methods[method]!(actorId, body) as Record<string, unknown>;

    let results = 0;
    const result = (type: string) => (data: { sessionId: string; tenant: string; actorId: string }): Promise<void> => { results += 1; return bus.publish("toolResults", { specversion: "1.0", id: `result-${String(results)}`, source: "docket://tools", type, subject: data.sessionId, tenant: data.tenant, data: JSON.stringify(data) }); };
    const worker = createWorker({
      tools: new Map(tools.map((tool) => [tool.manifest.name, tool])), store: new MemoryCallStore(), clock: systemWorkerClock, grants: { verify: (jws) => verifyGrant(trust, jws, Date.now()) },
      signer: { sign: (claims) => signResult(signer("tools"), claims) }, results: { claimed: result(TOOL_CLAIMED), completed: result(TOOL_COMPLETED) }, deadLetters: letters,
      secrets: { find: () => undefined }, log: () => undefined, workspace: () => Promise.resolve({ path: home, close: () => Promise.resolve() }),
    }, { worker: "red-w", drainMs: 50 });
    this.#handlers.set("toolRequests", [(text) => worker.handleRequest(text)]);

    const receiver = await startReceiver();
    this.#receiver = receiver;
    this.#stops.push(() => receiver.close());
    const apiKeys = createApiKeys(this.#records, systemClock);
    this.#replaceKeys = () => { apiKeys.replace(this.#records); };
    const sessions = { readSession: (actorId: string) => service.reads.session(actorId), readJournal: (actorId: string, afterRev: number, limit: number) => service.reads.journal(actorId, afterRev, limit), readDecision: (actorId: string, decisionId: string) => service.reads.decision(actorId, decisionId), readOutcome: (actorId: string, key: string) => service.reads.outcome(actorId, key) };
    this.#console = createConsole({
      sessions, tasks: { publish: (envelope) => bus.publish("tasks", envelope) }, decisions: { publish: (envelope) => bus.publish("approvalsResolved", envelope) }, receipts: { publish: (envelope) => bus.publish("tasks", envelope) },
      noticeSigner: noticeSignerOf({ signer: signer("console"), trust }),
      auditSigner: { sign: (claims) => signAuditHead(signer("console"), claims), verify: (jws, nowMs) => verifyAuditHead(trust, jws, nowMs) }, signer: { sign: (claims) => signDecision(signer("console"), claims) },
      authenticator: apiKeys, installed: { agents: [], tools: tools.map((tool) => tool.manifest), policy: catalog.policy }, parts: [], clock: systemClock, logger: Object.assign(createLogger("red-console", "silent"), { warn: (fields: object) => { this.consoleLog.push(fields as Record<string, unknown>); }, info: (fields: object) => { this.consoleLog.push(fields as Record<string, unknown>); } }),
    }, ConsoleConfig.parse({ notices: settingsFor(RED_NOTICES, receiver, "http://console.red"), noticeTiming: { everyMs: 20 }, database: ":memory:", verdictWaitMs: 5_000, verdictPollMs: 10, rateLimitPerMinute: 100_000, audit: { refusalsPerMinute: 100_000 }, signIn: { attempts: 1_000 } }));
    const console_ = this.#console;
    this.#handlers.set("journal", [(text) => console_.handleJournal(text)]);
    this.#handlers.set("approvalsPending", [(text) => console_.handleApprovalPending(text)]);
    this.#handlers.set("deadLetters", [(text) => console_.handleDeadLetter(text)]);

    const settings = GatewayConfig.parse({ webhooks: { github: { secrets: [GITHUB_SECRET] }, stripe: { secrets: [STRIPE_SECRET] } }, rateLimit: { perPrincipal: 100_000, perAddress: 100_000 } });
    this.#book = new RefusalBook({ publish: (envelope) => bus.publish("deadLetters", envelope), clock: systemClock, logger, perMinute: 100_000 });
    const gateway: Gateway = createGateway({
      publisher: { publish: (envelope) => bus.publish("tasks", envelope) }, inbox: createInbox(new MemoryKeyValue(), { clock: systemClock, receiptWaitMs: settings.sweep.receiptWaitMs, idempotencyMs: settings.idempotencyMs }),
      sessions, route: (envelope) => routeEvent([RED_AGENT], envelope, { defaultAgent: "red" }), deadLetters: letters, refusals: this.#book, apiKeys, clock: systemClock,
      logger: Object.assign(createLogger("red-gateway", "silent"), Object.fromEntries(["warn", "info"].map((level) => [level, (fields: object) => { this.gatewayLog.push(fields as Record<string, unknown>); }]))),
    }, settings);
    this.#handlers.set("responses", [(text) => gateway.handleResponse(text)]);
    this.#handlers.set("live", [(text) => gateway.handleLive(text)]);

    const listening: Listening[] = [await listen(console_.publicApp, { host: "127.0.0.1", port: 0 }), await listen(gateway.publicApp, { host: "127.0.0.1", port: 0 })];
    this.#urls = { console: listening[0]!.url, gateway: listening[1]!.url };
    await console_.start();
    this.#stops.unshift(() => worker.drain(), async () => { await gateway.stop(); await Promise.all(listening.map((one) => one.close(100))); await console_.stop(); });
    return this;
  }

  flushRefusals(): Promise<void> { return this.#book?.flush() ?? Promise.resolve(); }
  callActor: (method: string, actorId: string, body: object) => Promise<Record<string, unknown>> = () => Promise.reject(new Error("not started"));

  async close(): Promise<void> { for (const stop of this.#stops) await stop(); }
}
