/**
 * Owns: `docket backup`: a copy of what an installation with SQLite stores remembers, taken while it runs. All four files are copied as they were
 * at one moment: lists that are newer than the sessions would hide what the sessions do next, and an inbox that is newer would miss
 * events whose receipts had just come. Putting it back is copying; docs/backup.md says what then.
 */
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import Database from "better-sqlite3";
import type { Command } from "commander";
import type { CliContext, Runner } from "../context.js";
import { dataDirOf } from "../data-dir.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import { fields } from "../output.js";

const SESSIONS = "state/sessions.db";
/** The console's lists may be elsewhere (PostgreSQL). */
const STORES = [SESSIONS, "state/inbox.db", "state/tools.db", "console.db"];
/** Who signs, whom one trusts, who may speak: without them nothing that was signed before is believed. */
const SECRETS = ["keys", "secrets.json"];
/** A writer holds a store for milliseconds. */
const LOCK_TIMEOUT_MS = 10_000;
const ALL_PAGES = 2 ** 31 - 1;

export function backupCommand(program: Command, run: Runner): void {
  program.command("backup <DIR>").description("Copy what the installation on this machine remembers (SQLite stores, keys), while it runs, into a folder that is then a data folder")
    .option("--data-dir <DIR>", "the data folder (default: DOCKET_DATA_DIR, or the nearest .docket)")
    .addHelpText("after", "\nExample:\n  docket backup backups/2026-11-30\n\nPutting it back, what is not in it, and PostgreSQL: docs/backup.md")
    .action(run(backup));
}

async function backup({ io, printer }: CliContext, to: string, options: { readonly dataDir?: string }): Promise<ExitCode> {
  const dataDir = options.dataDir === undefined ? dataDirOf(io) : resolve(io.cwd, options.dataDir);
  const folder = resolve(io.cwd, to);
  const stores = STORES.filter((file) => existsSync(join(dataDir, file)));
  if (!stores.includes(SESSIONS)) throw new CliError(EXIT.notFound, "nothing_to_back_up", `there is no ${join(dataDir, SESSIONS)}`, "--data-dir names the data folder of an installation with SQLite stores; for PostgreSQL see docs/backup.md");
  if (existsSync(folder) && readdirSync(folder).length > 0) throw new CliError(EXIT.usage, "backup_exists", `${folder} is not empty`, "name a folder that is new: a backup never replaces another");
  const partial = `${folder}.partial`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(partial, { recursive: true, mode: 0o700 });
  const atMs = await copyStores(stores, dataDir, partial);
  for (const path of SECRETS.filter((one) => existsSync(join(dataDir, one)))) cpSync(join(dataDir, path), join(partial, path), { recursive: true });
  if (existsSync(folder)) rmSync(folder, { recursive: true });
  renameSync(partial, folder);
  const at = new Date(atMs).toISOString();
  const sizes = stores.map((file) => ({ file, bytes: statSync(join(folder, file)).size }));
  printer.one({ at, folder, stores: sizes }, () => fields([["as of", at], ["folder", folder], ...sizes.map(({ file, bytes }): [string, string] => [file, `${String(bytes)} bytes`])]));
  printer.say("it holds keys and secrets: keep it like a password");
  return EXIT.ok;
}

/** Returns the moment of which they are. */
async function copyStores(stores: readonly string[], dataDir: string, to: string): Promise<number> {
  const open = (file: string): Database.Database => new Database(join(dataDir, file), { fileMustExist: true, timeout: LOCK_TIMEOUT_MS });
  const writers = stores.map(open);
  const readers = stores.map(open);
  try {
    // Nobody writes while each reader takes its snapshot; the snapshots are copied after the writers have gone on.
    for (const writer of writers) writer.exec("BEGIN IMMEDIATE");
    for (const reader of readers) {
      reader.exec("BEGIN");
      reader.prepare("SELECT count(*) FROM sqlite_schema").get();
    }
    const atMs = Date.now();
    for (const writer of writers) writer.exec("ROLLBACK");
    for (const [index, file] of stores.entries()) {
      const copy = join(to, file);
      mkdirSync(dirname(copy), { recursive: true, mode: 0o700 });
      await readers[index]?.backup(copy, { progress: () => ALL_PAGES });
      chmodSync(copy, 0o600);
      checkCopy(copy);
    }
    return atMs;
  } finally {
    for (const database of [...writers, ...readers]) database.close();
  }
}

function checkCopy(copy: string): void {
  const verdict = verdictOn(copy);
  if (verdict !== "ok") throw new CliError(EXIT.failed, "copy_damaged", `${copy} is damaged: ${verdict}`, "the store itself may be: check it with SQLite's \"PRAGMA integrity_check\" while everything is stopped");
}

function verdictOn(copy: string): string {
  const database = new Database(copy);
  try {
    return String(database.pragma("quick_check(1)", { simple: true }));
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    database.close();
  }
}
