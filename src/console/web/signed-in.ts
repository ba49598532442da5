/**
 * Owns: people in a browser. `POST /session` takes an API key once and gives an HttpOnly, SameSite=Strict cookie; no script ever holds
 * the key again. A cookie is only as good as its key: revoked or expired keys end it at once.
 *
 * - A write that is authorised by the cookie must name this very origin (CSRF). Requests with an Authorization header carry
 *   their own proof and are not asked.
 * - Sign-in is throttled by address; only failures count.
 */
import type { Express, Request, RequestHandler } from "express";
import { rateLimit } from "express-rate-limit";
import { z } from "zod";
import { Problem } from "../../contracts/problems.js";
import type { Authenticated } from "../../platform/apikeys.js";
import { sendProblem } from "../../platform/http.js";
import { readBody, rightsOf } from "../api/access.js";
import { rememberCaller, signedInCaller } from "../api/caller.js";
import { audited, type ApiContext } from "../api/context.js";
import { addBrowser, findBrowser, removeBrowser } from "../read-model/browsers.js";

const SignIn = z.strictObject({ apiKey: z.string().min(1).max(300) });

/** Mount before the API: turns a cookie into a caller. */
export function browserCookies({ db, deps, config }: ApiContext): RequestHandler {
  return async (req, _res, next) => {
    const token = req.header("authorization") === undefined ? tokenOf(req, isSecure(req, config.origin)) : undefined;
    if (token === undefined) { next(); return; }
    const found = await findBrowser(db, token, deps.clock.nowMs());
    const caller = found === undefined ? undefined : deps.authenticator.recall(found.keyId);
    if (caller !== undefined) {
      if (!isRead(req)) requireOwnOrigin(req, config.origin);
      rememberCaller(req, caller);
    }
    next();
  };
}

/** GET, POST, DELETE /session. */
export function signInRoutes(app: Express, context: ApiContext): void {
  const { db, deps, config } = context;
  const throttle = rateLimit({
    windowMs: config.signIn.windowMs, limit: config.signIn.attempts, skipSuccessfulRequests: true, standardHeaders: "draft-8", legacyHeaders: false,
    handler: (_req, res) => { sendProblem(res, new Problem("rate_limited", "too many failed sign-ins from this address", { hint: "wait as long as Retry-After says" })); },
  });

  app.get("/session", (req, res) => {
    const caller = signedInCaller(req) ?? deps.authenticator.authenticate(req.header("authorization"));
    res.json(whoIs(caller, deps.clock.nowMs()));
  });

  app.post("/session", throttle, async (req, res) => {
    requireOwnOrigin(req, config.origin);
    const { apiKey } = readBody(req, SignIn);
    const caller = deps.authenticator.authenticate(`Bearer ${apiKey}`);
    const nowMs = deps.clock.nowMs();
    const expiresAtMs = Math.min(nowMs + config.signIn.lastsMs, caller.expiresAtMs ?? Infinity);
    const token = await audited(context, req, { caller, action: "browser.sign-in", target: caller.principal.id, reason: "", detail: {} },
      async () => ({ outcome: "signed in", result: await addBrowser(db, caller.keyId, nowMs, expiresAtMs) }));
    res.setHeader("set-cookie", cookie(isSecure(req, config.origin), token, Math.floor((expiresAtMs - nowMs) / 1000)));
    res.status(201).json(whoIs(caller, nowMs));
  });

  app.delete("/session", async (req, res) => {
    const caller = signedInCaller(req);
    const secure = isSecure(req, config.origin);
    const token = tokenOf(req, secure);
    if (caller !== undefined && token !== undefined) {
      await audited(context, req, { caller, action: "browser.sign-out", target: caller.principal.id, reason: "", detail: {} },
        async () => { await removeBrowser(db, token); return { outcome: "signed out", result: undefined }; });
    }
    res.setHeader("set-cookie", cookie(secure, "", 0)).status(204).end();
  });
}

function whoIs(caller: Authenticated, nowMs: number): object {
  const { id, class: kind, roles } = caller.principal;
  return { principal: { id, class: kind, roles }, tenant: caller.tenant, keyId: caller.keyId, rights: rightsOf(caller), nowMs };
}

/** TLS ends here, or at a proxy whose address browsers see. */
function isSecure(req: Request, proxied: string | undefined): boolean { return req.secure || proxied?.startsWith("https:") === true; }

function isRead(req: Request): boolean { return req.method === "GET" || req.method === "HEAD"; }

/**
 * Throws Problem `forbidden` unless the browser says that a page of this console sent the request: of the address that the browser called, or
 * of the one that a proxy in front shows.
 */
function requireOwnOrigin(req: Request, proxied: string | undefined): void {
  const called = `${req.protocol}://${req.header("host") ?? ""}`;
  const from = req.header("origin");
  if (from !== undefined && (from === called || from === proxied)) return;
  throw new Problem("forbidden", `this write came from ${from ?? "no origin"}, expected ${proxied ?? called}`, { hint: "use the console's own pages, or an API key in the Authorization header; behind a proxy set DOCKET_CONSOLE_URL" });
}

/** With TLS the name binds the cookie to this host and to TLS. */
function cookieName(secure: boolean): string { return secure ? "__Host-docket" : "docket"; }

function cookie(secure: boolean, value: string, maxAgeS: number): string {
  return `${cookieName(secure)}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${String(maxAgeS)}${secure ? "; Secure" : ""}`;
}

function tokenOf(req: Request, secure: boolean): string | undefined {
  const prefix = `${cookieName(secure)}=`;
  const pair = (req.header("cookie") ?? "").split(";").map((part) => part.trim()).find((part) => part.startsWith(prefix));
  const token = pair?.slice(prefix.length);
  return token !== undefined && /^[A-Za-z0-9_-]{20,100}$/.test(token) ? token : undefined;
}
