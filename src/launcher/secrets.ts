/**
 * Owns: the secrets a local stack makes for itself, in files only the owner can read. Those of the data folder live as long as
 * the folder (sessions and broker must recognise them after a restart); tokens between an app and its sidecar live one start.
 */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { ensureDevApiKeys, ensureDevKeys } from "../platform/keys.js";

const schema = z.object({ sessionsActorKey: z.string().min(32), brokerToken: z.string().min(32) });

export interface DataSecrets extends z.infer<typeof schema> {
  /** Folder of signing keys, trust set and API keys (src/platform/keys.ts). */
  readonly keysDir: string;
  /** The file that holds the developer's API key alone, for the CLI. */
  readonly apiKeyFile: string;
}

/** Reads the data folder's secrets, or makes those that are missing. */
export async function ensureDataSecrets(dataDir: string): Promise<DataSecrets> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const keysDir = join(dataDir, "keys");
  await ensureDevKeys(keysDir);
  const { devKeyFile } = await ensureDevApiKeys(keysDir);
  return { ...ensureOwnSecrets(join(dataDir, "secrets.json")), keysDir, apiKeyFile: devKeyFile };
}

/** 256 random bits, URL-safe. */
export function randomToken(): string {
  return randomBytes(32).toString("base64url");
}

function ensureOwnSecrets(file: string): z.infer<typeof schema> {
  if (existsSync(file)) {
    const known = schema.safeParse(JSON.parse(readFileSync(file, "utf8")));
    if (known.success) return known.data;
  }
  const made = { sessionsActorKey: randomToken(), brokerToken: randomToken() };
  writeFileSync(file, JSON.stringify(made), { mode: 0o600 });
  return made;
}
