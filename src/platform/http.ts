/**
 * Owns: what every public HTTP port of Docket shares: the Express app with its security headers and request id, bounded
 * body reading, problem documents for every failure, and the listener's timeouts. Nothing internal leaves here: an
 * unknown error becomes `internal` with the request id, and its text goes to the log only (I13, I14).
 */
import { randomUUID } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import express, { type ErrorRequestHandler, type Express, type RequestHandler, type Request, type Response } from "express";
import helmet from "helmet";
import { Problem } from "../contracts/problems.js";
import { errorFields, type Logger } from "./log.js";

const REQUEST_ID_HEADER = "x-request-id";

/** An Express 5 app with helmet, a request id, and no opinion about bodies. `csp` opens the content policy where a UI is served. */
export function createHttpApp(options: { readonly csp?: Record<string, string[]> } = {}): Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.set("query parser", "simple");
  app.use(helmet({ contentSecurityPolicy: { useDefaults: false, directives: options.csp ?? { "default-src": ["'none'"], "frame-ancestors": ["'none'"] } } }));
  app.use(requestId);
  return app;
}

/** Takes a sane X-Request-Id over, else makes one; it is on every answer and in every problem's `instance`. */
const requestId: RequestHandler = (req, res, next) => {
  const given = req.header(REQUEST_ID_HEADER);
  res.setHeader(REQUEST_ID_HEADER, given !== undefined && /^[A-Za-z0-9._-]{1,100}$/.test(given) ? given : randomUUID());
  next();
};

/** The id that this answer carries. */
export function requestIdOf(res: Response): string {
  const id = res.getHeader(REQUEST_ID_HEADER);
  return typeof id === "string" ? id : "unknown";
}

/** Mount last: 404 for what no route took, and problem documents for what routes threw. */
export function finishRoutes(app: Express, logger: Logger): void {
  app.use((req) => {
    throw new Problem("not_found", `no route ${req.method} ${clip(req.path)}`, { hint: "GET / lists what is here" });
  });
  app.use(problemHandler(logger));
}

/** Renders whatever was thrown as an RFC 9457 document. */
function problemHandler(logger: Logger): ErrorRequestHandler {
  return (error: unknown, req, res, next) => {
    const problem = asProblem(error, requestIdOf(res));
    if (problem.status >= 500) logger.error({ ...errorFields(error), requestId: requestIdOf(res), method: req.method, path: clip(req.path) }, "a request failed");
    if (problem.status < 500 && problem.status !== 404 && problem.status !== 429) logger[problem.status === 401 || problem.status === 403 ? "warn" : "info"]({ code: problem.code, requestId: requestIdOf(res), method: req.method, path: clip(req.path), ip: req.ip }, "a request was refused");
    // Answering twice is not possible: Express cuts the connection, and the client sees that it is incomplete.
    if (res.headersSent) { next(error); return; }
    sendProblem(res, problem);
  };
}

/** Sends one problem document. */
export function sendProblem(res: Response, problem: Problem): void {
  if (problem.retryable && problem.status >= 429 && !res.hasHeader("retry-after")) res.setHeader("retry-after", "1");
  if (problem.code === "unauthenticated") res.setHeader("www-authenticate", 'Bearer realm="docket"');
  res.status(problem.status).type("application/problem+json").send(JSON.stringify(problem.toDocument(`urn:docket:request:${requestIdOf(res)}`)));
}

/** Any thrown value as a Problem; the text of an unexpected one stays inside. */
export function asProblem(error: unknown, id: string): Problem {
  if (error instanceof Problem) return error;
  const status = error instanceof Error ? (error as { status?: unknown }).status : undefined;
  if (status === 413) return new Problem("payload_too_large", "the request body is too large", { cause: error });
  // Express and its parsers mark what the client did wrong by a 4xx `status` (a broken %-escape in a path, for one).
  if (typeof status === "number" && status >= 400 && status < 500) return new Problem("bad_request", "the request could not be read: a path, header or body is malformed", { cause: error });
  return new Problem("internal", `an unexpected failure; the log has it under request ${id}`, { cause: error });
}

