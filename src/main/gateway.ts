/** Owns: composing the `gateway` app. */
import { STATE_STORES } from "../contracts/channels.js";
import { DaprBus } from "../dapr/bus.js";
import { probeFencing } from "../dapr/fencing.js";
import { SessionsClient } from "../dapr/sessions-client.js";
import { DaprState } from "../dapr/state.js";
import { loadAgents } from "../agent/loader.js";
import { routeEvent } from "../agent/route.js";
import { GatewayConfig } from "../gateway/config.js";
import { createGateway } from "../gateway/gateway.js";
import { createInbox } from "../gateway/inbox/inbox.js";
import { RefusalBook } from "../gateway/refusals.js";
import { systemClock } from "../platform/clock.js";
import type { Config } from "../platform/config.js";
import { listen } from "../platform/http.js";
import { runApp } from "../platform/lifecycle.js";
import { followedApiKeys } from "./api-keys.js";
import { instanceName, reporterOf } from "./reporting.js";
import { besideReceipts, deadLettersOf, letterBoxOf, listenForSidecar, sidecarOf, untilReady } from "./sidecar-parts.js";

await runApp("gateway", async ({ config, logger, logLevel, onStop }) => {
  const sidecar = sidecarOf(config);
  onStop("sidecar client", { stop: () => sidecar.close() });
  const agents = await loadAgents(config.agentsDir);
  const names = new Set(agents.map((agent) => agent.name));
  const defaultAgent = names.has(config.defaultAgent) ? config.defaultAgent : undefined;
  const bus = new DaprBus(sidecar);
  const apiKeys = await followedApiKeys(config, logger);
  onStop("API keys", apiKeys);
  const settings = gatewayConfig(config);
  const inboxState = new DaprState(sidecar, STATE_STORES.inbox);
  const letters = letterBoxOf(bus, inboxState, logger);
  const refusals = new RefusalBook({ publish: (envelope) => bus.publish("deadLetters", envelope), clock: systemClock, logger });
  const gateway = createGateway({
    publisher: { publish: (envelope) => bus.publish("tasks", envelope) },
    inbox: createInbox(inboxState, { clock: systemClock, receiptWaitMs: settings.sweep.receiptWaitMs, idempotencyMs: settings.idempotencyMs }),
    sessions: new SessionsClient(sidecar),
    route: (envelope) => routeEvent(agents, envelope, { defaultAgent }),
    deadLetters: deadLettersOf(letters, "gateway"), refusals,
    apiKeys: apiKeys.keys, clock: systemClock, logger,
  }, settings);
  const deliveries = await listenForSidecar({ config, logger, logLevel }, {
    responses: besideReceipts(({ deadLetterId }) => letters.received(deadLetterId), (text) => gateway.handleResponse(text)),
    live: (text) => gateway.handleLive(text),
  });
  onStop("sidecar listener", deliveries);
  // The inbox relies on create-only writes and etags as much as sessions do.
  await untilReady(() => probeFencing(inboxState, STATE_STORES.inbox, config.allowUnsafeStore));
  await untilReady(() => gateway.adopt());
  const listening = await listen(gateway.publicApp, { host: config.publicHost, port: config.publicPort ?? 7300 });
  onStop("public listener", { stop: () => listening.close() });
  letters.start();
  onStop("letter box", letters);
  refusals.start();
  onStop("refusals", refusals);
  gateway.start();
  onStop("gateway", gateway);
  const reporter = reporterOf({ app: "gateway", instance: instanceName(), sidecar, bus, stores: [STATE_STORES.inbox], logger }, () => ({}));
  reporter.start();
  onStop("reports", reporter);
  logger.info({ url: listening.url, agents: [...names] }, "gateway ready");
});

function gatewayConfig(settings: Config): GatewayConfig {
  const secrets = (values: readonly string[] | undefined): object => (values === undefined || values.length === 0 ? {} : { secrets: values });
  const github = secrets(settings.githubWebhookSecrets);
  const stripe = secrets(settings.stripeWebhookSecrets);
  return GatewayConfig.parse({
    trustProxyHops: settings.trustProxyHops,
    webhooks: { ...("secrets" in github ? { github } : {}), ...("secrets" in stripe ? { stripe } : {}) },
    ...(settings.sweepAfterMs === undefined ? {} : { sweep: { receiptWaitMs: settings.sweepAfterMs, everyMs: Math.max(200, Math.min(2000, settings.sweepAfterMs)) } }),
  });
}
