/** Owns: the dead letters table: what was given up, whole, until an operator redrives it or it is too old (I9). */
import type { DeadLetterItem } from "../../contracts/api.js";
import { DeadLetter } from "../../contracts/messages.js";
import { fingerprintOf } from "../fingerprint.js";
import type { DeadLetterRow, ReadModel } from "./database.js";
import { pageOfRows, type Page, type PageRequest } from "./page.js";

/** `orphans`: also show letters that name no tenant (for admins: they may belong to anybody). */
export interface DeadLetterFilter extends PageRequest {
  readonly tenant: string; readonly orphans: boolean; readonly state?: string | undefined; readonly kind?: string | undefined; readonly sessionId?: string | undefined;
  readonly reason?: string | undefined; readonly fingerprint?: string | undefined;
}

/** Keeps the first letter of an id; a repetition changes nothing. */
export async function putDeadLetter(db: ReadModel, letter: DeadLetter, receivedAtMs: number): Promise<void> {
  await db.insertInto("dead_letters").values({
    dead_letter_id: letter.deadLetterId, tenant: letter.tenant ?? letter.envelope?.tenant ?? null, session_id: letter.sessionId ?? letter.envelope?.subject ?? null,
    kind: letter.kind, reason: letter.reason, state: "dead", received_at: receivedAtMs, redrive_count: 0, settled_at: null, letter: JSON.stringify(letter), fingerprint: fingerprintOf(letter),
  }).onConflict((oc) => oc.column("dead_letter_id").doNothing()).execute();
}

export async function listDeadLetters(db: ReadModel, filter: DeadLetterFilter): Promise<Page<DeadLetterItem>> {
  let query = db.selectFrom("dead_letters").selectAll().orderBy("received_at", "desc").orderBy("dead_letter_id").limit(filter.limit + 1)
    .where((eb) => eb.or([eb("tenant", "=", filter.tenant), ...(filter.orphans ? [eb("tenant", "is", null)] : [])]));
  if (filter.state !== undefined) query = query.where("state", "=", filter.state);
  if (filter.kind !== undefined) query = query.where("kind", "=", filter.kind);
  if (filter.reason !== undefined) query = query.where("reason", "=", filter.reason);
  if (filter.fingerprint !== undefined) query = query.where("fingerprint", "=", filter.fingerprint);
  if (filter.sessionId !== undefined) query = query.where("session_id", "=", filter.sessionId);
  const { after } = filter;
  if (after !== undefined) query = query.where((eb) => eb.or([eb("received_at", "<", after[0]), eb.and([eb("received_at", "=", after[0]), eb("dead_letter_id", ">", after[1])])]));
  return pageOfRows(await query.execute(), filter.limit, itemOf, (row) => [row.received_at, row.dead_letter_id]);
}

export async function findDeadLetter(db: ReadModel, tenant: string, orphans: boolean, id: string): Promise<DeadLetterItem | undefined> {
  const row = await db.selectFrom("dead_letters").selectAll().where("dead_letter_id", "=", id).executeTakeFirst();
  if (row === undefined || !(row.tenant === tenant || (row.tenant === null && orphans))) return undefined;
  return itemOf(row);
}

/** Takes redrive number `redrive` if it is the next one. False: it is taken. */
export async function claimRedrive(db: ReadModel, id: string, redrive: number): Promise<boolean> {
  const result = await db.updateTable("dead_letters").set({ redrive_count: redrive }).where("dead_letter_id", "=", id).where("redrive_count", "=", redrive - 1).executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** The redrive is on its way. */
export async function settleRedrive(db: ReadModel, id: string, atMs: number): Promise<void> {
  await db.updateTable("dead_letters").set({ state: "redriven", settled_at: atMs }).where("dead_letter_id", "=", id).execute();
}

/** Its redrive never arrived. */
export async function reviveLetter(db: ReadModel, id: string): Promise<void> {
  await db.updateTable("dead_letters").set({ state: "dead", settled_at: null }).where("dead_letter_id", "=", id).execute();
}

/** False: it is settled already. */
export async function discardDeadLetter(db: ReadModel, id: string, atMs: number): Promise<boolean> {
  const result = await db.updateTable("dead_letters").set({ state: "discarded", settled_at: atMs }).where("dead_letter_id", "=", id).where("state", "=", "dead").executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** A row as the API gives it. */
export function itemOf(row: DeadLetterRow): DeadLetterItem {
  const state = row.state === "redriven" || row.state === "discarded" ? row.state : "dead";
  return { letter: DeadLetter.parse(JSON.parse(row.letter)), state, receivedAtMs: row.received_at, redriveCount: row.redrive_count, fingerprint: row.fingerprint };
}
