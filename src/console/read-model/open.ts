/** Owns: opening the read model: a SQLite file, or PostgreSQL where an address is given. */
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import SqliteDatabase from "better-sqlite3";
import { Kysely, PostgresAdapter, PostgresDialect, SqliteDialect } from "kysely";
import pg from "pg";
import type { ReadModel, Tables } from "./database.js";
import { migrate } from "./schema.js";

/** PostgreSQL sends 64-bit and exact numbers as text. Ours (times, counts, sums of them) are all exact as a double. */
const AS_NUMBER: ReadonlySet<number> = new Set([pg.types.builtins.INT8, pg.types.builtins.NUMERIC]);
const usualParser: (oid: number) => (value: string) => unknown = pg.types.getTypeParser;
const POOL = 8;

/**
 * `target`: a file, `:memory:`, or an address `postgres://…`. It is opened, and its tables are made, at the first query.
 * `onLost`: a connection to the server broke while nobody used it; the next query makes a new one.
 */
export function openReadModel(target: string, onLost: (error: Error) => void = () => undefined): ReadModel {
  return /^postgres(ql)?:/.test(target) ? openPostgres(target, onLost) : openSqlite(target);
}

/** Whether rows must be locked against other consoles: a SQLite file has one writer anyway. */
export function sharesRows(db: ReadModel): boolean { return db.getExecutor().adapter instanceof PostgresAdapter; }

function openSqlite(file: string): ReadModel {
  return new Kysely<Tables>({ dialect: new SqliteDialect({ database: async () => {
    if (file !== ":memory:") mkdirSync(dirname(file), { recursive: true });
    const database = new SqliteDatabase(file);
    database.pragma("journal_mode = WAL");
    database.pragma("synchronous = FULL"); // dead letters are acked once they are here
    database.pragma("busy_timeout = 5000");
    await migrate(new Kysely<Tables>({ dialect: new SqliteDialect({ database }) }), "sqlite");
    return database;
  } }) });
}

function openPostgres(address: string, onLost: (error: Error) => void): ReadModel {
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool: async () => {
    const pool = new pg.Pool({
      connectionString: address, max: POOL, application_name: "docket-console",
      types: { getTypeParser: (oid: number) => (AS_NUMBER.has(oid) ? Number : usualParser(oid)) },
    });
    pool.on("error", onLost);
    try {
      await migrate(new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) }), "postgres");
    } catch (error) {
      await pool.end();
      throw error;
    }
    return pool;
  } }) });
}
