/**
 * Owns: an empty PostgreSQL database of the test's own, dropped afterwards. The server is that of DOCKET_TEST_POSTGRES or a
 * throwaway one (tools/postgres.ts).
 */
import { randomUUID } from "node:crypto";
import pg from "pg";
import { startPostgres } from "./tools/postgres.js";

export interface TestDatabase { readonly address: string; readonly version: string; drop(): Promise<void> }

export async function createDatabase(options: { readonly durable?: boolean } = {}): Promise<TestDatabase> {
  const server = await startPostgres(options);
  const name = `docket_test_${randomUUID().replaceAll("-", "")}`;
  const [row] = await asAdmin(server.address, "SHOW server_version");
  await asAdmin(server.address, `CREATE DATABASE ${name}`);
  const address = new URL(server.address);
  address.pathname = `/${name}`;
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
