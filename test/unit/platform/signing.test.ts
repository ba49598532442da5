import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CompactSign } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DecisionClaims } from "../../../src/contracts/decisions.js";
import type { GrantClaims, ResultClaims } from "../../../src/contracts/tools.js";
import { createApiKeys, readApiKeyFile } from "../../../src/platform/apikeys.js";
import { ensureDevApiKeys, ensureDevKeys, loadSigner, loadTrust, SIGNING_APPS, type Signer, type Trust } from "../../../src/platform/keys.js";
import { signDecision, signGrant, signResult, verifyDecision, verifyGrant, verifyResult } from "../../../src/platform/signing.js";

const NOW = 1_800_000_000_000;
const IAT = NOW / 1000;
const grant: GrantClaims = { iss: "docket/sessions", aud: "docket/tools", sub: "default_s1", jti: "call_1", tool: "refund", digest: "sha256:ab", iat: IAT, exp: IAT + 60 };
const decision: DecisionClaims = {
  iss: "docket/console", aud: "docket/sessions", sub: "default_s1", jti: "dec_1", approvalId: "apr_1", version: 1, argsDigest: "sha256:ab",
  kind: "approve", principal: { id: "ann", class: "person", roles: ["approver"] }, via: "cli", iat: IAT, exp: IAT + 300,
};
const result: ResultClaims = { iss: "docket/tools", aud: "docket/sessions", sub: "default_s1", jti: "call_1", try: 1, outcome: "succeeded", outputDigest: "sha256:cd", iat: IAT };

let dir: string;
let trust: Trust;
let sessions: Signer, consoleApp: Signer, tools: Signer;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "docket-keys-"));
  await ensureDevKeys(dir);
  trust = await loadTrust(dir);
  [sessions, consoleApp, tools] = [await loadSigner(dir, "sessions"), await loadSigner(dir, "console"), await loadSigner(dir, "tools")];
});
afterAll(() => rm(dir, { recursive: true }));

const reasonOf = (promise: Promise<unknown>) => promise.then(() => "verified", (e: unknown) => (e as { code?: string }).code === "bad_signature" ? (e as Error).message : String(e));
/** Signs anything with any key, as a thief of that key could. */
const forge = (signer: Signer, claims: unknown, header: { alg?: string; typ: string; kid?: string }) =>
  new CompactSign(new TextEncoder().encode(typeof claims === "string" ? claims : JSON.stringify(claims))).setProtectedHeader({ alg: "EdDSA", kid: signer.kid, ...header }).sign(signer.key);

describe("keys", () => {
  it("private keys are readable by their owner only, the trust set holds no private part", async () => {
    for (const app of SIGNING_APPS) expect((await stat(join(dir, `${app}.private.jwk.json`))).mode & 0o777).toBe(0o600);
    expect(await readFile(join(dir, "trust.jwks.json"), "utf8")).not.toContain('"d"');
  });

  it("a second start changes nothing", async () => {
    const before = await readFile(join(dir, "trust.jwks.json"), "utf8");
    await Promise.all([ensureDevKeys(dir), ensureDevKeys(dir)]);
    expect(await readFile(join(dir, "trust.jwks.json"), "utf8")).toBe(before);
  });

  it("rotation: after deleting the private key a new one signs, and what the old one signed still verifies", async () => {
    const own = await mkdtemp(join(tmpdir(), "docket-rotate-"));
    await ensureDevKeys(own);
    const old = await signGrant(await loadSigner(own, "sessions"), grant);
    await rm(join(own, "sessions.private.jwk.json"));
    await ensureDevKeys(own);
    const rotated = await loadTrust(own);
    const fresh = await signGrant(await loadSigner(own, "sessions"), grant);
    expect(fresh).not.toBe(old);
    expect(rotated.keys.size).toBe(4);
    await expect(verifyGrant(rotated, old, NOW)).resolves.toEqual(grant);
    await expect(verifyGrant(rotated, fresh, NOW)).resolves.toEqual(grant);
    await rm(own, { recursive: true });
  });

  it("the dev API key is made once, opens everything, and is made again when its file is lost", async () => {
    const files = await ensureDevApiKeys(dir);
    const key = (await readFile(files.devKeyFile, "utf8")).trim();
    expect((await stat(files.devKeyFile)).mode & 0o777).toBe(0o600);
    expect(createApiKeys(await readApiKeyFile(files.apiKeysFile)).authenticate(`Bearer ${key}`).principal.roles).toContain("approver");
    await ensureDevApiKeys(dir);
    expect((await readFile(files.devKeyFile, "utf8")).trim()).toBe(key);
    await rm(files.devKeyFile);
    await ensureDevApiKeys(dir);
    const records = await readApiKeyFile(files.apiKeysFile);
    expect(records).toHaveLength(1);
    expect(() => createApiKeys(records).authenticate(`Bearer ${key}`)).toThrow(/not known/);
  });

  it("refuses a trust file with a private key, a stranger's kid, or none at all, naming the file", async () => {
    const own = await mkdtemp(join(tmpdir(), "docket-bad-"));
    const jwk = JSON.parse(await readFile(join(dir, "tools.private.jwk.json"), "utf8")) as Record<string, unknown>;
    await expect(loadTrust(own)).rejects.toMatchObject({ code: "config_invalid", message: expect.stringContaining("trust.jwks.json") as unknown });
    await writeFile(join(own, "trust.jwks.json"), JSON.stringify({ keys: [jwk] }));
    await expect(loadTrust(own)).rejects.toThrow(/must not hold private keys/);
    await writeFile(join(own, "trust.jwks.json"), JSON.stringify({ keys: [{ ...jwk, d: undefined, kid: "gateway:1" }] }));
    await expect(loadTrust(own)).rejects.toThrow(/names no app/);
    await writeFile(join(own, "tools.private.jwk.json"), "{ secret");
    await expect(loadSigner(own, "tools")).rejects.toThrow(/^(?!.*secret).*not JSON$/);
    await rm(own, { recursive: true });
  });
});

