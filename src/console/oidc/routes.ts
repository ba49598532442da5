/**
 * Owns: signing in through the identity provider: two GETs, there and back. Both change nothing but this browser's sign-in, and what
 * comes back counts once, for the browser that began, within minutes.
 *
 * - `state` is looked up by hash together with a cookie of its own; nonce and PKCE verifier never leave the server.
 * - Where the browser goes afterwards was checked when it began (return-to.ts); the provider cannot change it.
 * - Every end has its row in the audit, and a page that says in words what is wrong.
 */
import { randomBytes } from "node:crypto";
import type { Express, Request, Response } from "express";
import { rateLimit } from "express-rate-limit";
import { Problem } from "../../contracts/problems.js";
import { asProblem, requestIdOf, sendProblem } from "../../platform/http.js";
import { errorFields } from "../../platform/log.js";
import { audited, type ApiContext } from "../api/context.js";
import { addAudit } from "../read-model/audit.js";
import { addBrowser } from "../read-model/browsers.js";
import { addAttempt, takeAttempt } from "../read-model/sign-in-attempts.js";
import { cookie, isSecure, readCookie } from "../web/cookies.js";
import { claimsKept, principalFrom, type Claims } from "./access-map.js";
import { personCaller, personKey } from "./person.js";
import type { IdentityProvider, OidcSettings } from "./provider.js";
import { safeReturnTo } from "./return-to.js";

export function oidcRoutes(app: Express, context: ApiContext, settings: OidcSettings, provider: IdentityProvider): void {
  const { db, deps, config } = context;
  const limit = rateLimit({
    windowMs: config.signIn.windowMs, limit: config.signIn.oidcAttempts, standardHeaders: "draft-8", legacyHeaders: false,
    handler: (req, res) => { endWith(req, res, new Problem("rate_limited", "too many sign-ins from this address", { hint: "wait as long as Retry-After says" })); },
  });

  app.get("/session/oidc/start", limit, async (req, res) => {
    const returnTo = safeReturnTo(req.query["returnTo"]);
    try {
      const { url, secrets } = await provider.begin(req.query["anew"] === "1");
      const secure = isSecure(req, config.origin);
      // One name for the browser, so that sign-ins begun in two of its tabs both end well.
      const browser = readCookie(req, "begun", secure) ?? randomBytes(32).toString("base64url");
      await addAttempt(db, { ...secrets, browser, returnTo, expiresAtMs: deps.clock.nowMs() + settings.attemptMs }, deps.clock.nowMs());
      res.setHeader("set-cookie", cookie("begun", secure, browser, Math.ceil(settings.attemptMs / 1000))).redirect(303, url);
    } catch (error) {
      await refuse(req, res, { error, returnTo });
    }
  });

  app.get("/session/oidc/callback", limit, async (req, res) => {
    const who: { returnTo?: string; claims?: Claims } = {};
    try {
      const { state } = req.query;
      const browser = readCookie(req, "begun", isSecure(req, config.origin));
      const attempt = typeof state !== "string" || browser === undefined ? undefined : await takeAttempt(db, state, browser, deps.clock.nowMs());
      if (attempt === undefined || typeof state !== "string") throw new Problem("sign_in_replayed", "this sign-in was used before, took too long, or began in another browser", { hint: "begin again from the sign-in page" });
      who.returnTo = attempt.return_to;
      const { claims, idToken } = await provider.finish(new URL(req.originalUrl, settings.redirectUri).search, { state, nonce: attempt.nonce, verifier: attempt.verifier });
      who.claims = claims;
      await signIn(req, res, { claims: claimsKept(settings.access, claims), idToken });
      res.redirect(303, attempt.return_to);
    } catch (error) {
      await refuse(req, res, { error, ...who });
    }
  });

  const signIn = async (req: Request, res: Response, person: { claims: Claims; idToken: string }): Promise<void> => {
    const caller = personCaller(settings.access, person.claims);
    if (caller === undefined) {
      principalFrom(settings.access, person.claims); // says why, where it is not the roles
      throw new Problem("no_role", "the identity provider knows this person, and nothing here gives them a role", { hint: "an administrator adds one of their groups to the access file" });
    }
    const nowMs = deps.clock.nowMs();
    const { iss, sub, name, email } = person.claims;
    const token = await audited(context, req, { caller, action: "browser.sign-in", target: caller.principal.id, reason: "", detail: { via: "oidc", iss, sub, name, email, roles: caller.principal.roles } },
      async () => ({ outcome: "signed in", result: await addBrowser(db, { keyId: caller.keyId, person: { claims: person.claims, idToken: person.idToken } }, nowMs, nowMs + settings.lastsMs) }));
    const secure = isSecure(req, config.origin);
    res.setHeader("set-cookie", cookie("session", secure, token, Math.floor(settings.lastsMs / 1000)));
  };

  const refuse = async (req: Request, res: Response, { error, claims, returnTo }: { error: unknown; claims?: Claims; returnTo?: string }): Promise<void> => {
    const problem = asProblem(error, requestIdOf(res));
    deps.logger.warn({ ...errorFields(error), requestId: requestIdOf(res), ...(problem.cause instanceof Error ? { cause: problem.cause.message } : {}) }, "a sign-in through the identity provider was refused");
    await addAudit(db, {
      atMs: deps.clock.nowMs(), tenant: "", principalId: claims === undefined ? "" : `${String(claims["iss"])}#${String(claims["sub"])}`.slice(0, 300), keyId: claims === undefined ? "" : personKey(claims),
      action: "browser.sign-in", target: "", outcome: problem.code, reason: problem.message.slice(0, 500), detail: { via: "oidc", requestId: requestIdOf(res) }, ip: req.ip ?? "",
    });
    endWith(req, res, problem, returnTo);
  };
}

/** People get the sign-in page, which says it in words; programs the problem. */
function endWith(req: Request, res: Response, problem: Problem, returnTo?: string): void {
  if (!(req.header("accept") ?? "").includes("text/html")) { sendProblem(res, problem); return; }
  const query = new URLSearchParams({ problem: problem.code, request: requestIdOf(res), ...(returnTo === undefined ? {} : { returnTo }) });
  res.redirect(303, `/sign-in?${query.toString()}`);
}
