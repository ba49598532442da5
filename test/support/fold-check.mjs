/**
 * Another process than any of Docket's: reads the session store's SQLite file and folds every journal (I7). Prints one
 * JSON object: sessions, entries, and each difference between fold(journal) and the stored document, each gap and each
 * broken link of the digest chain.
 *
 *   node test/support/fold-check.mjs <sessions.db>
 */
import Database from "better-sqlite3";
import { isDeepStrictEqual } from "node:util";
import { entryDigest } from "../../dist/src/session/core/digest.js";
import { fold } from "../../dist/src/session/core/evolve.js";

const db = new Database(process.argv[2], { readonly: true });
const rows = db.prepare("SELECT key, value FROM state WHERE key LIKE 'session:%'").all();
const journalOf = db.prepare("SELECT value FROM state WHERE key >= ? AND key < ? ORDER BY key");
const problems = [];
let entryCount = 0;
for (const { key, value } of rows) {
  const actorId = key.slice("session:".length);
  const stored = JSON.parse(value);
  const entries = journalOf.all(`journal:${actorId}:`, `journal:${actorId};`).map((row) => JSON.parse(row.value));
  entryCount += entries.length;
  let previous = "";
  entries.forEach((entry, index) => {
    if (entry.rev !== index + 1) problems.push(`${actorId}: entry ${index + 1} has revision ${entry.rev}`);
    if (entry.digest !== entryDigest(previous, entry.events)) problems.push(`${actorId}: the digest chain breaks at revision ${entry.rev}`);
    previous = entry.digest;
  });
  // Through JSON, as the store keeps it: a field that is undefined and one that is missing are the same.
  const folded = JSON.parse(JSON.stringify(fold(entries)));
  if (!isDeepStrictEqual(folded, stored)) problems.push(`${actorId}: fold(journal) is not the stored state\n  folded ${JSON.stringify(folded)}\n  stored ${JSON.stringify(stored)}`);
}
console.log(JSON.stringify({ sessions: rows.length, entries: entryCount, problems }));
