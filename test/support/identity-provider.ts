/** A real OpenID provider (`oidc-provider`) in this process: people sign in with their name alone. Tests may spoil what its token endpoint answers. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, importJWK, SignJWT, type JWK, type JWTPayload } from "jose";
import { Provider } from "oidc-provider";

export interface Person { readonly name: string; readonly email: string; readonly email_verified: boolean; readonly groups: readonly string[] }
export interface IdentityServer {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Who may sign in, by the name they type. */
  readonly people: Map<string, Person>;
  /** Registers where browsers may be sent back to. Before the first sign-in. */
  register(redirectUri: string, afterLogout: string): void;
  /** Changes what the token endpoint answers; undefined leaves it. */
  spoil: ((answer: Record<string, unknown>) => Promise<Record<string, unknown>> | Record<string, unknown>) | undefined;
  /** An id token with these claims, signed by the provider's key. */
  sign(claims: JWTPayload): Promise<string>;
  /** What a browser does from `url` on: follows redirects, signs in as `login`, and stops before it leaves for another origin. */
  walk(url: string, login: string): Promise<string>;
  close(): Promise<void>;
}

/** One for all: making RSA keys takes seconds on a busy machine. */
let signingKey: Promise<JWK> | undefined;
async function makeKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  return { ...(await exportJWK(privateKey)), kid: "idp-1", use: "sig", alg: "RS256" };
}

export async function startIdentityServer(): Promise<IdentityServer> {
  const server = createServer();
  await new Promise<void>((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  const issuer = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  const jwk = await (signingKey ??= makeKey());
  const people = new Map<string, Person>();
  const made: IdentityServer = {
    issuer, clientId: "docket", clientSecret: "a secret of sixteen", people, spoil: undefined,
    register: (redirectUri, afterLogout) => { attach(server, made, { issuer, jwk, redirectUri, afterLogout }); },
    sign: async (claims) => new SignJWT(claims).setProtectedHeader({ alg: "RS256", kid: "idp-1" }).sign(await importJWK(jwk, "RS256")),
    walk: (url, login) => walk(issuer, url, login),
    close: () => new Promise((resolve) => { server.close(() => { resolve(); }); server.closeAllConnections(); }),
  };
  return made;
}

function attach(server: Server, made: IdentityServer, options: { issuer: string; jwk: JWK; redirectUri: string; afterLogout: string }): void {
  // It warns, rightly, of everything that only a test may do.
  const { warn } = console;
  console.warn = () => undefined;
  const provider = new Provider(options.issuer, {
    clients: [{ client_id: made.clientId, client_secret: made.clientSecret, redirect_uris: [options.redirectUri], post_logout_redirect_uris: [options.afterLogout], response_types: ["code"], grant_types: ["authorization_code"] }],
    jwks: { keys: [options.jwk] }, cookies: { keys: ["a key of this test"] },
    scopes: ["openid", "profile", "email", "groups"], claims: { openid: ["sub"], profile: ["name"], email: ["email", "email_verified"], groups: ["groups"] },
    findAccount: (_ctx, sub) => {
      const person = made.people.get(sub);
      return person === undefined ? undefined : { accountId: sub, claims: () => Promise.resolve({ sub, ...person, groups: [...person.groups] }) };
    },
    // Nobody is asked for consent: the console is the house's own.
    loadExistingGrant: async (ctx) => {
      const grant = new ctx.oidc.provider.Grant({ clientId: ctx.oidc.client!.clientId, accountId: ctx.oidc.session!.accountId! });
      grant.addOIDCScope("openid profile email groups");
      await grant.save();
      return grant;
    },
    ttl: { AccessToken: 600, AuthorizationCode: 60, IdToken: 600, Grant: 600, Interaction: 600, Session: 600 },
  });
  console.warn = warn;
  provider.use(async (ctx, next) => {
    await next();
    if (ctx.path === "/token" && made.spoil !== undefined) ctx.body = await made.spoil(ctx.body as Record<string, unknown>);
  });
  server.removeAllListeners("request");
  const answer = provider.callback();
  server.on("request", (req, res) => { void answer(req, res); });
}

async function walk(issuer: string, url: string, login: string): Promise<string> {
  const jar = new Map<string, string>();
  let at = url;
  let form: URLSearchParams | undefined;
  for (let steps = 0; steps < 12; steps += 1) {
    if (!at.startsWith(`${issuer}/`)) return at;
    const response: Response = await fetch(at, {
      redirect: "manual", ...(form === undefined ? {} : { method: "POST", body: form }), headers: { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join("; "), accept: "text/html" },
    });
    form = undefined;
    for (const set of response.headers.getSetCookie()) {
      const [name = "", value = ""] = (set.split(";")[0] ?? "").split(/=(.*)/s);
      jar.set(name, value);
    }
    const location = response.headers.get("location");
    if (location !== null) { at = new URL(location, at).href; continue; }
    const text = await response.text();
    if (!text.includes('name="prompt"')) throw new Error(`the identity provider stopped at ${at}: ${String(response.status)} ${text.slice(0, 300)}`);
    form = new URLSearchParams({ prompt: /name="prompt" value="(\w+)"/.exec(text)?.[1] ?? "login", login, password: "any" });
  }
  throw new Error(`no way out of the identity provider within 12 steps, last at ${at}`);
}
