/** Owns: composing the `sessions` app. The only place that knows both the session host and its adapters. */
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { STATE_STORES } from "../contracts/channels.js";
import { parseEnvelope } from "../contracts/cloudevent.js";
import { Problem } from "../contracts/problems.js";
import { upcastDocument } from "../contracts/stored-version.js";
import { startActorHost, type ActorHost } from "../dapr/actor-host.js";
import { DaprBus } from "../dapr/bus.js";
import { changeDocument } from "../dapr/cas-document.js";
import { DaprEchoes } from "../dapr/echoes.js";
import { probeFencing } from "../dapr/fencing.js";
import { DaprHeartbeats } from "../dapr/heartbeat.js";
import { createListener } from "../dapr/listener.js";
import { DaprReminders } from "../dapr/reminders.js";
import { DaprSessionStore } from "../dapr/session-store.js";
import { callSession } from "../dapr/sessions-client.js";
import { DaprState } from "../dapr/state.js";
import { settleBucket, takeFromBucket, type BucketDocument, type RateLimits } from "../model/bucket.js";
import { watchLimits } from "../model/limited.js";
import type { RateLedger } from "../model/limits.js";
import { systemClock } from "../platform/clock.js";
import { keysDirOf, required, type Config  } from "../platform/config.js";
import { loadSigner, loadTrust } from "../platform/keys.js";
import { runApp } from "../platform/lifecycle.js";
import { signGrant, verifyDecision, verifyResult } from "../platform/signing.js";
import type { SessionState } from "../session/core/state.js";
import { actorMethods } from "../session/host/actor-methods.js";
import { Canary } from "../session/host/canary.js";
import { Deliveries, type SessionChannel, type Target } from "../session/host/deliveries.js";
import { reach } from "../session/host/reach.js";
import { Refusals } from "../session/host/refusals.js";
import type { Bus } from "../session/host/ports.js";
import { Router } from "../session/host/router.js";
import { SessionService } from "../session/host/service.js";
import { loadCatalog, loadModels } from "./catalog.js";
import { reporterOf } from "./reporting.js";
import { besideReceipts, letterBoxOf, sidecarOf, untilReady } from "./sidecar-parts.js";

/** Together below the broker's ack window (10 s), so that a delivery ends before it is repeated (DESIGN 7.2). */
const REACH_TIMEOUT_MS = 3_000;
const DELIVER_TIMEOUT_MS = 6_000;

