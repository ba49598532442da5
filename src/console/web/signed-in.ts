/**
 * Owns: people in a browser. `POST /session` takes an API key once and gives an HttpOnly, SameSite=Strict cookie; no script ever holds
 * the key again. The identity provider (oidc/routes.ts) gives the same cookie. A cookie is only as good as what it was given for: revoked or
 * expired keys end it at once, and what a person of the identity provider may do is worked out anew for each request.
 *
 * - A write that is authorised by the cookie must name this very origin (CSRF). Requests with an Authorization header carry
 *   their own proof and are not asked.
 * - Sign-in is throttled by address; only failures count.
 */
import type { Express, RequestHandler } from "express";
import { rateLimit } from "express-rate-limit";
import { z } from "zod";
import { Problem } from "../../contracts/problems.js";
import type { Authenticated } from "../../platform/apikeys.js";
import { readBody, rightsOf } from "../api/access.js";
import { noteCaller, rememberCaller, signedInCaller } from "../api/caller.js";
import { audited, type ApiContext } from "../api/context.js";
import { personCaller } from "../oidc/person.js";
import type { IdentityProvider } from "../oidc/provider.js";
import { addBrowser, findBrowser, removeBrowser, type SignedIn } from "../read-model/browsers.js";
import { cookie, isRead, isSecure, readCookie, requireOwnOrigin } from "./cookies.js";

const SignIn = z.strictObject({ apiKey: z.string().min(1).max(300) });

/** Mount before the API: turns a cookie into a caller. */
export function browserCookies(context: ApiContext): RequestHandler {
  const { db, deps, config } = context;
  return async (req, _res, next) => {
    const token = req.header("authorization") === undefined ? readCookie(req, "session", isSecure(req, config.origin)) : undefined;
    if (token === undefined) { next(); return; }
    const caller = callerOf(context, await findBrowser(db, token, deps.clock.nowMs()));
    if (caller !== undefined) {
      noteCaller(req, caller);
      if (!isRead(req)) requireOwnOrigin(req, config.origin);
      rememberCaller(req, caller);
    }
    next();
  };
}

function callerOf({ deps, config }: ApiContext, found: SignedIn | undefined): Authenticated | undefined {
  if (found === undefined) return undefined;
  if (found.person !== undefined) return config.oidc === undefined ? undefined : personCaller(config.oidc.access, found.person.claims);
  return config.signIn.withKeys ? deps.authenticator.recall(found.keyId) : undefined;
}

/** GET, POST, DELETE /session, and how one may sign in. */
export function signInRoutes(app: Express, context: ApiContext, provider: IdentityProvider | undefined): void {
  const { db, deps, config } = context;
  const throttle = rateLimit({
    windowMs: config.signIn.windowMs, limit: config.signIn.attempts, skipSuccessfulRequests: true, standardHeaders: "draft-8", legacyHeaders: false,
    handler: (_req, _res, next) => { next(new Problem("rate_limited", "too many failed sign-ins from this address", { hint: "wait as long as Retry-After says" })); },
  });

  /** For the sign-in page, before anybody is known. */
  app.get("/session/ways", (_req, res) => {
    res.json({ apiKey: config.signIn.withKeys, oidc: config.oidc === undefined ? null : { label: config.oidc.label, start: "/session/oidc/start" }, development: deps.authenticator.development() });
  });

  app.get("/session", async (req, res) => {
    const caller = signedInCaller(req) ?? deps.authenticator.authenticate(req.header("authorization"));
    const token = readCookie(req, "session", isSecure(req, config.origin));
    const found = token === undefined || signedInCaller(req) === undefined ? undefined : await findBrowser(db, token, deps.clock.nowMs());
    res.json(whoIs(context, caller, found));
  });

  app.post("/session", throttle, async (req, res) => {
    requireOwnOrigin(req, config.origin);
    if (!config.signIn.withKeys) throw new Problem("forbidden", "signing in with an API key is switched off for browsers", { hint: `sign in with ${config.oidc?.label ?? "the identity provider"}; API keys still work in the Authorization header` });
    const { apiKey } = readBody(req, SignIn);
    const caller = deps.authenticator.authenticate(`Bearer ${apiKey}`);
    const nowMs = deps.clock.nowMs();
    const expiresAtMs = Math.min(nowMs + config.signIn.lastsMs, caller.expiresAtMs ?? Infinity);
    const token = await audited(context, req, { caller, action: "browser.sign-in", target: caller.principal.id, reason: "", detail: {} },
      async () => ({ outcome: "signed in", result: await addBrowser(db, { keyId: caller.keyId }, nowMs, expiresAtMs) }));
    res.setHeader("set-cookie", cookie("session", isSecure(req, config.origin), token, Math.floor((expiresAtMs - nowMs) / 1000)));
    res.status(201).json(whoIs(context, caller, undefined));
  });

  // `endSession`: where the browser goes to sign out at the identity provider too.
  app.delete("/session", async (req, res) => {
    const caller = signedInCaller(req);
    const secure = isSecure(req, config.origin);
    const token = readCookie(req, "session", secure);
    let idToken: string | undefined;
    if (caller !== undefined && token !== undefined) {
      idToken = (await findBrowser(db, token, deps.clock.nowMs()))?.person?.idToken;
      await audited(context, req, { caller, action: "browser.sign-out", target: caller.principal.id, reason: "", detail: {} },
        async () => { await removeBrowser(db, token); return { outcome: "signed out", result: undefined }; });
    }
    const endSession = idToken === undefined ? undefined : await provider?.endSession(idToken);
    res.setHeader("set-cookie", cookie("session", secure, "", 0));
    if (endSession === undefined) res.status(204).end();
    else res.json({ endSession });
  });
}

function whoIs({ deps }: ApiContext, caller: Authenticated, found: SignedIn | undefined): object {
  const { id, class: kind, roles, groups } = caller.principal;
  const { name, email } = found?.person?.claims ?? {};
  return {
    principal: { id, class: kind, roles, ...(groups === undefined ? {} : { groups }) }, tenant: caller.tenant, keyId: caller.keyId, rights: rightsOf(caller), nowMs: deps.clock.nowMs(),
    ...(typeof name === "string" ? { name } : {}), ...(typeof email === "string" ? { email } : {}), ...(deps.authenticator.development() ? { development: true } : {}),
  };
}
