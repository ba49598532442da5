/**
 * Owns: an empty PostgreSQL database of the test's own, dropped afterwards. The server is that of DOCKET_TEST_POSTGRES or a
 * throwaway one (tools/postgres.ts).
 */
import { randomUUID } from "node:crypto";
import pg from "pg";
import { startPostgres } from "./tools/postgres.js";

export interface TestDatabase { readonly address: string; readonly version: string; drop(): Promise<void> }

/**
 * daprd makes these by itself, and of several that start at once on an empty database one may die of it: `create table if not exists` is
 * no lock. The default's, and that of the profiles' session store, which several hosts open.
 */
const METADATA_TABLES = ["dapr_metadata", "docket_sessions_metadata"];

/** `beside`: on the server of this one, which must outlive it. */
export async function createDatabase(options: { readonly durable?: boolean; readonly beside?: TestDatabase } = {}): Promise<TestDatabase> {
  const server = options.beside === undefined ? await startPostgres(options) : { address: options.beside.address, stop: () => undefined };
  const name = `docket_test_${randomUUID().replaceAll("-", "")}`;
  const [row] = await asAdmin(server.address, "SHOW server_version");
  await asAdmin(server.address, `CREATE DATABASE ${name}`);
  const address = new URL(server.address);
  address.pathname = `/${name}`;
  for (const table of METADATA_TABLES) await asAdmin(address.href, `CREATE TABLE ${table} (key text NOT NULL PRIMARY KEY, value text NOT NULL)`);
  return {
    address: address.href,
    version: String(row?.["server_version"]),
    drop: async () => {
      await asAdmin(server.address, `DROP DATABASE ${name} WITH (FORCE)`);
      server.stop();
    },
  };
}

async function asAdmin(address: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(address);
  try {
    await client.connect();
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } catch (error) {
    throw new Error(`PostgreSQL at ${address} is expected (DOCKET_TEST_POSTGRES, or the installed server) and did not do "${statement}": ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  } finally {
    await client.end().catch(() => undefined);
  }
}
