/** Owns: the databases that the read model runs on, each empty and of the test's own. PostgreSQL only where the machine has it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDatabase } from "./database.js";
import { hasPostgres } from "./tools/postgres.js";

export interface ReadModelDatabase { readonly target: string; readonly drop: () => Promise<void> }

export const READ_MODEL_DATABASES: readonly (readonly [name: string, make: () => Promise<ReadModelDatabase>])[] = [
  ["SQLite", () => {
    const folder = mkdtempSync(join(tmpdir(), "docket-lists-"));
    return Promise.resolve({ target: join(folder, "console.db"), drop: () => { rmSync(folder, { recursive: true }); return Promise.resolve(); } });
  }],
  ...(hasPostgres() ? [["PostgreSQL", async () => { const database = await createDatabase(); return { target: database.address, drop: () => database.drop() }; }] as const] : []),
];
