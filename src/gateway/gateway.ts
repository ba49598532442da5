/**
 * Owns: putting the edge together: the public app, what the two subscribed channels call, and the sweeper. All outside is
 * handed in (ports.ts); the sidecar-facing listener is src/dapr's.
 */
import type { Express } from "express";
import type { DeliveryStatus } from "../contracts/messages.js";
import type { ApiKeys } from "../platform/apikeys.js";
import type { Clock } from "../platform/clock.js";
import { createHttpApp, finishRoutes, rawBody } from "../platform/http.js";
import { errorFields, type Logger } from "../platform/log.js";
import { watch } from "../platform/telemetry/metrics.js";
import type { GatewayConfig } from "./config.js";
import type { AcceptDeps } from "./in/accept.js";
import { cancelRoutes } from "./in/cancel.js";
import { authenticated, noteRefusals } from "./in/caller.js";
import { eventRoutes } from "./in/events.js";
import { webhookRoutes } from "./in/webhooks.js";
import { perAddress, perPrincipal } from "./limits.js";
import { handleLive, handleResponse, type DeliveryDeps } from "./out/deliveries.js";
import { Feeds } from "./out/feeds.js";
import { createAgentOf, readRoutes } from "./out/reads.js";
import { StreamRoutes } from "./out/stream-route.js";
import { Lanes } from "./lanes.js";
import type { DeadLetters, Inbox, Router, Sessions, TaskPublisher } from "./ports.js";
import type { RefusalBook } from "./refusals.js";
import { Sweeper } from "./sweeper.js";

export interface GatewayDeps {
  readonly publisher: TaskPublisher;
  readonly inbox: Inbox;
  readonly sessions: Sessions;
  readonly route: Router;
  readonly deadLetters: DeadLetters;
  /** Told of what is refused for want of rights. */
  readonly refusals: Pick<RefusalBook, "note">;
  readonly apiKeys: Pick<ApiKeys, "authenticate">;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface Gateway {
  /** For the public listener (platform/http `listen`). */
  readonly publicApp: Express;
  /** One delivery of the channel `responses`. Throwing means RETRY. */
  handleResponse(text: string): Promise<DeliveryStatus>;
  /** One delivery of the channel `live`. */
  handleLive(text: string): Promise<DeliveryStatus>;
  /** Publishes events without receipt that are due; returns how many. */
  sweep(): Promise<number>;
  /** What is open, for health pages and tests. */
  stats(): { readonly streams: number; readonly feeds: number };
  /** Takes over what waits for its receipt. Before the first event is taken. Throws Problem `store_unavailable`. */
  adopt(): Promise<void>;
  start(): void;
  /** Ends the sweeper and all streams. Close the listener after it. */
  stop(): Promise<void>;
}

/** Rows behind one reading of the inbox's age. */
const LOOKED_AT = 50;

const INDEX = {
  name: "docket gateway", documentation: "docs/edge.md",
  routes: [
    "GET /healthz", "POST /v1/prompts", "POST /v1/events", "POST /v1/sessions/:id/events", "POST /v1/sessions/:id/cancel", "GET /v1/sessions/:id",
    "GET /v1/sessions/:id/stream", "GET /v1/sessions/:id/events/:key", "POST /webhooks/github", "POST /webhooks/stripe",
  ],
};

export function createGateway(deps: GatewayDeps, config: GatewayConfig): Gateway {
  const lanes = new Lanes({
    holds: (rowKey) => deps.inbox.holds(rowKey), clock: deps.clock,
    onFailure: (rowKey, error) => { deps.logger.warn({ rowKey, ...errorFields(error) }, "a publish failed; the sweeper repeats it"); },
  });
  const accept: AcceptDeps = { publisher: deps.publisher, inbox: deps.inbox, lanes, route: deps.route, clock: deps.clock, logger: deps.logger, config };
  const feeds = new Feeds(deps.sessions, config.stream);
  const streams = new StreamRoutes({ sessions: deps.sessions, inbox: deps.inbox, feeds, clock: deps.clock, logger: deps.logger, config: config.stream });
  const sweeper = new Sweeper({ ...deps, lanes, config: config.sweep });
  const deliveries: DeliveryDeps = { inbox: deps.inbox, lanes, deadLetters: deps.deadLetters, feeds, clock: deps.clock, logger: deps.logger };
  watch("docket.inbox.oldest.seconds", async () => [{ value: await oldestS(deps) }]);
  return {
    publicApp: publicApp(deps, config, { accept, streams }),
    handleResponse: (text) => handleResponse(deliveries, text),
    handleLive: (text) => Promise.resolve(handleLive(deliveries, text)),
    sweep: () => sweeper.now(),
    stats: () => ({ streams: streams.size, feeds: feeds.size }),
    adopt: () => sweeper.adopt(),
    start: () => { sweeper.start(); },
    stop: async () => {
      streams.stop();
      await sweeper.stop();
    },
  };
}

/** Of the rows that are due the longest; 0 where none waits. */
async function oldestS({ inbox, clock }: Pick<GatewayDeps, "inbox" | "clock">): Promise<number> {
  const nowMs = clock.nowMs();
  const rows = await inbox.due(Infinity, LOOKED_AT);
  return (nowMs - Math.min(nowMs, ...rows.map(({ acceptedAtMs }) => acceptedAtMs))) / 1000;
}

/** Order matters: who calls is known before a byte of the body is read, and how often before it is worked on. */
function publicApp(deps: GatewayDeps, config: GatewayConfig, parts: { accept: AcceptDeps; streams: StreamRoutes }): Express {
  const app = createHttpApp();
  app.set("trust proxy", config.trustProxyHops);
  const body = rawBody(config.bodyLimitBytes);
  app.get("/healthz", (_req, res) => { res.json({ status: "ok" }); });
  app.get("/", (_req, res) => { res.json(INDEX); });
  app.use(webhookRoutes(parts.accept, [perAddress(config.rateLimit)], body));
  app.use("/v1", authenticated(deps.apiKeys, perAddress(config.rateLimit)), perPrincipal(config.rateLimit));
  app.use(eventRoutes({ accept: parts.accept, agentOf: createAgentOf(deps.sessions, deps.logger) }, body));
  app.use(cancelRoutes({ accept: parts.accept, sessions: deps.sessions }, body));
  app.use(readRoutes(deps));
  app.use(parts.streams.router);
  app.use(noteRefusals(deps.logger, (refused) => { deps.refusals.note(refused); }));
  finishRoutes(app, deps.logger);
  return app;
}
