/** Owns: writing many rows at once. `mergeRows` lets what is told later win, column by column; `addRows` adds sums up. */
import { sql, type Kysely } from "kysely";
import type { Tables } from "./database.js";

type Value = string | number | null;
type Row = Readonly<Record<string, Value>>;

/** Both databases bound how many values a statement may have. */
const VALUES = 12_000;

/** Inserts, or overwrites each column that is told (not null) in the row that is there. All rows have the same columns; keys are unique. */
export async function mergeRows(db: Kysely<Tables>, table: keyof Tables, keys: readonly string[], rows: readonly Row[]): Promise<void> {
  await write(db, table, keys, rows, (column) => sql`${sql.ref(column)} = coalesce(${sql.ref(`excluded.${column}`)}, ${sql.ref(`${table}.${column}`)})`);
}

/** Inserts, or adds every other column to what is there. */
export async function addRows(db: Kysely<Tables>, table: keyof Tables, keys: readonly string[], rows: readonly Row[]): Promise<void> {
  await write(db, table, keys, rows, (column) => sql`${sql.ref(column)} = ${sql.ref(`${table}.${column}`)} + ${sql.ref(`excluded.${column}`)}`);
}

/** Inserts what is not there yet. */
export async function insertMissing(db: Kysely<Tables>, table: keyof Tables, keys: readonly string[], rows: readonly Row[]): Promise<void> {
  await write(db, table, keys, rows, undefined);
}

async function write(db: Kysely<Tables>, table: keyof Tables, keys: readonly string[], rows: readonly Row[], onConflict: ((column: string) => ReturnType<typeof sql>) | undefined): Promise<void> {
  const columns = Object.keys(rows[0] ?? {});
  const others = columns.filter((column) => !keys.includes(column));
  const conflict = onConflict === undefined || others.length === 0 ? sql`do nothing` : sql`do update set ${sql.join(others.map(onConflict))}`;
  for (const part of chunked(rows, Math.floor(VALUES / Math.max(1, columns.length)))) {
    const values = sql.join(part.map((row) => sql`(${sql.join(columns.map((column) => row[column] ?? null))})`));
    await sql`insert into ${sql.table(table)} (${sql.join(columns.map((column) => sql.ref(column)))}) values ${values} on conflict (${sql.join(keys.map((key) => sql.ref(key)))}) ${conflict}`.execute(db);
  }
}

/** In pieces of `size`. */
export function chunked<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) => items.slice(index * size, (index + 1) * size));
}
