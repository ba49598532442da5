/**
 * Owns: API keys. A key is `dk_<id>_<secret>`; stored is only its SHA-256 (the secret has 256 random bits, so a fast hash is
 * enough), with whom it stands for. Looking up, comparing and expiring happen here, for gateway and console.
 * Not here: which scope a route asks for.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";
import { z } from "zod";
import { Principal } from "../contracts/cloudevent.js";
import { Tenant } from "../contracts/ids.js";
import { Problem, zodErrors } from "../contracts/problems.js";
import { systemClock, type Clock } from "./clock.js";

/** `noun:verb`, or `*` for all. The gateway asks for the first three; the console has its own. */
const Scope = z.string().regex(/^(\*|[a-z-]+:[a-z-]+)$/, "expected noun:verb, or *");

export const ApiKeyRecord = z.strictObject({
  id: z.string().regex(/^[a-z0-9]{4,32}$/),
  hash: z.string().regex(/^[0-9a-f]{64}$/, "expected the lower-case hex SHA-256 of the key"),
  tenant: Tenant,
  principalId: Principal.shape.id,
  class: Principal.shape.class,
  roles: Principal.shape.roles,
  scopes: z.array(Scope).max(50),
  expiresAt: z.iso.datetime({ offset: true }).optional(),
  createdAt: z.iso.datetime({ offset: true }).optional(),
  /** What the key is for. */
  note: z.string().max(200).optional(),
});
export type ApiKeyRecord = z.infer<typeof ApiKeyRecord>;

/** Who a request comes from. */
export interface Authenticated {
  readonly keyId: string;
  readonly tenant: string;
  readonly principal: Principal;
  readonly scopes: readonly string[];
  readonly expiresAtMs?: number;
}

export interface ApiKeys {
  /** Reads an `Authorization: Bearer dk_…` header. Throws Problem `unauthenticated`, the same for every wrong key. */
  authenticate(header: string | undefined): Authenticated;
  /** Whom a key stands for that was authenticated before; undefined once it is revoked or has expired. */
  recall(keyId: string): Authenticated | undefined;
  /** Whether a key of `npm run dev` is among them. */
  development(): boolean;
  /** Puts other records in place (a file was changed). */
  replace(records: readonly ApiKeyRecord[]): void;
}

/** Whom the key of `npm run dev` stands for. */
export const DEV_PRINCIPAL = "dev-operator";
export function isDevelopmentKey(record: ApiKeyRecord): boolean { return record.principalId === DEV_PRINCIPAL; }

export function createApiKeys(initial: readonly ApiKeyRecord[], clock: Clock = systemClock): ApiKeys {
  let byId = new Map(initial.map((record) => [record.id, record]));
  return {
    replace: (records) => { byId = new Map(records.map((record) => [record.id, record])); },
    authenticate: (header) => {
      const match = /^Bearer +(dk_([a-z0-9]{4,32})_[A-Za-z0-9_-]{16,128})$/i.exec(header ?? "");
      if (match?.[1] === undefined || match[2] === undefined) throw refused(header === undefined ? "the request carries no API key" : "the Authorization header is not `Bearer dk_<id>_<secret>`");
      const record = byId.get(match[2]);
      // An unknown id costs the same comparison as a known one.
      const same = timingSafeEqual(Buffer.from(keyHash(match[1]), "hex"), Buffer.from(record?.hash ?? "0".repeat(64), "hex"));
      if (record === undefined || !same) throw refused("the API key is not known");
      const caller = standsFor(record);
      if (hasExpired(caller, clock)) throw refused("the API key has expired");
      return caller;
    },
    development: () => [...byId.values()].some(isDevelopmentKey),
    recall: (keyId) => {
      const record = byId.get(keyId);
      const caller = record === undefined ? undefined : standsFor(record);
      return caller === undefined || hasExpired(caller, clock) ? undefined : caller;
    },
  };
}

function standsFor(record: ApiKeyRecord): Authenticated {
  return {
    keyId: record.id, tenant: record.tenant, scopes: record.scopes,
    principal: { id: record.principalId, class: record.class, roles: record.roles },
    ...(record.expiresAt === undefined ? {} : { expiresAtMs: Date.parse(record.expiresAt) }),
  };
}

