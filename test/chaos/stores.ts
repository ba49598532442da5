/** Owns: reading what the stores really hold, in one shape for SQLite files and PostgreSQL, and the books of console and tools. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import pg from "pg";
import { actorIdOf } from "../../src/contracts/ids.js";
import type { JournalEntry } from "../../src/contracts/journal.js";
import type { OpenSession } from "../../src/session/core/state.js";
import { StoreView } from "../support/store-view.js";
import type { BookRow, Letter } from "./evidence.js";

export interface Stores {
  session(sessionId: string): Promise<OpenSession | undefined>;
  sessions(): Promise<OpenSession[]>;
  journal(sessionId: string): Promise<JournalEntry[]>;
  inboxRows(): Promise<string[]>;
  /** What fold-check.mjs takes. */
  readonly foldAddress: string;
  close(): Promise<void>;
}

export function sqliteStores(dataDir: string): Stores {
  const view = new StoreView(dataDir);
  return {
    session: (id) => Promise.resolve(view.session(id)), sessions: () => Promise.resolve(view.sessions()), journal: (id) => Promise.resolve(view.journal(id)),
    inboxRows: () => Promise.resolve(view.inboxRows()), foldAddress: join(dataDir, "state", "sessions.db"), close: () => Promise.resolve(),
  };
}

/** Straight to the server, past any proxy that a fault has put in the way. While the server is away, a read is tried again. */
export function postgresStores(address: string): Stores {
  const pool = new pg.Pool({ connectionString: address, max: 4 });
  pool.on("error", () => undefined);
  const rows = async (table: string, where: string, values: string[]): Promise<{ key: string; value: string }[]> => {
    for (let tries = 1; ; tries += 1) {
      try {
        return (await pool.query<{ key: string; value: string }>(`SELECT key, convert_from(value, 'UTF8') AS value FROM ${table} WHERE ${where} ORDER BY key COLLATE "C"`, values)).rows;
      } catch (error) {
        if (tries === 100) throw error;
        await new Promise((next) => setTimeout(next, 300));
      }
    }
  };
  const parsed = async <T>(where: string, values: string[]): Promise<T[]> => (await rows("docket_sessions_state", where, values)).map((row) => JSON.parse(row.value) as T);
  return {
    session: async (id) => (await parsed<OpenSession>("key = $1", [`session:${actorIdOf("default", id)}`]))[0],
    sessions: () => parsed("key LIKE 'session:%'", []),
    journal: (id) => parsed('key COLLATE "C" >= $1 AND key COLLATE "C" < $2', [`journal:${actorIdOf("default", id)}:`, `journal:${actorIdOf("default", id)};`]),
    inboxRows: async () => (await rows("docket_inbox_state", "key LIKE 'inbox:%'", [])).map((row) => row.key),
    foldAddress: address,
    close: () => pool.end(),
  };
}

export function shownIn(dataDir: string): Map<string, { rev: number; status: string }> { return new StoreView(dataDir).shown(); }

export function lettersIn(dataDir: string): Letter[] {
  return read(join(dataDir, "console.db"), "SELECT letter FROM dead_letters").map(({ letter }) => {
    const { sessionId, envelope, kind, reason, message } = JSON.parse(letter as string) as Letter & { envelope?: { subject?: string } };
    return { sessionId: sessionId ?? envelope?.subject, kind, reason, message };
  });
}

export function bookIn(file: string): BookRow[] {
  return read(file, "SELECT key, tool, session, token, args, phase, worker, at_ms FROM book ORDER BY seq").map(({ at_ms, ...row }) => ({ ...row, atMs: at_ms } as BookRow));
}

function read(file: string, sql: string): Record<string, unknown>[] {
  if (!existsSync(file)) return [];
  const db = new Database(file, { readonly: true, timeout: 10_000 });
  try {
    return db.prepare(sql).all() as Record<string, unknown>[];
  } catch (error) {
    // Nothing was ever written: the table does not exist yet.
    if (String(error).includes("no such table")) return [];
    throw error;
  } finally {
    db.close();
  }
}
