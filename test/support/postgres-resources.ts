/**
 * Owns: the component files of the embedded profile with PostgreSQL (state.postgresql v2) as every state store, in a folder of
 * their own, over a database of their own. Both are gone after `drop`.
 *
 * The server is that of DOCKET_TEST_POSTGRES or a throwaway one (tools/postgres.ts). Where it is named and does not answer,
 * the suite fails and says so; where there is neither, the caller skips.
 */
import { randomUUID } from "node:crypto";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { stringify } from "yaml";
import { APPS, STATE_STORES, type AppId } from "../../src/contracts/channels.js";
import { REPO_ROOT } from "./cluster.js";
import { startPostgres } from "./tools/postgres.js";

export interface PostgresResources { readonly resources: string; readonly address: string; drop(): Promise<void> }

const OWNERS: Readonly<Record<string, AppId>> = { [STATE_STORES.sessions]: "sessions", [STATE_STORES.inbox]: "gateway", [STATE_STORES.tools]: "tools" };

export async function preparePostgres(): Promise<PostgresResources> {
  const server = await startPostgres();
  const name = `docket_test_${randomUUID().replaceAll("-", "")}`;
  await asAdmin(server.address, `CREATE DATABASE ${name}`);
  const address = addressOf(server.address, name);
  const resources = mkdtempSync(join(tmpdir(), "docket-pg-components-"));
  cpSync(join(REPO_ROOT, "components", "embedded"), resources, { recursive: true });
  for (const store of Object.values(STATE_STORES)) writeFileSync(join(resources, `${store}.yaml`), component(store, address));
  return {
    resources, address,
    drop: async () => {
      rmSync(resources, { recursive: true, force: true });
      await asAdmin(server.address, `DROP DATABASE ${name} WITH (FORCE)`);
      server.stop();
    },
  };
}

function component(store: string, address: string): string {
  const owner = OWNERS[store];
  if (owner === undefined || !APPS.includes(owner)) throw new Error(`state store ${store} has no owner`);
  return stringify({
    apiVersion: "dapr.io/v1alpha1", kind: "Component", metadata: { name: store },
    spec: {
      type: "state.postgresql", version: "v2",
      metadata: [
        { name: "connectionString", value: address },
        { name: "cleanupInterval", value: "1h" },
        { name: "keyPrefix", value: "none" },
        ...(owner === "sessions" ? [{ name: "actorStateStore", value: "true" }] : []),
      ],
    },
    scopes: [owner],
  });
}

function addressOf(server: string, database: string): string {
  const url = new URL(server);
  url.pathname = `/${database}`;
  return url.href;
}

async function asAdmin(address: string, statement: string): Promise<void> {
  const client = new pg.Client(address);
  try {
    await client.connect();
    await client.query(statement);
  } catch (error) {
    throw new Error(`PostgreSQL at ${address} is expected (DOCKET_TEST_POSTGRES, or the installed server) and did not do "${statement}": ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  } finally {
    await client.end().catch(() => undefined);
  }
}
