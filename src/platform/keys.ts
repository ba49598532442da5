/**
 * Owns: the key files of an installation. Each signing app has one private Ed25519 JWK that only it may read; everybody
 * reads the public set `trust.jwks.json`. A key belongs to an app by its kid (`<app>:<thumbprint>`), so a key of `tools`
 * can never sign a decision (I4, I10).
 *
 * Rotation: delete `<app>.private.jwk.json` and start again. A new key is made and added; the old public key stays in
 * the trust set, so that what it signed still verifies (I12). Remove it there once nothing old is in flight.
 */
import { chmod, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type CryptoKey, type JWK } from "jose";
import { z } from "zod";
import { DEFAULT_TENANT } from "../contracts/ids.js";
import { Problem } from "../contracts/problems.js";
import { createApiKey, createApiKeys, DEV_PRINCIPAL, isDevelopmentKey, readApiKeyFile, writeApiKeyFile } from "./apikeys.js";

export const SIGNING_APPS = ["sessions", "console", "tools"] as const;
export type SigningApp = (typeof SIGNING_APPS)[number];

/** Signs as one app. Holds the private key; never logged, never serialised (I13). */
export interface Signer { readonly app: SigningApp; readonly kid: string; readonly key: CryptoKey }

/** Public keys by kid. Who has only this can verify and cannot mint. */
export interface Trust { readonly keys: ReadonlyMap<string, { readonly app: SigningApp; readonly key: CryptoKey }> }

const TRUST_FILE = "trust.jwks.json";
const PRIVATE_MODE = 0o600;
const PublicJwk = z.object({ kty: z.literal("OKP"), crv: z.literal("Ed25519"), x: z.string(), kid: z.string() });
const PrivateJwk = PublicJwk.extend({ d: z.string() });
const TrustFile = z.object({ keys: z.array(PublicJwk.extend({ d: z.undefined({ error: "a trust file must not hold private keys" }).optional() })) });

/** Makes the key pairs that are missing and completes the trust set. Running it again changes nothing. */
export async function ensureDevKeys(dir: string): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const known = await readTrustFile(dir).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });
  const added: z.infer<typeof PublicJwk>[] = [];
  for (const app of SIGNING_APPS) {
    const own = await ensurePrivateKey(dir, app);
    if (!known.some((key) => key.kid === own.kid)) added.push(own);
  }
  if (added.length > 0) await replaceFile(join(dir, TRUST_FILE), JSON.stringify({ keys: [...known, ...added] }, null, 2), 0o644);
}

export interface DevApiKeys { readonly apiKeysFile: string; readonly devKeyFile: string }

/**
 * Makes one key that may do everything, for the person at this machine: its hash in `api-keys.json`, the key itself in
 * `dev-api-key.txt` (0600) for the CLI. Keys that others have added stay. Running it again changes nothing.
 */
export async function ensureDevApiKeys(dir: string): Promise<DevApiKeys> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const files = { apiKeysFile: join(dir, "api-keys.json"), devKeyFile: join(dir, "dev-api-key.txt") };
  const records = await readApiKeyFile(files.apiKeysFile);
  const present = await readFile(files.devKeyFile, "utf8").catch((error: unknown) => {
    if (isMissing(error)) return "";
    throw error;
  });
  if (isKnownKey(present.trim(), records)) return files;
  const { key, record } = createApiKey({ tenant: DEFAULT_TENANT, principalId: DEV_PRINCIPAL, class: "person", roles: ["viewer", "operator", "approver", "admin"], scopes: ["*"] });
  await writeApiKeyFile(files.apiKeysFile, [...records.filter((other) => !isDevelopmentKey(other)), record]);
  await replaceFile(files.devKeyFile, `${key}\n`, PRIVATE_MODE);
  return files;
}

function isKnownKey(key: string, records: Awaited<ReturnType<typeof readApiKeyFile>>): boolean {
  try {
    createApiKeys(records).authenticate(`Bearer ${key}`);
    return true;
  } catch {
    return false;
  }
}

/** Throws Problem `config_invalid` naming the file and what is wrong with it. */
export async function loadSigner(dir: string, app: SigningApp): Promise<Signer> {
  const file = privateFile(dir, app);
  const jwk = parseFile(file, await readKeyFile(file), PrivateJwk);
  if (appOfKid(jwk.kid) !== app) throw new Problem("config_invalid", `${file}: key ${jwk.kid} does not belong to ${app}`, { hint: `expected a kid that starts with "${app}:"` });
  return { app, kid: jwk.kid, key: await importEd25519(jwk) };
}