await runApp("sessions", async ({ config, logger, logLevel, onStop }) => {
  const sidecar = sidecarOf(config);
  onStop("sidecar client", { stop: () => sidecar.close() });
  const state = new DaprState(sidecar, STATE_STORES.sessions);
  const host = `${hostname()}-${String(process.pid)}-${randomBytes(4).toString("hex")}`;
  const heartbeats = new DaprHeartbeats(state, host, systemClock, logger);
  const catalog = await loadCatalog(config);
  const models = loadModels(config, catalog, { logger, ledger: rateLedger(state, limitsOf(config)) });
  const { resolve: resolveModel, limited } = watchLimits((name) => models.resolve(name), () => systemClock.nowMs());
  const keysDir = keysDirOf(config);
  const signer = await loadSigner(keysDir, "sessions");
  const trust = await loadTrust(keysDir);
  const dapr = new DaprBus(sidecar);
  const store = new DaprSessionStore<SessionState>(state, (document) => upcastDocument(document) as unknown as SessionState);
  const letters = letterBoxOf(dapr, state, logger);
  const bus: Bus = { publish: (channel, envelope) => (channel === "deadLetters" ? letters.post(envelope) : dapr.publish(channel, envelope)) };
  const reminders = new DaprReminders(sidecar);
  const canary = new Canary({ host, reminders, echoes: new DaprEchoes(state), logger });
  const service = new SessionService({
    host, store, bus, reminders, heartbeats,
    grantSigner: { sign: (claims) => signGrant(signer, claims) },
    decisions: { verify: (jws, nowMs) => verifyDecision(trust, jws, nowMs) },
    results: { verify: (jws, nowMs) => verifyResult(trust, jws, nowMs) },
    catalog, resolveModel, clock: systemClock, random: Math.random, logger,
  });
  onStop("session service", service);
  const actorKey = config.sessionsActorKey ?? actorKeyFrom(config.dataDir);
  const refusals = new Refusals({ store, bus, deadLetters: service.deadLetters, clock: systemClock });
  const methods = actorMethods(service, new Deliveries(service, refusals), actorKey);
  const here: { actors?: ActorHost } = {};
  const bodyOf = (target: Target, channel: SessionChannel, text: string): object => ({ key: actorKey, channel, text, tenant: target.tenant, sessionId: target.sessionId });
  const router = new Router({
    catalog, deadLetters: service.deadLetters, refusals, logger, nowMs: () => systemClock.nowMs(),
    deliver: reach({
      livesHere: (actorId) => here.actors?.livesHere(actorId) === true,
      here: (target, channel, text) => methods.deliver(target.actorId, bodyOf(target, channel, text)),
      there: (target, channel, text) => callSession(sidecar, target.actorId, "deliver", bodyOf(target, channel, text), REACH_TIMEOUT_MS),
      timeoutMs: DELIVER_TIMEOUT_MS, logger,
    }),
  });
  const listenOn = { host: config.appHost, port: required(config, "appPort") };
  const app = createListener({
    ...listenOn, appToken: config.appApiToken, logger, logLevel,
    subscriptions: {
      // The console may speak to session hosts only: they hand on what is for others.
      tasks: besideReceipts(({ app: keeper, deadLetterId }, text) => (keeper === "sessions" ? letters.received(deadLetterId) : dapr.publish(keeper === "gateway" ? "responses" : "toolRequests", parseEnvelope(text))), (text) => router.handle("tasks", text)),
      toolResults: (text) => router.handle("toolResults", text),
      approvalsResolved: (text) => router.handle("approvalsResolved", text),
    },
  });
  here.actors = await startActorHost({
    app, ...listenOn, daprHttpPort: config.daprHttpPort, logger, methods,
    onReminder: async (actorId, data) => { if (!await canary.heard(data)) await service.onReminder(actorId, data); },
  });
  onStop("actor host", here.actors);
  await untilReady(() => probeFencing(state, STATE_STORES.sessions, config.allowUnsafeStore));
  letters.start();
  onStop("letter box", letters);
  await untilReady(() => heartbeats.start());
  onStop("heartbeat", heartbeats);
  const offers = [...catalog.agents.values()].map(({ name, version, tools }) => ({ name, version, tools: [...tools] }));
  const reporter = reporterOf({ app: "sessions", instance: host, sidecar, bus: dapr, stores: [STATE_STORES.sessions], logger }, () => ({ agents: offers, policy: catalog.policy.version, limited: limited(), actors: here.actors?.active() ?? 0 }));
  reporter.start();
  onStop("reports", reporter);
  canary.start();
  onStop("canary", canary);
  logger.info({ host, agents: [...catalog.agents.keys()], policy: catalog.policy.version, model: catalog.defaultModel }, "sessions ready");
});

function limitsOf(settings: Config): RateLimits {
  return {
    ...(settings.modelRequestsPerMinute === undefined ? {} : { requestsPerMinute: settings.modelRequestsPerMinute }),
    ...(settings.modelTokensPerMinute === undefined ? {} : { tokensPerMinute: settings.modelTokensPerMinute }),
  };
}

/** Under `dapr run` the key comes from the file that `docket init` makes. Throws Problem `config_invalid`. */
function actorKeyFrom(dataDir: string): string {
  const file = join(dataDir, "secrets.json");
  if (!existsSync(file)) {
    throw new Problem("config_invalid", `DOCKET_SESSIONS_ACTOR_KEY is not set and ${file} does not exist`, { hint: `make keys and secrets first: npx docket init --data-dir ${dataDir}` });
  }
  return z.object({ sessionsActorKey: z.string().min(16) }).parse(JSON.parse(readFileSync(file, "utf8"))).sessionsActorKey;
}

/** Rate buckets that all hosts share, by compare-and-swap in the session store. */
function rateLedger(state: DaprState, limits: RateLimits): RateLedger {
  if (limits.requestsPerMinute === undefined && limits.tokensPerMinute === undefined) {
    return { take: () => Promise.resolve({ ok: true, tokens: 0 }), settle: () => Promise.resolve() };
  }
  return {
    take: (key, need, atMs) => changeDocument<BucketDocument, Awaited<ReturnType<RateLedger["take"]>>>(state, `rate:${key}`, (document) => {
      const taken = takeFromBucket(document, need, limits, atMs);
      return { write: taken.result.ok ? taken.document : undefined, result: taken.result };
    }),
    settle: async (key, unusedTokens) => { await changeDocument<BucketDocument, undefined>(state, `rate:${key}`, (document) => ({
      write: document === undefined ? undefined : settleBucket(document, unusedTokens, limits), result: undefined,
    })); },
  };
}
