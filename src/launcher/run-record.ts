/** Owns: `run.json` in the data folder: how the CLI and the doctor find the stack that runs on it. */
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { identify, isAlive } from "./process-identity.js";

const schema = z.object({
  pid: z.int().positive(),
  startedAt: z.string(),
  profile: z.string(),
  gatewayUrl: z.string().optional(),
  consoleUrl: z.string().optional(),
  apiKeyFile: z.string(),
  ports: z.record(z.string(), z.number()),
});

/** The stack that runs on a data folder. */
export type RunRecord = z.infer<typeof schema>;

export interface RunRecordInputs {
  readonly dataDir: string;
  readonly urls: { readonly gateway: string | undefined; readonly console: string | undefined };
  readonly ports: Readonly<Record<string, number>>;
  readonly profile: string;
  readonly apiKeyFile: string;
}

/** Writes the record of this process's stack, whole or not at all. */
export function writeRunRecord(inputs: RunRecordInputs): void {
  const { gateway, console } = inputs.urls;
  const record: RunRecord = {
    pid: process.pid,
    startedAt: identify(process.pid)?.startedAt ?? "",
    profile: inputs.profile,
    ...(gateway === undefined ? {} : { gatewayUrl: gateway }),
    ...(console === undefined ? {} : { consoleUrl: console }),
    apiKeyFile: inputs.apiKeyFile,
    ports: { ...inputs.ports },
  };
  const file = join(inputs.dataDir, "run.json");
  writeFileSync(`${file}.new`, JSON.stringify(record, undefined, 2), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** The record of a stack that still runs, or undefined. */
export function readRunRecord(dataDir: string): RunRecord | undefined {
  try {
    const record = schema.parse(JSON.parse(readFileSync(join(dataDir, "run.json"), "utf8")));
    return isAlive({ pid: record.pid, startedAt: record.startedAt }) ? record : undefined;
  } catch {
    return undefined;
  }
}

/** Forgets the record. */
export function removeRunRecord(dataDir: string): void {
  rmSync(join(dataDir, "run.json"), { force: true });
}
