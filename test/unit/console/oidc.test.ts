/** Signing in through a real OpenID provider: what comes back counts once, for the browser that began, only as the provider signed it, and leads nowhere but into the console. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodeJwt, generateKeyPair, SignJWT } from "jose";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { APPROVAL_PENDING } from "../../../src/contracts/decisions.js";
import { readAccessMap } from "../../../src/console/oidc/access-map.js";
import { ensureDevKeys, loadSigner, loadTrust, type Signer, type Trust } from "../../../src/platform/keys.js";
import { ACTOR, messageOf, pendingOf, recordOf, startConsole, viewOf, type ConsoleWorld } from "../../support/console-fakes.js";
import { startIdentityServer, type IdentityServer } from "../../support/identity-provider.js";

const ACCESS = "version: 1\nroles:\n  viewer: [{ claim: groups, is: staff }]\n  approver: [{ claim: groups, is: approvers }]\n  admin: [{ claim: groups, is: ops }]\ngroups:\n  finance: [{ claim: groups, is: finance-team }]\n";
let dir: string;
let keys: { signer: Signer; trust: Trust };
let idp: IdentityServer;
let world: ConsoleWorld;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "docket-oidc-"));
  await ensureDevKeys(dir);
  keys = { signer: await loadSigner(dir, "console"), trust: await loadTrust(dir) };
});
afterAll(() => { rmSync(dir, { recursive: true }); });
beforeEach(async () => {
  idp = await startIdentityServer();
  idp.people.set("ann", { name: "Ann Example", email: "Ann@example.com", email_verified: true, groups: ["staff", "approvers", "finance-team"] });
  idp.people.set("zed", { name: "Zed", email: "zed@example.com", email_verified: false, groups: ["visitors"] });
  await start();
}, 30_000);
afterEach(async () => {
  await world.close();
  await idp.close();
});
async function start(more: object = {}, access = ACCESS): Promise<void> {
  world = await startConsole(keys, (url) => ({
    oidc: { issuer: idp.issuer, clientId: idp.clientId, clientSecret: idp.clientSecret, scopes: "openid profile email groups", access: readAccessMap(access, "test"), redirectUri: `${url}/session/oidc/callback`, afterLogout: `${url}/`, lastsMs: 3_600_000, attemptMs: 60_000, timeoutS: 2 },
    ...more,
  }));
  idp.register(`${world.http.url}/session/oidc/callback`, `${world.http.url}/`);
}

const page = { accept: "text/html" };
interface Step { readonly status: number; readonly location: string; readonly cookies: Record<string, string>; readonly setCookie: string[] }
async function get(path: string, cookies: Record<string, string> = {}): Promise<Step> {
  const response = await fetch(new URL(path, world.http.url), { redirect: "manual", headers: { ...page, cookie: Object.entries(cookies).map(([name, value]) => `${name}=${value}`).join("; ") } });
  await response.arrayBuffer();
  const setCookie = response.headers.getSetCookie();
  return { status: response.status, location: response.headers.get("location") ?? "", setCookie, cookies: { ...cookies, ...Object.fromEntries(setCookie.map((set) => (set.split(";")[0] ?? "").split(/=(.*)/s).slice(0, 2) as [string, string])) } };
}
/** Up to the address that the provider sends the browser back to. */
async function there(login = "ann", path = "/session/oidc/start"): Promise<{ callback: string; cookies: Record<string, string> }> {
  const begun = await get(path);
  expect(begun.status).toBe(303);
  return { callback: await idp.walk(begun.location, login), cookies: begun.cookies };
}
async function signedIn(login = "ann"): Promise<Record<string, string>> {
  const { callback, cookies } = await there(login);
  const back = await get(callback, cookies);
  expect(back.location).toBe("/approvals");
  return back.cookies;
}
const problemOf = (step: Step): string => new URL(step.location, world.http.url).searchParams.get("problem") ?? `none, went to ${step.location}`;
const cookieHeader = (cookies: Record<string, string>): string => Object.entries(cookies).map(([name, value]) => `${name}=${value}`).join("; ");
const audit = async (): Promise<string[]> => ((await world.call("GET", "/v1/audit?limit=100", { key: world.key(["admin"], { id: "reader" }) })).body["items"] as { action: string; outcome: string; principalId: string }[]).map(({ action, outcome, principalId }) => `${action} ${outcome} ${principalId}`);

