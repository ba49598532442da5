/** `docket backup`: the stores of one moment, while others write; nothing half-made, nothing replaced. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, expect, it } from "vitest";
import { docket } from "../../support/cli-fakes.js";

const STORES = ["state/sessions.db", "state/inbox.db", "state/tools.db", "console.db"];
let dir: string;
let open: Database.Database[];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "docket-backup-"));
  mkdirSync(join(dir, "data/keys"), { recursive: true });
  writeFileSync(join(dir, "data/keys/trust.jwks.json"), "{}");
  open = STORES.map((file) => {
    mkdirSync(dirname(join(dir, "data", file)), { recursive: true });
    const database = new Database(join(dir, "data", file));
    database.pragma("journal_mode = WAL");
    database.exec("CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT)");
    return database;
  });
});
afterEach(() => {
  for (const database of open) database.close();
  rmSync(dir, { recursive: true });
});
const run = (...args: string[]) => docket(["backup", ...args], { env: { DOCKET_DATA_DIR: join(dir, "data") }, cwd: dir });
const rowsIn = (file: string): unknown => {
  const database = new Database(file, { readonly: true });
  try { return database.prepare("SELECT key FROM state ORDER BY key").pluck().all(); } finally { database.close(); }
};

it("copies what was committed, and the keys; what is written meanwhile waits for nobody and is not in it", async () => {
  for (const database of open) database.prepare("INSERT INTO state VALUES ('before', ?)").run("x".repeat(3_000_000));
  const copying = run("copy");
  // The snapshots are taken right after the folder was made, before anybody else has a turn.
  while (!existsSync(join(dir, "copy.partial"))) await new Promise(setImmediate);
  for (const database of open) database.prepare("INSERT INTO state VALUES ('after', '')").run();
  expect(await copying).toMatchObject({ code: 0 });
  for (const file of STORES) expect(rowsIn(join(dir, "copy", file)), file).toEqual(["before"]);
  expect(readFileSync(join(dir, "copy/keys/trust.jwks.json"), "utf8")).toBe("{}");
  expect(statSync(join(dir, "copy")).mode & 0o777).toBe(0o700);
  expect(statSync(join(dir, "copy/state/sessions.db")).mode & 0o777).toBe(0o600);
});

it("goes without lists that are in PostgreSQL", async () => {
  open.pop()?.close();
  rmSync(join(dir, "data/console.db"));
  expect((await run("copy")).code).toBe(0);
  expect(existsSync(join(dir, "copy/console.db"))).toBe(false);
});

it("replaces nothing", async () => {
  mkdirSync(join(dir, "copy"));
  writeFileSync(join(dir, "copy/older"), "");
  expect(await run("copy")).toMatchObject({ code: 2, err: expect.stringContaining("backup_exists") as string });
});

it("says where it looked when there is nothing to copy", async () => {
  const ran = await run("copy", "--data-dir", "elsewhere");
  expect(ran).toMatchObject({ code: 3, err: expect.stringContaining(join(dir, "elsewhere/state/sessions.db")) as string });
  expect(existsSync(join(dir, "copy.partial"))).toBe(false);
});

it("does not pass a damaged store off as a copy", async () => {
  open[0]?.exec("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) INSERT INTO state SELECT 'k' || i, hex(randomblob(2000)) FROM n");
  open[0]?.pragma("wal_checkpoint(TRUNCATE)");
  const file = join(dir, "data/state/sessions.db");
  open.shift()?.close();
  const bytes = readFileSync(file);
  writeFileSync(file, Buffer.concat([bytes.subarray(0, 8_192), Buffer.alloc(40_960, 7), bytes.subarray(49_152)]));
  const ran = await run("copy");
  expect(ran).toMatchObject({ code: 1, err: expect.stringContaining("copy_damaged") as string });
  expect(existsSync(join(dir, "copy"))).toBe(false);
});
