/** Every store contract on PostgreSQL (state.postgresql v2), the production profile's store, through real sidecars. */
import pg from "pg";
import { describe } from "vitest";
import { preparePostgres } from "../support/postgres-resources.js";
import { describeRealStores } from "../support/real-stores.js";
import { hasPostgres } from "../support/tools/postgres.js";

describe.skipIf(!hasPostgres())("on PostgreSQL", () => {
  describeRealStores("DaprState over PostgreSQL", async () => {
    const prepared = await preparePostgres();
    return {
      resources: prepared.resources,
      drop: () => prepared.drop(),
      rowExists: async (key) => {
        const client = new pg.Client(prepared.address);
        await client.connect();
        try {
          return (await client.query("SELECT 1 FROM state WHERE key = $1", [key])).rowCount === 1;
        } finally {
          await client.end();
        }
      },
    };
  });
});