function hasExpired({ expiresAtMs }: Authenticated, clock: Clock): boolean { return expiresAtMs !== undefined && expiresAtMs <= clock.nowMs(); }

/** Throws Problem `forbidden` unless the caller has the scope. */
export function requireScope(caller: Authenticated, scope: string): void {
  if (caller.scopes.includes(scope) || caller.scopes.includes("*")) return;
  throw new Problem("forbidden", `key ${caller.keyId} lacks the scope ${scope}`, { hint: `it has: ${caller.scopes.join(", ") || "none"}` });
}

export interface NewApiKey {
  readonly tenant: string;
  readonly principalId: string;
  readonly class: Principal["class"];
  readonly roles?: readonly string[];
  readonly scopes: readonly string[];
  readonly expiresAt?: string;
  readonly createdAt?: string;
  readonly note?: string;
}

/** Makes a key. `key` is shown once and never stored; `record` is what is kept. */
export function createApiKey(options: NewApiKey): { key: string; record: ApiKeyRecord } {
  const id = randomBytes(6).toString("hex");
  const key = `dk_${id}_${randomBytes(32).toString("base64url")}`;
  const record = ApiKeyRecord.parse({ id, hash: keyHash(key), tenant: options.tenant, principalId: options.principalId, class: options.class,
    roles: options.roles ?? [], scopes: options.scopes, expiresAt: options.expiresAt, createdAt: options.createdAt, note: options.note });
  return { key, record };
}

/** Reads records from JSON text: `{"keys": [...]}` or a bare array. Throws Problem `config_invalid` that names `from`. */
export function parseApiKeys(text: string, from: string): ApiKeyRecord[] {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch (error) {
    throw new Problem("config_invalid", `${from} is not JSON`, { cause: error, hint: "expected an array of API key records" });
  }
  const list = typeof raw === "object" && raw !== null && !Array.isArray(raw) && "keys" in raw ? raw.keys : raw;
  const parsed = z.array(ApiKeyRecord).safeParse(list);
  if (!parsed.success) throw new Problem("config_invalid", `${from} has API keys that are not usable`, { errors: zodErrors(parsed.error) });
  const twice = parsed.data.find((record, index) => parsed.data.findIndex((other) => other.id === record.id) !== index);
  if (twice !== undefined) throw new Problem("config_invalid", `${from} has the API key id ${twice.id} twice`);
  return parsed.data;
}

/** Records of a file; none where the file does not exist. Throws Problem `config_invalid`. */
export async function readApiKeyFile(path: string): Promise<ApiKeyRecord[]> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw new Problem("config_invalid", `the API key file ${path} cannot be read`, { cause: error });
  }
  return parseApiKeys(text, path);
}

/** Writes the file, readable by its owner only: beside and renamed, so that an app that follows it sees the old one or the new one. */
export async function writeApiKeyFile(path: string, records: readonly ApiKeyRecord[]): Promise<void> {
  const beside = `${path}.${String(process.pid)}.tmp`;
  await writeFile(beside, `${JSON.stringify({ keys: records }, null, 2)}\n`, { mode: 0o600 });
  await rename(beside, path);
}

/** Puts the file's records in place whenever it changes, so that a key is revoked without a restart. A broken file changes nothing. */
export function followApiKeyFile(path: string, keys: Pick<ApiKeys, "replace">, options: { everyMs?: number; onError: (error: unknown) => void }): { stop: () => void } {
  const timer = setInterval(() => {
    readApiKeyFile(path).then((records) => { keys.replace(records); }, options.onError);
  }, options.everyMs ?? 5_000);
  timer.unref();
  return { stop: () => { clearInterval(timer); } };
}

function keyHash(key: string): string { return createHash("sha256").update(key, "utf8").digest("hex"); }

function refused(detail: string): Problem {
  return new Problem("unauthenticated", detail, { hint: "send Authorization: Bearer <API key>" });
}