/**
 * Reads the body as raw bytes into `req.body` (a Buffer, unchanged: signatures are over these bytes). Larger than
 * `limitBytes` is refused before reading on, and the connection closed. Compressed bodies are refused: a
 * signature does not cover them, and a bomb cannot unfold.
 */
export function rawBody(limitBytes: number): RequestHandler {
  return (req, res, next) => {
    const encoding = req.header("content-encoding");
    if (encoding !== undefined && encoding.toLowerCase() !== "identity") throw new Problem("bad_request", `Content-Encoding ${clip(encoding)} is not taken here`, { hint: "send the body uncompressed" });
    const tooLarge = (): Problem => {
      res.setHeader("connection", "close");
      return new Problem("payload_too_large", `the body is larger than ${String(limitBytes)} bytes`, { hint: "store the payload elsewhere and send a reference" });
    };
    if (Number(req.header("content-length") ?? 0) > limitBytes) throw tooLarge();
    collect(req, limitBytes).then((body) => {
      if (body === "too_large") { next(tooLarge()); return; }
      if (body === "aborted") return; // nobody is left to answer
      req.body = body;
      next();
    }, next);
  };
}

function collect(req: Request, limitBytes: number): Promise<Buffer | "too_large" | "aborted"> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const done = (result: Buffer | "too_large" | "aborted"): void => {
      req.off("data", onData).off("end", onEnd).off("close", onClose).off("error", onClose);
      if (result === "too_large") req.pause();
      resolve(result);
    };
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > limitBytes) done("too_large");
      else chunks.push(chunk);
    };
    const onEnd = (): void => { done(Buffer.concat(chunks)); };
    const onClose = (): void => { done("aborted"); };
    req.on("data", onData).on("end", onEnd).on("close", onClose).on("error", onClose);
  });
}

/** The raw body as text. Throws Problem `not_json` where it is not UTF-8: decoding with replacement would change what was signed. */
export function bodyText(req: Request): string {
  const body: unknown = req.body;
  if (!Buffer.isBuffer(body)) return "";
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
  } catch (error) {
    throw new Problem("not_json", "the body is not valid UTF-8", { cause: error });
  }
}

export interface Listening {
  readonly url: string;
  readonly server: Server;
  /** Stops taking connections, lets requests finish for `graceMs` (default 5 s), then cuts them. */
  close(graceMs?: number): Promise<void>;
}

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** Time for a request's headers; below it slow senders are cut. */
  readonly headersTimeoutMs?: number;
  /** Time for a whole request to arrive. */
  readonly requestTimeoutMs?: number;
}

/** Listens; rejects when the port is taken. Keep-alive is above the 90 s of daprd and of common load balancers (DESIGN 7.8). */
export function listen(app: Express, options: ListenOptions): Promise<Listening> {
  const headersTimeoutMs = options.headersTimeoutMs ?? 125_000;
  const server = createServer({ connectionsCheckingInterval: Math.min(5_000, headersTimeoutMs) }, app);
  server.keepAliveTimeout = 120_000;
  server.headersTimeout = headersTimeoutMs;
  server.requestTimeout = options.requestTimeoutMs ?? 130_000;
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, () => {
      server.off("error", reject);
      const { port } = server.address() as AddressInfo;
      const host = options.host.includes(":") ? `[${options.host}]` : options.host;
      resolve({ url: `http://${host}:${String(port)}`, server, close: (graceMs = 5_000) => closeServer(server, graceMs) });
    });
  });
}

function closeServer(server: Server, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => { server.closeAllConnections(); }, graceMs);
    server.close(() => { clearTimeout(cut); resolve(); });
    server.closeIdleConnections();
  });
}

function clip(text: string): string { return text.length > 200 ? `${text.slice(0, 200)}…` : text; }
