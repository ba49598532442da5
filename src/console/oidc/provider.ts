/**
 * Owns: talking to the identity provider: code flow with PKCE, state and nonce, through `openid-client`. What the provider says is
 * believed only with its signature (the library would leave that to TLS), and every failure is one of a few problems.
 */
import * as oidc from "openid-client";
import { z } from "zod";
import { Problem } from "../../contracts/problems.js";
import { AccessMap, type Claims } from "./access-map.js";

export const OidcSettings = z.object({
  issuer: z.url(),
  clientId: z.string().min(1),
  clientSecret: z.string().min(1).optional().describe("Without it the client is a public one, with PKCE alone"),
  scopes: z.string().default("openid profile email"),
  access: AccessMap,
  /** Where the provider sends browsers back to, exactly. */
  redirectUri: z.url(),
  afterLogout: z.url(),
  label: z.string().default("single sign-on"),
  lastsMs: z.number().int().positive().default(8 * 3_600_000).describe("How long such a sign-in lasts"),
  attemptMs: z.number().int().positive().default(10 * 60_000).describe("How long a sign-in may take"),
  timeoutS: z.number().positive().default(10),
  clockToleranceS: z.number().int().min(0).default(30),
});
export type OidcSettings = z.infer<typeof OidcSettings>;

/** What must come back unchanged, known to this server only. */
export interface Secrets { readonly state: string; readonly nonce: string; readonly verifier: string }
export interface SignedInPerson { readonly claims: Claims; readonly idToken: string }

export interface IdentityProvider {
  /** Where to send the browser. `anew`: the provider asks who it is even where it knows. Throws Problem `sign_in_unavailable`, `sign_in_refused`. */
  begin(anew: boolean): Promise<{ readonly url: string; readonly secrets: Secrets }>;
  /** `search`: what the browser came back with. Throws Problem `sign_in_unavailable`, `sign_in_refused`, `clock_skew`. */
  finish(search: string, secrets: Secrets): Promise<SignedInPerson>;
  /** Where signing out there is offered. */
  endSession(idToken: string): Promise<string | undefined>;
}

export function createIdentityProvider(settings: OidcSettings): IdentityProvider {
  let found: Promise<oidc.Configuration> | undefined;
  /** Asked for once; a failure is forgotten, so that the next sign-in asks again. */
  const configuration = (): Promise<oidc.Configuration> => {
    found ??= discover(settings).catch((error: unknown) => { found = undefined; throw asSignInProblem(error); });
    return found;
  };
  return {
    async begin(anew) {
      const config = await configuration();
      const secrets = { state: oidc.randomState(), nonce: oidc.randomNonce(), verifier: oidc.randomPKCECodeVerifier() };
      const url = oidc.buildAuthorizationUrl(config, {
        redirect_uri: settings.redirectUri, scope: settings.scopes, response_type: "code", state: secrets.state, nonce: secrets.nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(secrets.verifier), code_challenge_method: "S256", ...(anew ? { prompt: "login" } : {}),
      });
      return { url: url.href, secrets };
    },
    async finish(search, { state, nonce, verifier }) {
      const config = await configuration();
      const url = new URL(settings.redirectUri);
      url.search = search;
      try {
        const tokens = await oidc.authorizationCodeGrant(config, url, { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true });
        const claims = tokens.claims();
        if (claims === undefined || tokens.id_token === undefined) throw new Problem("sign_in_refused", "the identity provider sent no id token");
        // Groups are often only there. What the signed token says wins.
        const more = config.serverMetadata().userinfo_endpoint === undefined ? {} : await oidc.fetchUserInfo(config, tokens.access_token, claims.sub);
        return { claims: { ...more, ...claims }, idToken: tokens.id_token };
      } catch (error) {
        throw asSignInProblem(error);
      }
    },
    async endSession(idToken) {
      const config = await configuration().catch(() => undefined);
      if (config?.serverMetadata().end_session_endpoint === undefined) return undefined;
      return oidc.buildEndSessionUrl(config, { id_token_hint: idToken, post_logout_redirect_uri: settings.afterLogout }).href;
    },
  };
}

async function discover(settings: OidcSettings): Promise<oidc.Configuration> {
  const { issuer, clientId, clientSecret, timeoutS, clockToleranceS } = settings;
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- marked so to stand out; only for providers on this machine
  const execute = [oidc.enableNonRepudiationChecks, ...(isLoopback(new URL(issuer)) ? [oidc.allowInsecureRequests] : [])];
  return oidc.discovery(new URL(issuer), clientId, { ...(clientSecret === undefined ? {} : { client_secret: clientSecret }), [oidc.clockTolerance]: clockToleranceS }, clientSecret === undefined ? oidc.None() : undefined, { execute, timeout: timeoutS });
}

/** Plain HTTP is for tests on this machine. */
export function isLoopback({ protocol, hostname }: URL): boolean { return protocol === "http:" && /^(127\.0\.0\.1|\[::1\]|localhost)$/.test(hostname); }

/** Codes of the library that mean: what came is not what was asked for, or not signed by whom it should be. */
function asSignInProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  if (error instanceof oidc.AuthorizationResponseError) return new Problem("sign_in_refused", `the identity provider refused: ${word(error.error)}`, { cause: error });
  if (error instanceof oidc.ResponseBodyError) return new Problem("sign_in_refused", `the identity provider did not take the code: ${word(error.error)}`, { cause: error, hint: "begin again; if it stays so, compare client id, secret and redirect URI" });
  if (code === "OAUTH_JWT_TIMESTAMP_CHECK_FAILED") return new Problem("clock_skew", "the id token is not valid at this server's time: the clocks of console and identity provider differ", { cause: error, hint: "set both by NTP" });
  if (error instanceof oidc.ClientError && code !== "OAUTH_TIMEOUT" && code !== "OAUTH_ABORT" && !isGone(code, cause)) {
    return new Problem("sign_in_refused", `what the identity provider sent is not usable: ${cause instanceof Error && cause.message !== error.message ? `${error.message}: ${cause.message}` : error.message}`, { cause: error });
  }
  return new Problem("sign_in_unavailable", `the identity provider does not answer: ${error instanceof Error ? error.message : String(error)}`, { cause: error, hint: "an API key still works where that is allowed" });
}

/** An error page of a proxy in front, for one. */
function isGone(code: unknown, cause: unknown): boolean { return code === "OAUTH_RESPONSE_IS_NOT_CONFORM" && (!(cause instanceof Response) || cause.status >= 500); }
function word(text: string): string { return /^[a-z_]{1,60}$/.test(text) ? text : "an unknown error"; }
