/** Owns: request rates at the edge. Counted per process: N replicas let N times as much through. */
import type { Request, RequestHandler, Response } from "express";
import { ipKeyGenerator, rateLimit } from "express-rate-limit";
import { Problem } from "../contracts/problems.js";
import { sendProblem } from "../platform/http.js";
import type { GatewayConfig } from "./config.js";
import { callerKey } from "./in/caller.js";

/** Per principal, after authentication. */
export function perPrincipal(config: GatewayConfig["rateLimit"]): RequestHandler {
  return limiter(config.windowMs, config.perPrincipal, (_req, res) => callerKey(res));
}

/** Per client address: for webhooks before the signature is computed, and for refused credentials. */
export function perAddress(config: GatewayConfig["rateLimit"]): RequestHandler {
  return limiter(config.windowMs, config.perAddress, addressOf);
}

function limiter(windowMs: number, limit: number, keyGenerator: (req: Request, res: Response) => string): RequestHandler {
  return rateLimit({
    windowMs, limit, standardHeaders: "draft-8", legacyHeaders: false, keyGenerator,
    handler: (_req, res) => {
      if (!res.hasHeader("retry-after")) res.setHeader("retry-after", Math.ceil(windowMs / 1000));
      sendProblem(res, new Problem("rate_limited", `more than ${limit} requests in ${Math.round(windowMs / 1000)} s`, { hint: "wait as Retry-After says" }));
    },
  });
}

function addressOf(req: Request): string { return ipKeyGenerator(req.ip ?? ""); }