describe("the way there and back", () => {
  it("signs a person in, with roles and groups from claims, under a cookie like any other; who it was is shown and in the audit", async () => {
    const { callback, cookies } = await there("ann", "/session/oidc/start?returnTo=%2Fsessions%3Fq%3Dord");
    const back = await get(callback, cookies);
    expect(back).toMatchObject({ status: 303, location: "/sessions?q=ord" });
    expect(back.setCookie.join()).toMatch(/^docket=[A-Za-z0-9_-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=3600$/);
    const id = `${idp.issuer}#ann`;
    const who = await world.call("GET", "/session", { headers: { cookie: cookieHeader(back.cookies) } });
    expect(who.body).toMatchObject({ principal: { id, class: "person", roles: ["viewer", "approver", "finance"] }, rights: ["read", "decide"], name: "Ann Example", email: "Ann@example.com" });
    expect(JSON.stringify(who.body)).not.toContain("visitors");
    expect((await audit())[0]).toBe(`browser.sign-in signed in ${id}`);
  });

  it("asks with PKCE, state and nonce, for the exact address to come back to, and keeps what must come back to itself", async () => {
    const { location, setCookie } = await get("/session/oidc/start");
    const asked = Object.fromEntries(new URL(location).searchParams);
    expect(asked).toMatchObject({ response_type: "code", code_challenge_method: "S256", redirect_uri: `${world.http.url}/session/oidc/callback`, scope: "openid profile email groups" });
    for (const name of ["state", "nonce", "code_challenge"]) expect(asked[name], name).toMatch(/^[\w-]{40,}$/);
    expect(setCookie.join()).toMatch(/^docket-sign-in=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=60$/);
    expect(setCookie.join()).not.toContain(asked["state"]);
  });

  it("lasts as long as it may, and ends with a sign-out, which goes on to the provider", async () => {
    const cookies = await signedIn();
    const headers = { cookie: cookieHeader(cookies), origin: world.http.url };
    world.clock.ms += 3_599_000;
    expect((await world.call("GET", "/session", { headers })).status).toBe(200);
    const out = await world.call("DELETE", "/session", { headers });
    expect(out.status).toBe(200);
    const end = new URL(out.body["endSession"] as string);
    expect(end.href).toContain(`${idp.issuer}/session/end`);
    expect(end.searchParams.get("post_logout_redirect_uri")).toBe(`${world.http.url}/`);
    expect((await world.call("GET", "/session", { headers })).status).toBe(401);
    const later = { cookie: cookieHeader(await signedIn()) };
    world.clock.ms += 3_600_001;
    expect((await world.call("GET", "/session", { headers: later })).status).toBe(401);
  });

  it("in two tabs of one browser both end well", async () => {
    const first = await get("/session/oidc/start");
    const second = await get("/session/oidc/start", first.cookies);
    for (const { location } of [second, first]) expect(await get(await idp.walk(location, "ann"), second.cookies)).toMatchObject({ location: "/approvals" });
  });

  it("stands beside keys, or instead of them", async () => {
    const key = world.key(["viewer"]);
    const own = { origin: world.http.url };
    expect((await world.call("GET", "/session/ways")).body).toEqual({ apiKey: true, oidc: { label: "single sign-on", start: "/session/oidc/start" }, development: false });
    const before = await world.call("POST", "/session", { body: { apiKey: key }, headers: own });
    expect(before.status).toBe(201);
    await world.close();
    await start({ signIn: { withKeys: false } });
    expect((await world.call("GET", "/session/ways")).body).toMatchObject({ apiKey: false });
    expect(await world.call("POST", "/session", { body: { apiKey: world.key(["viewer"]) }, headers: { origin: world.http.url } })).toMatchObject({ status: 403 });
    expect((await world.call("GET", "/v1/approvals", { key: world.key(["viewer"]) })).status).toBe(200);
    expect((await world.call("GET", "/session", { headers: { cookie: cookieHeader(await signedIn()) } })).status).toBe(200);
  });
});

describe("what comes back is refused", () => {
  it.each<[string, string, (callback: URL, cookies: Record<string, string>) => [string, Record<string, string>]]>([
    ["with another state", "sign_in_replayed", (url, cookies) => { url.searchParams.set("state", "x".repeat(43)); return [url.href, cookies]; }],
    ["without a state", "sign_in_replayed", (url, cookies) => { url.searchParams.delete("state"); return [url.href, cookies]; }],
    ["with two states", "sign_in_replayed", (url, cookies) => { url.searchParams.append("state", "y"); return [url.href, cookies]; }],
    ["in another browser", "sign_in_replayed", (url) => [url.href, {}]],
    ["with a changed cookie", "sign_in_replayed", (url, cookies) => [url.href, { "docket-sign-in": `${cookies["docket-sign-in"]?.slice(0, -1) ?? ""}_` }]],
    ["with another code", "sign_in_refused", (url, cookies) => { url.searchParams.set("code", "z".repeat(43)); return [url.href, cookies]; }],
    ["without a code", "sign_in_refused", (url, cookies) => { url.searchParams.delete("code"); return [url.href, cookies]; }],
    ["from another issuer", "sign_in_refused", (url, cookies) => { url.searchParams.set("iss", "http://evil.example"); return [url.href, cookies]; }],
    ["with a refusal of the provider", "sign_in_refused", (url, cookies) => { url.searchParams.delete("code"); url.searchParams.set("error", "access_denied"); return [url.href, cookies]; }],
  ])("%s", async (_name, code, change) => {
    const { callback, cookies } = await there();
    const [href, sent] = change(new URL(callback), cookies);
    const back = await get(href, sent);
    expect(problemOf(back)).toBe(code);
    expect(back.setCookie.join()).not.toContain("docket=");
    expect((await audit())[0]).toMatch(new RegExp(`^browser.sign-in ${code} `));
  });

  it("a second time, and the first stays what it is", async () => {
    const { callback, cookies } = await there();
    const first = await get(callback, cookies);
    expect(first.location).toBe("/approvals");
    expect(problemOf(await get(callback, cookies))).toBe("sign_in_replayed");
    expect((await world.call("GET", "/session", { headers: { cookie: cookieHeader(first.cookies) } })).status).toBe(200);
  });

  it("twice at once: one counts", async () => {
    const { callback, cookies } = await there();
    const ends = await Promise.all([get(callback, cookies), get(callback, cookies)]);
    expect(ends.map(({ location }) => location === "/approvals").sort()).toEqual([false, true]);
  });

  it("too late", async () => {
    const { callback, cookies } = await there();
    world.clock.ms += 60_001;
    expect(problemOf(await get(callback, cookies))).toBe("sign_in_replayed");
  });

  const claimsOf = (answer: Record<string, unknown>) => decodeJwt(answer["id_token"] as string);
  const base64 = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  it.each<[string, string, (answer: Record<string, unknown>) => Promise<string> | string]>([
    ["an unsigned id token", "sign_in_refused", (answer) => `${base64({ alg: "none" })}.${base64(claimsOf(answer))}.`],
    ["an id token whose signature is of something else", "sign_in_refused", (answer) => { const [head = "", , signature = ""] = (answer["id_token"] as string).split("."); return `${head}.${base64({ ...claimsOf(answer), sub: "root" })}.${signature}`; }],
    ["an id token of somebody else's key", "sign_in_refused", async (answer) => new SignJWT(claimsOf(answer)).setProtectedHeader({ alg: "RS256", kid: "idp-1" }).sign((await generateKeyPair("RS256")).privateKey)],
    ["an id token signed with the client's secret", "sign_in_refused", (answer) => new SignJWT(claimsOf(answer)).setProtectedHeader({ alg: "HS256" }).sign(Buffer.from("a secret of sixteen"))],
    ["another nonce", "sign_in_refused", (answer) => idp.sign({ ...claimsOf(answer), nonce: "n".repeat(43) })],
    ["no nonce", "sign_in_refused", (answer) => { const { nonce, ...rest } = claimsOf(answer); return idp.sign(rest); }],
    ["another issuer", "sign_in_refused", (answer) => idp.sign({ ...claimsOf(answer), iss: "http://evil.example" })],
    ["another audience", "sign_in_refused", (answer) => idp.sign({ ...claimsOf(answer), aud: "another-app" })],
    ["an id token for another authorised party", "sign_in_refused", (answer) => idp.sign({ ...claimsOf(answer), aud: ["docket", "another"], azp: "another" })],
    ["another subject than its user info", "sign_in_refused", (answer) => idp.sign({ ...claimsOf(answer), sub: "zed" })],
    ["an id token that is over", "clock_skew", (answer) => idp.sign({ ...claimsOf(answer), exp: Math.floor(Date.now() / 1000) - 120 })],
    ["an id token that is not valid yet", "clock_skew", (answer) => idp.sign({ ...claimsOf(answer), nbf: Math.floor(Date.now() / 1000) + 300 })],
    ["nothing wrong (the twin)", "none, went to /approvals", (answer) => idp.sign(claimsOf(answer))],
  ])("with %s: %s", async (_name, code, spoil) => {
    idp.spoil = async (answer) => ({ ...answer, id_token: await spoil(answer) });
    const { callback, cookies } = await there();
    expect(problemOf(await get(callback, cookies))).toBe(code);
  });

  it("without an id token", async () => {
    idp.spoil = ({ id_token: _dropped, ...rest }) => rest;
    const { callback, cookies } = await there();
    expect(problemOf(await get(callback, cookies))).toBe("sign_in_refused");
  });

  it("of somebody without any role here, in words; nobody is signed in", async () => {
    const { callback, cookies } = await there("zed");
    const back = await get(callback, cookies);
    expect(problemOf(back)).toBe("no_role");
    expect(back.setCookie.join()).not.toContain("docket=");
    expect((await audit())[0]).toBe(`browser.sign-in no_role ${idp.issuer}#zed`);
  });

  it("while the provider is away, at both ends; it works again when it is back", async () => {
    const { callback, cookies } = await there();
    await idp.close();
    expect(problemOf(await get(callback, cookies))).toBe("sign_in_unavailable");
    await world.close();
    await start();
    expect(problemOf(await get("/session/oidc/start?returnTo=/policies"))).toBe("sign_in_unavailable");
    const plain = await world.call("GET", "/session/oidc/start");
    expect(plain).toMatchObject({ status: 503, body: { code: "sign_in_unavailable" } });
  });

  it("whose discovery document is another issuer's", async () => {
    await world.close();
    world = await startConsole(keys, (url) => ({ oidc: { issuer: idp.issuer.replace("127.0.0.1", "localhost"), clientId: "docket", access: readAccessMap(ACCESS, "test"), redirectUri: `${url}/session/oidc/callback`, afterLogout: `${url}/` } }));
    expect(problemOf(await get("/session/oidc/start"))).toBe("sign_in_refused");
  });
});

describe("where the browser goes afterwards", () => {
  it("is fixed when the sign-in begins: what comes back cannot change it", async () => {
    const { callback, cookies } = await there("ann", "/session/oidc/start?returnTo=https%3A%2F%2Fevil.example");
    expect((await get(`${callback}&returnTo=https%3A%2F%2Fevil.example`, cookies)).location).toBe("/approvals");
  });
});

describe("what a person may do", () => {
  it("counts groups where the policy names them: the signed decision carries them, and the session judges by it", async () => {
    idp.people.set("bob", { name: "Bob", email: "bob@example.com", email_verified: true, groups: ["approvers"] });
    const record = recordOf({ approvers: { roles: ["finance"], quorum: 1, excludeRequester: false } });
    await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf(record)));
    world.sessions.views.set(ACTOR, viewOf([record]));
    const decide = async (login: string) => world.call("POST", "/v1/approvals/apr_1/decisions", { body: { kind: "approve", version: 1, argsDigest: "sha256:ab" }, headers: { cookie: cookieHeader(await signedIn(login)), origin: world.http.url } });
    expect(await decide("bob")).toMatchObject({ status: 403, body: { code: "not_an_approver" } });
    expect(await decide("ann")).toMatchObject({ status: 200, body: { verdict: "approved" } });
  });
});