describe("statements", () => {
  it("each verifies and comes back as signed", async () => {
    expect(await verifyGrant(trust, await signGrant(sessions, grant), NOW)).toEqual(grant);
    expect(await verifyDecision(trust, await signDecision(consoleApp, decision), NOW)).toEqual(decision);
    expect(await verifyResult(trust, await signResult(tools, result), NOW)).toEqual(result);
  });

  it("the same claims give the same JWS, in whatever order their keys were written", async () => {
    const reordered = Object.fromEntries(Object.entries(grant).reverse()) as GrantClaims;
    expect(await signGrant(sessions, grant)).toBe(await signGrant(sessions, reordered));
  });

  it("an app cannot sign what is not its own", async () => {
    await expect(signDecision(tools, decision)).rejects.toThrow(/only console can/);
    expect(await reasonOf(verifyDecision(trust, await forge(tools, decision, { typ: "docket-decision+jwt" }), NOW))).toMatch(/belongs to tools, expected console/);
    expect(await reasonOf(verifyGrant(trust, await forge(consoleApp, grant, { typ: "docket-grant+jwt" }), NOW))).toMatch(/belongs to console, expected sessions/);
  });

  it("refuses strangers, other kinds, other audiences, and broken text, each with its reason", async () => {
    const good = await signGrant(sessions, grant);
    const [header, payload, signature] = good.split(".") as [string, string, string];
    const other = Buffer.from(JSON.stringify({ ...grant, digest: "sha256:evil" })).toString("base64url");
    const none = Buffer.from(JSON.stringify({ alg: "none", kid: sessions.kid, typ: "docket-grant+jwt" })).toString("base64url");
    expect(await reasonOf(verifyGrant(trust, `${header}.${other}.${signature}`, NOW))).toMatch(/not over this text/);
    expect(await reasonOf(verifyGrant(trust, `${none}.${payload}.`, NOW))).toMatch(/algorithm is none/);
    expect(await reasonOf(verifyGrant(trust, "rubbish", NOW))).toMatch(/not a JWS/);
    expect(await reasonOf(verifyGrant(trust, "", NOW))).toMatch(/not a JWS/);
    expect(await reasonOf(verifyGrant({ keys: new Map() }, good, NOW))).toMatch(/not trusted/);
    expect(await reasonOf(verifyDecision(trust, good, NOW))).toMatch(/type is docket-grant/);
    expect(await reasonOf(verifyGrant(trust, await forge(sessions, { ...grant, aud: "docket/console" }, { typ: "docket-grant+jwt" }), NOW))).toMatch(/aud/);
    expect(await reasonOf(verifyGrant(trust, await forge(sessions, "[]", { typ: "docket-grant+jwt" }), NOW))).toMatch(/do not fit/);
    expect(await reasonOf(verifyGrant(trust, await forge(sessions, "{", { typ: "docket-grant+jwt" }), NOW))).toMatch(/not JSON/);
  });

  it("holds from issue to expiry, with half a minute of skew on both sides", async () => {
    const jws = await signGrant(sessions, grant);
    expect(await reasonOf(verifyGrant(trust, jws, NOW - 30_000))).toBe("verified");
    expect(await reasonOf(verifyGrant(trust, jws, NOW - 31_000))).toMatch(/issued in the future/);
    expect(await reasonOf(verifyGrant(trust, jws, NOW + 89_000))).toBe("verified");
    expect(await reasonOf(verifyGrant(trust, jws, NOW + 90_000))).toMatch(/expired/);
  });
});
