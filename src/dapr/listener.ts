/**
 * Owns: the listener that daprd calls: token check, health, subscriptions, one route per channel. It is not the
 * public listener: it binds to loopback (or the pod's address) and refuses callers without the app token (DESIGN 7.4).
 *
 * A delivery's body is read as text, whole, so that the envelope keeps its digits. Unknown routes answer 503, never
 * 404: daprd drops a message for 404 (DESIGN 7.1).
 */
import { timingSafeEqual } from "node:crypto";
import type { Server } from "node:http";
import express, { type Express, type NextFunction, type Request, type Response } from "express";
import { CHANNELS, DEAD_LETTER_TOPIC, type ChannelName } from "../contracts/channels.js";
import type { DeliveryStatus } from "../contracts/messages.js";
import { faultPoint } from "../platform/faults.js";
import { errorFields, type Logger } from "../platform/log.js";
import type { LogLevelSwitch } from "../platform/log-level.js";
import { count, measure } from "../platform/telemetry/metrics.js";
import { logLevelRoutes } from "./log-level-route.js";

const ANSWERS: Readonly<Record<DeliveryStatus, string>> = { SUCCESS: '{"status":"SUCCESS"}', RETRY: '{"status":"RETRY"}', DROP: '{"status":"DROP"}' };

/** Takes the raw text of one delivery. Throwing means RETRY. Dead letters also bring their bytes where these are no text. */
export type DeliveryHandler = (text: string, bytes?: Uint8Array) => Promise<DeliveryStatus>;

export interface ListenerOptions {
  readonly host: string;
  readonly port: number;
  /** APP_API_TOKEN; undefined is allowed on loopback only. */
  readonly appToken: string | undefined;
  readonly subscriptions: Partial<Record<ChannelName, DeliveryHandler>>;
  readonly logger: Logger;
  /** Changed at run time by `PUT /log-level`. */
  readonly logLevel?: LogLevelSwitch;
}

/** Far above what any handler takes: those say why they refuse. */
const BODY_LIMIT = "4mb";
/** What is larger than the other limit ends here, and this is the last place. */
const DEAD_LETTER_LIMIT = "48mb";

/** Builds the app. Channel routes are mounted before anything that an actor host adds, so that no JSON parser eats their body (trap 12). */
export function createListener(options: ListenerOptions): Express {
  if (options.appToken === undefined && !isLoopback(options.host)) {
    throw new Error(`APP_API_TOKEN is not set and the sidecar-facing listener would bind to ${options.host}: set the token, or bind to 127.0.0.1`);
  }
  const app = express();
  app.disable("x-powered-by");
  // daprd asks no condition: a digest of every answer would be for nobody.
  app.disable("etag");
  app.get("/healthz", (_req, res) => { res.send("ok"); });
  app.use(tokenCheck(options.appToken));
  if (options.logLevel !== undefined) logLevelRoutes(app, options.logLevel);
  app.get("/dapr/subscribe", (_req, res) => { res.json(subscriptionList(options.subscriptions)); });
  for (const [name, handler] of Object.entries(options.subscriptions)) {
    const last = name === "deadLetters";
    app.post(routeOf(name as ChannelName), express.text({ type: () => true, limit: last ? DEAD_LETTER_LIMIT : BODY_LIMIT }), deliver(name, last ? (text) => handler(...unwrapRaw(text)) : handler, options.logger), tooLarge(name, last ? handler : undefined, options.logger));
  }
  return app;
}

/** Adds the catch-all. Call after every other route. */
export function closeRoutes(app: Express, logger: Logger): void {
  app.use((req: Request, res: Response) => {
    if (req.path === "/dapr/config") { res.status(404).end(); return; }
    logger.warn({ method: req.method, path: req.path }, "unknown route on the sidecar-facing port");
    res.status(503).json({ error: "unknown route" });
  });
  app.use((error: unknown, _req: Request, res: Response, next: NextFunction) => {
    logger.error(errorFields(error), "a sidecar-facing route failed");
    if (res.headersSent) { next(error); return; }
    res.status(500).json({ error: "failed" });
  });
}

/** Listens with a keep-alive longer than daprd's 90 s (DESIGN 7.8). Rejects when the port is taken. */
export function listen(app: Express, host: string, port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = app.listen(port, host, (error?: Error) => {
      if (error) reject(error);
      else resolve(tuneServer(server));
    });
  });
}

