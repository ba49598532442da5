/**
 * Owns: the component files of the embedded profile with PostgreSQL (state.postgresql v2) as every state store, in a folder of
 * their own, over a database of their own. Both are gone after `drop`.
 *
 * The server is that of DOCKET_TEST_POSTGRES or a throwaway one (database.ts). Where it is named and does not answer,
 * the suite fails and says so; where there is neither, the caller skips.
 */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { APPS, STATE_STORES, type AppId } from "../../src/contracts/channels.js";
import { REPO_ROOT } from "./cluster.js";
import { createDatabase } from "./database.js";

export interface PostgresResources { readonly resources: string; readonly address: string; drop(): Promise<void> }

const OWNERS: Readonly<Record<string, AppId>> = { [STATE_STORES.sessions]: "sessions", [STATE_STORES.inbox]: "gateway", [STATE_STORES.tools]: "tools" };

export async function preparePostgres(): Promise<PostgresResources> {
  const database = await createDatabase();
  const resources = mkdtempSync(join(tmpdir(), "docket-pg-components-"));
  cpSync(join(REPO_ROOT, "components", "embedded"), resources, { recursive: true });
  for (const store of Object.values(STATE_STORES)) writeFileSync(join(resources, `${store}.yaml`), component(store, database.address));
  return {
    resources, address: database.address,
    drop: async () => {
      rmSync(resources, { recursive: true, force: true });
      await database.drop();
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
