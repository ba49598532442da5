/** Owns: what sql_query must do on every database: read with all digits, write nothing, bound everything. */
import { expect, it } from "vitest";
import { sqlTool } from "../../../src/tools/builtin/sql.js";
import { toolContext } from "./context.js";

/** `address` gives a database with a table orders(id, total) holding (9007199254740993, 10) and (2, 20). */
export function ask(address: () => string): (query: string, more?: { params?: unknown[]; maxRows?: number; signal?: AbortSignal }) => Promise<string> {
  return (query, more = {}) => sqlTool({ shop: address() }).run({ connection: "shop", query, params: more.params ?? [], maxRows: more.maxRows ?? 100 },
    toolContext(more.signal === undefined ? {} : { signal: more.signal })) as Promise<string>;
}

export function sqlSuite(address: () => string, placeholder: string): void {
  const query = ask(address);
  it("reads rows, with parameters", async () => {
    expect(JSON.parse(await query(`SELECT total FROM orders WHERE total > ${placeholder} ORDER BY total`, { params: [15] }))).toEqual({ rows: [{ total: 20 }], more: false });
  });

  it("takes a parameter as a value, never as SQL", async () => {
    expect(JSON.parse(await query(`SELECT count(*) AS n FROM orders WHERE CAST(id AS TEXT) = ${placeholder}`, { params: ["2' OR '1'='1"] }))).toMatchObject({ rows: [{ n: 0 }] });
  });

  it("keeps all digits", async () => {
    expect(await query("SELECT id FROM orders WHERE total = 10")).toContain("9007199254740993");
  });

  it("stops at the row cap and says so", async () => {
    expect(JSON.parse(await query("SELECT * FROM orders", { maxRows: 1 }))).toMatchObject({ rows: [{}], more: true });
  });

  it("takes a trailing semicolon and comments", async () => {
    expect(JSON.parse(await query("-- all of it\n/* yes */ SELECT count(*) AS n FROM orders; "))).toMatchObject({ rows: [{ n: 2 }] });
  });

  it.each([
    "INSERT INTO orders VALUES (3, 30)", "UPDATE orders SET total = 0", "DELETE FROM orders", "DROP TABLE orders", "CREATE TABLE x (a int)",
    "SELECT 1; DELETE FROM orders", "SELECT 1) q; DELETE FROM orders; --", "WITH x AS (SELECT 1) DELETE FROM orders",
    "BEGIN; DELETE FROM orders; COMMIT", "COMMIT", "/* SELECT */ DELETE FROM orders", "", ";",
  ])("refuses %j and changes nothing", async (statement) => {
    await expect(query(statement)).rejects.toMatchObject({ reason: "permanent" });
    expect(JSON.parse(await query("SELECT count(*) AS n, sum(total) AS total FROM orders"))).toMatchObject({ rows: [{ n: 2, total: 30 }] });
  });

  it("a mistake is told without the address of the database", async () => {
    await expect(query("SELECT nope FROM orders")).rejects.toMatchObject({ reason: "permanent", message: expect.not.stringContaining(address()) as string });
  });
}
