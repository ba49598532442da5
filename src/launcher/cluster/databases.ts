/**
 * Owns: one database and one role for each app, on a PostgreSQL of k8s/overlays/dev, and the tables that daprd must not be left to make:
 * of several sidecars that make them at once on an empty database one may die (`create table if not exists` is no lock).
 */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { APPS, type AppId } from "../../contracts/channels.js";
import { messageOf } from "../errors.js";
import { databaseOf } from "./secrets.js";

/** `metadataTableName` of the store that the app's sidecar opens. */
const METADATA_TABLES: Partial<Record<AppId, string>> = { sessions: "docket_sessions_metadata", gateway: "docket_inbox_metadata", tools: "docket_tools_metadata" };

export interface DatabaseSetup {
  /** `host:port`. */
  readonly server: string;
  readonly adminPassword: string;
  readonly passwords: Readonly<Record<AppId, string>>;
  readonly deadlineMs: number;
}

/** Waits for the server, then makes what is missing. */
export async function prepareDatabases(setup: DatabaseSetup): Promise<void> {
  const admin = await connectBefore(setup, "postgres", Date.now() + setup.deadlineMs);
  try {
    for (const app of APPS) {
      const name = databaseOf(app);
      await admin.query(`do $$ begin if not exists (select from pg_roles where rolname = '${name}') then create role ${name} login; end if; end $$`);
      await admin.query(`alter role ${name} password ${pg.escapeLiteral(setup.passwords[app])}`);
      const { rowCount } = await admin.query("select from pg_database where datname = $1", [name]);
      if (rowCount === 0) await admin.query(`create database ${name} owner ${name}`);
      // Each app reaches its own database only.
      await admin.query(`revoke connect on database ${name} from public`);
    }
    await admin.query("revoke connect on database postgres from public");
  } finally {
    await admin.end();
  }
  for (const [app, table] of Object.entries(METADATA_TABLES) as [AppId, string][]) {
    const owner = new pg.Client({ ...addressOf(setup.server), user: databaseOf(app), password: setup.passwords[app], database: databaseOf(app) });
    try {
      await owner.connect();
      await owner.query(`create table if not exists ${table} (key text not null primary key, value text not null)`);
    } finally {
      await owner.end();
    }
  }
}

async function connectBefore(setup: DatabaseSetup, database: string, deadline: number): Promise<pg.Client> {
  for (;;) {
    const client = new pg.Client({ ...addressOf(setup.server), user: "postgres", password: setup.adminPassword, database, connectionTimeoutMillis: 3_000 });
    try {
      await client.connect();
      return client;
    } catch (error) {
      await client.end().catch(() => undefined);
      if (Date.now() > deadline) throw new Error(`nothing answers as PostgreSQL at ${setup.server}: ${messageOf(error)}`, { cause: error });
      await sleep(500);
    }
  }
}

function addressOf(server: string): { host: string; port: number } {
  const [host = "", port = "5432"] = server.split(":");
  return { host, port: Number(port) };
}
