import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sqlTool } from "../../../src/tools/builtin/sql.js";
import { toolContext } from "../../support/tools/context.js";
import { ask, sqlSuite } from "../../support/tools/sql-suite.js";

const home = mkdtempSync(join(tmpdir(), "docket-sql-"));
const file = join(home, "shop.db");
beforeAll(() => {
  const db = new Database(file);
  db.exec("CREATE TABLE orders (id INTEGER, total INTEGER); INSERT INTO orders VALUES (9007199254740993, 10), (2, 20)");
  db.close();
});
afterAll(() => { rmSync(home, { recursive: true }); });

describe("sql_query on SQLite", () => {
  const query = ask(() => `sqlite:${file}`);
  sqlSuite(() => `sqlite:${file}`, "?1");

  it.each(["ATTACH DATABASE '/tmp/x.db' AS x", "PRAGMA journal_mode = DELETE", "VACUUM INTO '/tmp/x.db'", "SELECT load_extension('x')"])("refuses %j", async (statement) => {
    await expect(query(statement)).rejects.toMatchObject({ reason: "permanent" });
  });

  it("a query that never ends is killed with its process, and the worker goes on meanwhile", { timeout: 10_000 }, async () => {
    const abort = new AbortController();
    let ticks = 0;
    const timer = setInterval(() => { ticks += 1; }, 20);
    setTimeout(() => { abort.abort(); }, 1000);
    await expect(query("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n", { signal: abort.signal })).rejects.toMatchObject({ reason: "permanent" });
    clearInterval(timer);
    expect(ticks).toBeGreaterThan(3); // of 50; none while the query ran in this process
  });

  it("a file that does not exist is not made", async () => {
    await expect(ask(() => `sqlite:${join(home, "none.db")}`)("SELECT 1")).rejects.toMatchObject({ reason: "permanent" });
  });

  it("a connection is known by its configured name only", async () => {
    const tool = sqlTool({ shop: `sqlite:${file}` });
    const named = (connection: string): Promise<unknown> => tool.run({ connection, query: "SELECT 1", params: [], maxRows: 1 }, toolContext());
    await expect(named("shp")).rejects.toThrow("did you mean \"shop\"?");
    for (const name of [`sqlite:${file}`, "__proto__", "constructor"]) await expect(named(name)).rejects.toMatchObject({ reason: "permanent" });
  });
});