/** Node closes idle sockets after 5 s; daprd keeps them for 90 s and would meet resets. */
export function tuneServer(server: Server): Server {
  server.keepAliveTimeout = 120_000;
  server.headersTimeout = 125_000;
  return server;
}

function routeOf(channel: ChannelName): string { return `/channels/${CHANNELS[channel].component}`; }

function subscriptionList(subscriptions: ListenerOptions["subscriptions"]): object[] {
  return (Object.keys(subscriptions) as ChannelName[]).map((name) => ({
    pubsubname: CHANNELS[name].component,
    topic: CHANNELS[name].topic,
    route: routeOf(name),
    // The dead-letter subscription takes raw payloads, since what daprd forwards may be anything (DESIGN 7.2).
    ...(name === "deadLetters" || name === "live" ? {} : { deadLetterTopic: DEAD_LETTER_TOPIC }),
    // As it is, whatever it is: daprd cannot read every message that it forwards there, and would repeat it for ever.
    ...(name === "deadLetters" ? { metadata: { rawPayload: "true" } } : {}),
    // RabbitMQ: one of several session hosts reads at a time, or they reorder (DESIGN 7.6). Other brokers do not know the word.
    ...(name === "tasks" ? { metadata: { singleActiveConsumer: "true" } } : {}),
  }));
}

/** The text of a raw delivery, which daprd wraps into an event of its own; and its bytes, where the text does not say them. */
export function unwrapRaw(text: string): [text: string, bytes?: Uint8Array] {
  const wrapped = base64Of(text);
  if (wrapped === undefined) return [text];
  const bytes = Buffer.from(wrapped, "base64");
  const plain = bytes.toString("utf8");
  return Buffer.from(plain, "utf8").equals(bytes) ? [plain] : [plain, bytes];
}

function base64Of(text: string): string | undefined {
  try {
    const wrapper = JSON.parse(text) as { data_base64?: unknown } | null;
    return typeof wrapper?.data_base64 === "string" ? wrapper.data_base64 : undefined;
  } catch {
    return undefined;
  }
}

/**
 * A delivery beyond the limit would be repeated for ever (daprd takes an error for a failure of the way). DROP makes the sidecar
 * hand it to the dead letters as it is; what is too large for those too is recorded by its size.
 */
function tooLarge(channel: string, lastPlace: DeliveryHandler | undefined, logger: Logger) {
  return async (error: unknown, req: Request, res: Response, next: NextFunction): Promise<void> => {
    if ((error as { type?: unknown }).type !== "entity.too.large") { next(error); return; }
    const bytes = req.header("content-length") ?? "unknown";
    logger.error({ channel, bytes }, "a delivery is too large to be read");
    if (lastPlace === undefined) { res.json({ status: "DROP" }); return; }
    res.json({ status: await lastPlace(`a message of ${bytes} bytes, too large to be kept`).catch(() => "RETRY" as const) });
  };
}

function deliver(channel: string, handler: DeliveryHandler, logger: Logger) {
  return async (req: Request, res: Response): Promise<void> => {
    let status: DeliveryStatus = "RETRY";
    const began = performance.now();
    try {
      status = await handler(typeof req.body === "string" ? req.body : "");
    } catch (error) {
      // A failure of the way, not of the event: the broker keeps it (DESIGN 3).
      logger.warn({ channel, ...errorFields(error) }, "delivery failed, the broker will repeat it");
    }
    count("docket.deliveries", 1, { channel, answer: status });
    measure("docket.delivery.duration.seconds", (performance.now() - began) / 1000, { channel });
    faultPoint("before-ack");
    const answer = ANSWERS[status];
    res.writeHead(200, { "content-type": "application/json", "content-length": answer.length }).end(answer);
  };
}

function tokenCheck(token: string | undefined) {
  const expected = token === undefined ? undefined : Buffer.from(token);
  return (req: Request, res: Response, next: NextFunction): void => {
    const given = Buffer.from(req.header("dapr-api-token") ?? "");
    if (expected === undefined || (given.length === expected.length && timingSafeEqual(given, expected))) { next(); return; }
    res.status(401).json({ error: "the app token is missing or wrong" });
  };
}

function isLoopback(host: string): boolean { return host === "127.0.0.1" || host === "::1" || host === "localhost"; }
