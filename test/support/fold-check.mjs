/**
 * Another process than any of Docket's: reads the session store and folds every journal (I7). Prints one JSON object:
 * sessions, entries, and each difference between fold(journal) and the stored document, each gap and each broken link of
 * the digest chain.
 *
 *   node test/support/fold-check.mjs <sessions.db | postgres://…>
 */
import Database from "better-sqlite3";
import { isDeepStrictEqual } from "node:util";
import pg from "pg";
import { entryDigest } from "../../dist/src/session/core/digest.js";
import { fold } from "../../dist/src/session/core/evolve.js";

const store = process.argv[2] ?? "";
const { rows, journalOf, close } = store.startsWith("postgres") ? await openPostgres(store) : openSqlite(store);
const problems = [];
let entryCount = 0;
for (const { key, value } of rows) {
  const actorId = key.slice("session:".length);
  const stored = JSON.parse(value);
  const entries = (await journalOf(`journal:${actorId}:`, `journal:${actorId};`)).map((row) => JSON.parse(row.value));
  entryCount += entries.length;
  let previous = "";
  entries.forEach((entry, index) => {
    // The journal of a session that was deleted begins with its tombstone.
    const first = entries[0].events[0].type === "SessionDeleted" ? entries[0].rev : 1;
    if (entry.rev !== first + index) problems.push(`${actorId}: entry ${first + index} has revision ${entry.rev}`);
    if ((index > 0 || first === 1) && entry.digest !== entryDigest(previous, entry.events)) problems.push(`${actorId}: the digest chain breaks at revision ${entry.rev}`);
    previous = entry.digest;
  });
  // Through JSON, as the store keeps it: a field that is undefined and one that is missing are the same.
  const folded = JSON.parse(JSON.stringify(fold(entries)));
  if (!isDeepStrictEqual(folded, stored)) problems.push(`${actorId}: fold(journal) is not the stored state\n  folded ${JSON.stringify(folded)}\n  stored ${JSON.stringify(stored)}`);
}
await close();
console.log(JSON.stringify({ sessions: rows.length, entries: entryCount, problems }));

function openSqlite(file) {
  const db = new Database(file, { readonly: true });
  // One snapshot: a session may commit while documents and journals are being read.
  db.exec("BEGIN");
  const journalOf = db.prepare("SELECT value FROM state WHERE key >= ? AND key < ? ORDER BY key");
  return { rows: db.prepare("SELECT key, value FROM state WHERE key LIKE 'session:%'").all(), journalOf: (from, to) => journalOf.all(from, to), close: () => db.close() };
}

/** The table is that of components/production/session-store.yaml. Keys are compared byte by byte, as SQLite does. */
async function openPostgres(address) {
  const client = new pg.Client(address);
  await client.connect();
  await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  const query = async (where, values) => (await client.query(`SELECT key, convert_from(value, 'UTF8') AS value FROM docket_sessions_state WHERE ${where} ORDER BY key COLLATE "C"`, values)).rows;
  return { rows: await query("key LIKE 'session:%'", []), journalOf: (from, to) => query('key COLLATE "C" >= $1 AND key COLLATE "C" < $2', [from, to]), close: () => client.end() };
}
