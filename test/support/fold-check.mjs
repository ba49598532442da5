/**
 * Another process than any of Docket's: reads the session store and folds every journal (I7). Prints one JSON object:
 * sessions, entries, and each difference between fold(journal) and the stored document, each gap and each broken link of
 * the digest chain.
 *
 *   node test/support/fold-check.mjs <sessions.db | postgres://…> [dist]
 *
 * `dist`: the build whose fold it is; by default the checkout's. What older builds stored is upcast by it.
 */
import Database from "better-sqlite3";
import { isDeepStrictEqual } from "node:util";
import { join, resolve } from "node:path";
import pg from "pg";

const [store = "", dist = join(import.meta.dirname, "../../dist")] = process.argv.slice(2);
const load = (module) => import(resolve(dist, "src", module));
const { continuesFrom } = await load("session/core/digest.js");
const { isCheckpoint, readEntry } = await load("contracts/journal.js");
const { upcastDocument } = await load("contracts/stored-version.js");
const { fold } = await load("session/core/evolve.js");

const { rows, journalOf, close } = store.startsWith("postgres") ? await openPostgres(store) : openSqlite(store);
const problems = [];
let entryCount = 0;
for (const { key, value } of rows) {
  const actorId = key.slice("session:".length);
  const stored = upcastDocument(JSON.parse(value));
  const entries = (await journalOf(`journal:${actorId}:`, `journal:${actorId};`)).map((row) => readEntry(row.value));
  entryCount += entries.length;
  checkJournal(actorId, entries, stored);
  // Through JSON, as the store keeps it: a field that is undefined and one that is missing are the same.
  const checkpoint = entries.findLastIndex((entry) => isCheckpoint(entry) && entry.rev <= stored.rev);
  const folded = JSON.parse(JSON.stringify(fold(entries.slice(Math.max(0, checkpoint)))));
  if (!isDeepStrictEqual(folded, stored)) problems.push(`${actorId}: fold(journal) is not the stored state\n  folded ${JSON.stringify(folded)}\n  stored ${JSON.stringify(stored)}`);
}
await close();
console.log(JSON.stringify({ sessions: rows.length, entries: entryCount, problems }));

/**
 * No gap, and one chain of digests, over all that must be there: from the first entry on, from a tombstone, or, where the journal was compacted,
 * from the oldest entry that is kept. What is still to be erased may be there in part. A compaction's snapshot is what the entries before it fold
 * to, where they are there.
 */
function checkJournal(actorId, entries, stored) {
  const tombstone = entries[0]?.rev === 1 ? undefined : entries.find((entry) => entry.events[0].type === "SessionDeleted");
  const firstRev = stored.keptFromRev ?? tombstone?.rev ?? 1;
  const compacted = entries.flatMap((entry) => entry.events.filter((event) => event.type === "JournalCompacted")).find((event) => event.toRev === firstRev - 1);
  let previous = firstRev === 1 ? "" : compacted?.toDigest;
  entries.filter((entry) => entry.rev >= firstRev).forEach((entry, index) => {
    if (entry.rev !== firstRev + index) problems.push(`${actorId}: entry ${firstRev + index} has revision ${entry.rev}`);
    if (previous !== undefined && !continuesFrom(previous, entry)) problems.push(`${actorId}: the digest chain breaks at revision ${entry.rev}`);
    const [first] = entry.events;
    if (first.type === "JournalCompacted" && first.state.journalDigest !== previous) problems.push(`${actorId}: the snapshot in revision ${entry.rev} does not follow the entry before it`);
    previous = entry.digest;
  });
  if (stored.keptFromRev !== undefined && compacted === undefined) problems.push(`${actorId}: kept from revision ${stored.keptFromRev}, and no entry says so`);
  entries.forEach((entry, index) => {
    const [first] = entry.events;
    const before = entries.slice(0, index);
    if (first.type !== "JournalCompacted" || before[0]?.rev !== 1 || before.at(-1)?.rev !== entry.rev - 1 || before.length !== entry.rev - 1) return;
    if (!isDeepStrictEqual(JSON.parse(JSON.stringify(fold(before))), first.state)) problems.push(`${actorId}: the snapshot in revision ${entry.rev} is not what the entries before it fold to`);
  });
}

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
