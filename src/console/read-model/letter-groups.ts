/** Owns: dead letters taken together: groups of one fingerprint, numbers for alerts, and the rows of a bulk redrive in the order in which they died. */
import { sql, type SelectQueryBuilder } from "kysely";
import type { DeadLetterGroup, DeadLetterItem } from "../../contracts/api.js";
import { DeadLetter } from "../../contracts/messages.js";
import type { ReadModel, Tables } from "./database.js";
import { itemOf } from "./dead-letters.js";

/** What letters a request means. `orphans`: also those that name no tenant. */
export interface LetterScope { readonly tenant: string; readonly orphans: boolean }
export interface LetterFilter {
  readonly state?: string | undefined; readonly kind?: string | undefined; readonly reason?: string | undefined; readonly fingerprint?: string | undefined;
  readonly session?: string | undefined; readonly sinceMs?: number | undefined; readonly untilMs?: number | undefined;
}

const MAX_GROUPS = 200;
type Letters<O> = SelectQueryBuilder<Tables, "dead_letters", O>;

/** The most numerous first. */
export async function groupsOf(db: ReadModel, scope: LetterScope, filter: LetterFilter): Promise<DeadLetterGroup[]> {
  const rows = await matching(db.selectFrom("dead_letters"), scope, filter).groupBy("fingerprint").select((eb) => [
    "fingerprint", eb.fn.countAll<number>().as("count"), sql<number>`count(*) filter (where state = 'dead')`.as("dead"), eb.fn.min("received_at").as("first_at"), eb.fn.max("received_at").as("last_at"),
    sql<number>`max(rowid)`.as("newest"),
  ]).orderBy("dead", "desc").orderBy("last_at", "desc").limit(MAX_GROUPS).execute();
  if (rows.length === 0) return [];
  // The newest of a group stands for it.
  const samples = await db.selectFrom("dead_letters").select(["fingerprint", "letter"]).where(sql<number>`rowid`, "in", rows.map((row) => row.newest)).execute();
  const letters = new Map(samples.map(({ fingerprint, letter }) => [fingerprint, DeadLetter.parse(JSON.parse(letter))]));
  return rows.flatMap(({ fingerprint, count, dead, first_at: firstAtMs, last_at: lastAtMs }) => {
    const letter = letters.get(fingerprint);
    if (letter === undefined) return []; // forgotten meanwhile
    const { kind, reason, message, deadLetterId: sampleId, app, topic, tool } = letter;
    return [{ fingerprint, kind, reason, app, topic, message, sampleId, count, dead, firstAtMs, lastAtMs, ...(tool === undefined ? {} : { tool }) }];
  });
}

export async function countLetters(db: ReadModel, scope: LetterScope, filter: LetterFilter): Promise<number> {
  return (await matching(db.selectFrom("dead_letters"), scope, filter).select((eb) => eb.fn.countAll<number>().as("count")).executeTakeFirstOrThrow()).count;
}

/** The next letters after a place, oldest first: events of one session are redriven in their order (I3). */
export async function lettersAfter(db: ReadModel, scope: LetterScope, filter: LetterFilter, page: { readonly after: number; readonly limit: number }): Promise<{ readonly item: DeadLetterItem; readonly place: number }[]> {
  const rows = await matching(db.selectFrom("dead_letters"), scope, filter).selectAll().select(sql<number>`rowid`.as("place"))
    .where(sql<boolean>`rowid > ${page.after}`).orderBy(sql`rowid`).limit(page.limit).execute();
  return rows.map((row) => ({ item: itemOf(row), place: row.place }));
}

/** The cursor for what comes after a place. */
export function placeCursor(place: number): string { return Buffer.from(JSON.stringify([place, ""])).toString("base64url"); }

export interface LetterCount { readonly kind: string; readonly reason: string; readonly state: string; readonly count: number; readonly oldestAtMs: number }

/** All tenants. */
export async function letterCounts(db: ReadModel): Promise<LetterCount[]> {
  return db.selectFrom("dead_letters").groupBy(["kind", "reason", "state"])
    .select((eb) => ["kind", "reason", "state", eb.fn.countAll<number>().as("count"), eb.fn.min("received_at").as("oldestAtMs")]).execute();
}

function matching<O>(query: Letters<O>, { tenant, orphans }: LetterScope, filter: LetterFilter): Letters<O> {
  let found = query.where((eb) => eb.or([eb("tenant", "=", tenant), ...(orphans ? [eb("tenant", "is", null)] : [])]));
  const equal = [["state", filter.state], ["kind", filter.kind], ["reason", filter.reason], ["fingerprint", filter.fingerprint], ["session_id", filter.session]] as const;
  for (const [column, value] of equal) if (value !== undefined) found = found.where(column, "=", value);
  if (filter.sinceMs !== undefined) found = found.where("received_at", ">=", filter.sinceMs);
  if (filter.untilMs !== undefined) found = found.where("received_at", "<", filter.untilMs);
  return found;
}