/** Throws Problem `config_invalid`. */
export async function loadTrust(dir: string): Promise<Trust> {
  const keys = new Map<string, { app: SigningApp; key: CryptoKey }>();
  const file = join(dir, TRUST_FILE);
  for (const jwk of await readTrustFile(dir).catch((error: unknown) => { throw isMissing(error) ? missingKeyFile(file, error) : error; })) {
    const app = appOfKid(jwk.kid);
    if (app === undefined) throw new Problem("config_invalid", `${file}: key ${jwk.kid} names no app`, { hint: `a kid starts with one of ${SIGNING_APPS.map((a) => `"${a}:"`).join(", ")}` });
    if (keys.has(jwk.kid)) throw new Problem("config_invalid", `${file}: key ${jwk.kid} is listed twice`);
    keys.set(jwk.kid, { app, key: await importEd25519(jwk) });
  }
  return { keys };
}

async function ensurePrivateKey(dir: string, app: SigningApp): Promise<z.infer<typeof PublicJwk>> {
  const file = privateFile(dir, app);
  try {
    const made = await makeKey(app);
    // Create-only: two starters at once must agree on one key.
    await writeFile(file, JSON.stringify(made, null, 2), { mode: PRIVATE_MODE, flag: "wx" });
  } catch (error) {
    if (!isCode(error, "EEXIST")) throw error;
    await chmod(file, PRIVATE_MODE);
  }
  const { kty, crv, x, kid } = parseFile(file, await readKeyFile(file), PrivateJwk);
  return { kty, crv, x, kid };
}

async function makeKey(app: SigningApp): Promise<JWK> {
  const { privateKey } = await generateKeyPair("EdDSA", { crv: "Ed25519", extractable: true });
  const jwk = await exportJWK(privateKey);
  return { ...jwk, kid: `${app}:${(await calculateJwkThumbprint(jwk)).slice(0, 16)}` };
}

async function importEd25519(jwk: JWK): Promise<CryptoKey> {
  const key = await importJWK(jwk, "EdDSA");
  if (key instanceof Uint8Array) throw new Problem("config_invalid", `key ${jwk.kid ?? "(without kid)"} is symmetric; expected Ed25519`);
  return key;
}

async function readTrustFile(dir: string): Promise<z.infer<typeof PublicJwk>[]> {
  const file = join(dir, TRUST_FILE);
  return parseFile(file, await readFile(file, "utf8"), TrustFile).keys;
}

async function readKeyFile(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw isMissing(error) ? missingKeyFile(file, error) : error;
  }
}

function missingKeyFile(file: string, cause: unknown): Problem {
  return new Problem("config_invalid", `${file}: no such key file`, { hint: "`npm run dev` makes keys on first start; elsewhere mount them from the secret store", cause });
}

function parseFile<T>(file: string, text: string, schema: z.ZodType<T>): T {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    // The cause is left out on purpose: a JSON error quotes the text, and this text may be a private key (I13).
    throw new Problem("config_invalid", `${file}: not JSON`);
  }
  const parsed = schema.safeParse(raw);
  if (!parsed.success) throw new Problem("config_invalid", `${file}: ${parsed.error.issues.map((i) => `${i.path.map(String).join(".") || "(whole)"}: ${i.message}`).join("; ")}`);
  return parsed.data;
}

/** Writes beside and renames: a reader sees the old file or the new one. */
async function replaceFile(file: string, text: string, mode: number): Promise<void> {
  const beside = `${file}.${String(process.pid)}.tmp`;
  await writeFile(beside, text, { mode });
  await rename(beside, file);
}

function privateFile(dir: string, app: SigningApp): string { return join(dir, `${app}.private.jwk.json`); }
function appOfKid(kid: string): SigningApp | undefined { return SIGNING_APPS.find((app) => kid.startsWith(`${app}:`)); }
function isMissing(error: unknown): boolean { return isCode(error, "ENOENT"); }
function isCode(error: unknown, code: string): boolean { return error instanceof Error && "code" in error && error.code === code; }
