/** sql_query on a real PostgreSQL, as its owner: what protects the data is Docket's own locks, not the account's rights. */
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasPostgres, startPostgres } from "../../support/tools/postgres.js";
import { ask, sqlSuite } from "../../support/tools/sql-suite.js";

describe.skipIf(!hasPostgres())("sql_query on PostgreSQL", () => {
  let server: Awaited<ReturnType<typeof startPostgres>>;
  beforeAll(async () => {
    server = await startPostgres();
    const client = new pg.Client(server.address);
    await client.connect();
    await client.query("DROP TABLE IF EXISTS orders; CREATE TABLE orders (id BIGINT, total INTEGER); INSERT INTO orders VALUES (9007199254740993, 10), (2, 20); CREATE SEQUENCE IF NOT EXISTS s");
    await client.end();
  });
  afterAll(() => { server.stop(); });

  const query = ask(() => server.address);
  sqlSuite(() => server.address, "$1");

  it.each([
    "WITH gone AS (DELETE FROM orders RETURNING *) SELECT * FROM gone", "SELECT * FROM orders FOR UPDATE", "SELECT nextval('s')", "SELECT setval('s', 9)", "SELECT set_config('transaction_read_only', 'off', false), (SELECT count(*) FROM orders)",
    "COPY orders TO PROGRAM 'id'", "COPY (SELECT 1) TO '/tmp/x'", "SELECT 1 INTO copied", "EXPLAIN ANALYZE DELETE FROM orders", "SET default_transaction_read_only = off",
    "DO $$ BEGIN DELETE FROM orders; END $$", "CALL x()", "TABLE orders; DELETE FROM orders", "SELECT set_config('transaction_read_only', 'off', false)) q; --",
  ])("refuses %j", async (statement) => {
    await expect(query(statement)).rejects.toMatchObject({ reason: "permanent" });
    expect(JSON.parse(await query("SELECT count(*) AS n FROM orders"))).toMatchObject({ rows: [{ n: 2 }] });
  });

  it("rolls back what a read-only transaction lets through (large objects, before PostgreSQL 16)", async () => {
    await query("SELECT lo_create(0)").catch(() => undefined);
    expect(JSON.parse(await query("SELECT count(*) AS n FROM pg_largeobject_metadata"))).toMatchObject({ rows: [{ n: 0 }] });
  });

  it("cuts a huge row on the server", async () => {
    const answer = await query("SELECT repeat('x', 50000000) AS huge");
    expect(answer.length).toBeLessThan(70_000);
    expect(JSON.parse(answer)).toMatchObject({ rows: [expect.stringContaining("…") as string] });
  });

  it("gives up a query at the deadline", async () => {
    const abort = new AbortController();
    setTimeout(() => { abort.abort(); }, 300);
    await expect(query("SELECT pg_sleep(60)", { signal: abort.signal })).rejects.toMatchObject({ reason: "transient" });
  });

  it("nobody listens: it may be retried", async () => {
    await expect(ask(() => "postgres://docket@127.0.0.1:1/postgres")("SELECT 1")).rejects.toMatchObject({ reason: "transient" });
  });
});
