/**
 * Owns: the secrets a local stack makes for itself, in files only the owner can read. Those of the data folder live as long as
 * the folder (sessions and broker must recognise them after a restart); tokens between an app and its sidecar live one start.
 */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";

const schema = z.object({ sessionsActorKey: z.string().min(32), brokerToken: z.string().min(32), apiKey: z.string().min(32) });

export interface DataSecrets extends z.infer<typeof schema> {
  /** The file that holds the API key alone, for the CLI. */
  readonly apiKeyFile: string;
}

/** Reads the data folder's secrets, or makes them on the first start. */
export function ensureDataSecrets(dataDir: string): DataSecrets {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const apiKeyFile = join(dataDir, "api-key");
  const file = join(dataDir, "secrets.json");
  const known = readSecrets(file);
  if (known) {
    if (!existsSync(apiKeyFile)) writeFileSync(apiKeyFile, `${known.apiKey}\n`, { mode: 0o600 });
    return { ...known, apiKeyFile };
  }
  const made = { sessionsActorKey: randomToken(), brokerToken: randomToken(), apiKey: `dk_${randomToken()}` };
  writeFileSync(file, JSON.stringify(made), { mode: 0o600 });
  writeFileSync(apiKeyFile, `${made.apiKey}\n`, { mode: 0o600 });
  return { ...made, apiKeyFile };
}

/** 256 random bits, URL-safe. */
export function randomToken(): string {
  return randomBytes(32).toString("base64url");
}

function readSecrets(file: string): z.infer<typeof schema> | undefined {
  try {
    return schema.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    return undefined;
  }
}
