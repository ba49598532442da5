/** Owns: what stays on the disk when the work is done, for sizing: each store, and what the session store's rows are. */
import { statSync } from "node:fs";
import { join } from "node:path";
import type { Rig } from "./rig.js";

export interface Stored { readonly what: string; readonly rows: number; readonly bytes: number }

const TABLES = { "session store": "docket_sessions_state", "gateway's inbox": "docket_inbox_state", "tool store": "docket_tools_state" };

/** Tables as PostgreSQL has them on the disk (index and dead rows too, after a vacuum), rows of the session store by kind, and the console's lists. */
export async function storedNow(rig: Rig): Promise<Stored[]> {
  const tables: Stored[] = [];
  for (const [what, table] of Object.entries(TABLES)) {
    await rig.sql.query(`VACUUM ${table}`);
    const { rows } = await rig.sql.query<{ rows: string; bytes: string }>(`SELECT count(*) AS rows, pg_total_relation_size('${table}') AS bytes FROM ${table}`);
    tables.push({ what, rows: Number(rows[0]?.rows), bytes: Number(rows[0]?.bytes) });
  }
  const { rows } = await rig.sql.query<{ kind: string; rows: string; bytes: string }>(`SELECT split_part(key, ':', 1) AS kind, count(*) AS rows, sum(octet_length(key) + octet_length(value)) AS bytes FROM ${TABLES["session store"]} GROUP BY 1 ORDER BY 3 DESC`);
  const lists = ["console.db", "console.db-wal"].reduce((sum, file) => sum + (statSync(join(rig.test.dataDir, file), { throwIfNoEntry: false })?.size ?? 0), 0);
  return [...tables, ...rows.map((row) => ({ what: `  of it ${row.kind}`, rows: Number(row.rows), bytes: Number(row.bytes) })), { what: "console's lists", rows: 0, bytes: lists }];
}

/** Per turn and per session of the run. */
export function storedLines(stored: readonly Stored[], turns: number, sessions: number): string[] {
  return [
    `\nat rest after ${String(turns)} turns in ${String(sessions)} sessions`,
    `  ${"store".padEnd(22)}rows per turn  KiB per turn   MiB in all`,
    ...stored.map(({ what, rows, bytes }) => `  ${what.padEnd(22)}${(rows / turns).toFixed(2).padStart(13)} ${(bytes / 1024 / turns).toFixed(2).padStart(13)} ${(bytes / 1024 / 1024).toFixed(1).padStart(12)}`),
  ];
}
