/**
 * Owns: what the stores really hold, read from their files by this process while Docket runs (or is dead): session documents,
 * journals, inbox rows, the console's read model. Costs the stack nothing, and cannot be fooled by it.
 */
import Database from "better-sqlite3";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { JournalEntry } from "../../src/contracts/journal.js";
import { actorIdOf } from "../../src/contracts/ids.js";
import type { OpenSession } from "../../src/session/core/state.js";

export class StoreView {
  constructor(private readonly dataDir: string) {}

  session(sessionId: string): OpenSession | undefined {
    const row = this.#rows("state/sessions.db", "SELECT value FROM state WHERE key = ?", `session:${actorIdOf("default", sessionId)}`)[0];
    return row === undefined ? undefined : JSON.parse(row.value as string) as OpenSession;
  }

  journal(sessionId: string, tenant = "default"): JournalEntry[] {
    const prefix = `journal:${actorIdOf(tenant, sessionId)}`;
    return this.#rows("state/sessions.db", "SELECT value FROM state WHERE key >= ? AND key < ? ORDER BY key", `${prefix}:`, `${prefix};`).map((row) => JSON.parse(row.value as string) as JournalEntry);
  }

  sessions(): OpenSession[] {
    return this.#rows("state/sessions.db", "SELECT value FROM state WHERE key LIKE 'session:%'").map((row) => JSON.parse(row.value as string) as OpenSession);
  }

  /** Events that were promised and have no receipt. */
  inboxRows(): string[] {
    return this.#rows("state/inbox.db", "SELECT key FROM state WHERE key LIKE 'inbox:%'").map((row) => row.key as string);
  }

  /** Revision and status that the console shows, by session id. */
  shown(): Map<string, { rev: number; status: string }> {
    return new Map(this.#rows("console.db", "SELECT session_id, rev, status FROM sessions").map((row) => [row.session_id as string, { rev: row.rev as number, status: row.status as string }]));
  }

  #rows(file: string, sql: string, ...values: string[]): Record<string, unknown>[] {
    const path = join(this.dataDir, file);
    if (!existsSync(path)) return [];
    const db = new Database(path, { readonly: true, timeout: 5_000 });
    try {
      return db.prepare(sql).all(...values) as Record<string, unknown>[];
    } finally {
      db.close();
    }
  }
}
