/**
 * Owns: when each API key was last used, for `docket key list`: a small file per process, written at most once a minute. Not the truth
 * about who did what (that is the audit): a process that dies loses its last minute.
 */
import { readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { ApiKeys } from "./apikeys.js";

const Uses = z.record(z.string(), z.number());
const FILES = /^key-uses(-\d+)?\.json$/;
const EVERY_MS = 60_000;

/** The keys, with their uses noted in `file`. */
export function keepKeyUses(keys: ApiKeys, file: string, onError: (error: unknown) => void, options: { everyMs?: number; nowMs?: () => number } = {}): { readonly keys: ApiKeys; readonly stop: () => Promise<void> } {
  const { everyMs = EVERY_MS, nowMs = Date.now } = options;
  const uses = new Map<string, number>();
  let changed = false;
  const note = <T extends { readonly keyId: string } | undefined>(caller: T): T => {
    if (caller !== undefined) { uses.set(caller.keyId, nowMs()); changed = true; }
    return caller;
  };
  const write = async (): Promise<void> => {
    if (!changed) return;
    changed = false;
    const beside = `${file}.tmp`;
    await writeFile(beside, JSON.stringify(Object.fromEntries(uses)), { mode: 0o600 });
    await rename(beside, file);
  };
  const timer = setInterval(() => { write().catch(onError); }, everyMs).unref();
  return {
    keys: { ...keys, authenticate: (header) => note(keys.authenticate(header)), recall: (keyId) => note(keys.recall(keyId)) },
    stop: async () => {
      clearInterval(timer);
      await write().catch(onError);
    },
  };
}

/** The latest use of each key that any process of this data folder wrote down. Files of processes that are gone become one. */
export async function readKeyUses(dataDir: string): Promise<ReadonlyMap<string, number>> {
  const latest = new Map<string, number>();
  const names = (await readdir(dataDir).catch(() => [])).filter((name) => FILES.test(name));
  for (const name of names) {
    const parsed = Uses.safeParse(await readFile(join(dataDir, name), "utf8").then((text): unknown => JSON.parse(text)).catch(() => undefined));
    for (const [id, atMs] of Object.entries(parsed.success ? parsed.data : {})) latest.set(id, Math.max(atMs, latest.get(id) ?? 0));
  }
  const gone = names.filter((name) => !isRunning(Number(/\d+/.exec(name)?.[0] ?? 0)));
  if (gone.length > 1) {
    await writeFile(join(dataDir, "key-uses.json"), JSON.stringify(Object.fromEntries(latest)), { mode: 0o600 });
    await Promise.all(gone.filter((name) => name !== "key-uses.json").map((name) => rm(join(dataDir, name), { force: true })));
  }
  return latest;
}

function isRunning(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
