/**
 * Owns: the outbox of notices. An approval that something happened to is marked in the very transaction that takes it in; planning turns marks into
 * rows, one for each channel and event; sending counts an attempt before it makes it. So a crash at any place costs a repetition at most.
 */
import { randomUUID } from "node:crypto";
import type { Kysely } from "kysely";
import { NoticeEvent, NoticeState, type NoticeItem } from "../../contracts/notices.js";
import { ApprovalEvent } from "../../contracts/api.js";
import type { NoticeRow, ReadModel, Tables } from "./database.js";

const LINK_KEPT_MS = 30 * 86_400_000;

/** Something happened to an approval: its notices are to be planned. */
export async function markForNotices(db: Kysely<Tables>, approvalId: string): Promise<void> {
  const mark = randomUUID();
  await db.insertInto("notice_todo").values({ approval_id: approvalId, mark }).onConflict((oc) => oc.column("approval_id").doUpdateSet({ mark })).execute();
}

/** Every open approval: for a console that starts, maybe with other channels than before. */
export async function markOpenApprovals(db: ReadModel): Promise<void> {
  const open = await db.selectFrom("approvals").select("approval_id").whereRef("closed_pos", "<=", "opened_pos").where("pending", "is not", null).execute();
  for (const { approval_id } of open) await markForNotices(db, approval_id);
}

export function markedApprovals(db: ReadModel, limit: number): Promise<{ approval_id: string; mark: string }[]> {
  return db.selectFrom("notice_todo").selectAll().limit(limit).execute();
}

/** Only as it was read: what happened meanwhile has another mark, and stays. */
export async function unmark(db: Kysely<Tables>, { approval_id, mark }: { readonly approval_id: string; readonly mark: string }): Promise<void> {
  await db.deleteFrom("notice_todo").where("approval_id", "=", approval_id).where("mark", "=", mark).execute();
}

/** What reminded people of an approval, since it was opened last. */
export async function remindersOf(db: Kysely<Tables>, approvalId: string, afterPos: number): Promise<{ readonly pos: number; readonly event: ApprovalEvent }[]> {
  const rows = await db.selectFrom("approval_events").selectAll().where("approval_id", "=", approvalId).where("pos", ">", afterPos).orderBy("pos").execute();
  return rows.map((row) => ({ pos: row.pos, event: ApprovalEvent.parse(JSON.parse(row.event)) })).filter(({ event }) => event.what === "reminded");
}

export function noticesOf(db: Kysely<Tables>, approvalId: string): Promise<NoticeRow[]> {
  return db.selectFrom("notices").selectAll().where("approval_id", "=", approvalId).orderBy("created_at").orderBy("pos").orderBy("notice_id").execute();
}

/** One that is there stays as it is. */
export async function addNotice(db: Kysely<Tables>, row: NoticeRow): Promise<void> {
  await db.insertInto("notices").values(row).onConflict((oc) => oc.column("notice_id").doNothing()).execute();
}

/** Ends notices that nobody needs any more; those that were sent stay sent. */
export async function overtake(db: Kysely<Tables>, noticeIds: readonly string[], nowMs: number, note: string): Promise<void> {
  if (noticeIds.length === 0) return;
  await db.updateTable("notices").set({ state: "overtaken", settled_at: nowMs, note, target: null }).where("notice_id", "in", noticeIds).where("state", "=", "waiting").execute();
}

export function dueNotices(db: ReadModel, channel: string, nowMs: number, limit: number): Promise<NoticeRow[]> {
  return db.selectFrom("notices").selectAll().where("channel", "=", channel).where("state", "=", "waiting").where("due_at", "<=", nowMs).orderBy("due_at").orderBy("created_at").limit(limit).execute();
}

/** Counts the attempt before it is made, and says when the next one would be. False: another console was faster. */
export async function beginAttempt(db: ReadModel, row: NoticeRow, dueAtMs: number): Promise<boolean> {
  const { numUpdatedRows } = await db.updateTable("notices").set({ attempts: row.attempts + 1, due_at: dueAtMs })
    .where("notice_id", "=", row.notice_id).where("state", "=", "waiting").where("attempts", "=", row.attempts).where("due_at", "=", row.due_at).executeTakeFirst();
  return numUpdatedRows === 1n;
}

export async function noteSent(db: ReadModel, noticeId: string, nowMs: number, { note, receipt }: { readonly note: string; readonly receipt: string | undefined }): Promise<void> {
  await db.updateTable("notices").set({ state: "sent", settled_at: nowMs, note, receipt: receipt ?? null, target: null }).where("notice_id", "=", noticeId).execute();
}

export async function noteFailed(db: ReadModel, noticeId: string, failed: { readonly note: string; readonly dueAtMs: number; readonly refusals: number }): Promise<void> {
  await db.updateTable("notices").set({ note: failed.note, due_at: failed.dueAtMs, refusals: failed.refusals }).where("notice_id", "=", noticeId).where("state", "=", "waiting").execute();
}

export async function noteGivenUp(db: ReadModel, noticeId: string, nowMs: number, note: string): Promise<void> {
  await db.updateTable("notices").set({ state: "given_up", settled_at: nowMs, note, target: null }).where("notice_id", "=", noticeId).where("state", "=", "waiting").execute();
}

/** A notice that was given up is to be tried again. False: it was not given up. */
export async function reviveNotice(db: ReadModel, approvalId: string, noticeId: string, nowMs: number): Promise<boolean> {
  const { numUpdatedRows } = await db.updateTable("notices").set({ state: "waiting", due_at: nowMs, settled_at: null, refusals: 0, note: "sent again by a person" })
    .where("notice_id", "=", noticeId).where("approval_id", "=", approvalId).where("state", "=", "given_up").executeTakeFirst();
  return numUpdatedRows === 1n;
}

export interface ChannelCount { readonly channel: string; readonly state: NoticeState; readonly count: number; readonly oldestAtMs: number }

/** How many notices of each state a channel has. Of one tenant, or of all. */
export async function noticeCounts(db: ReadModel, tenant?: string): Promise<ChannelCount[]> {
  let query = db.selectFrom("notices").select(({ fn }) => ["channel", "state", fn.countAll<number>().as("count"), fn.min("created_at").as("oldest")]).groupBy(["channel", "state"]).orderBy("channel").orderBy("state");
  if (tenant !== undefined) query = query.where("tenant", "=", tenant);
  return (await query.execute()).map(({ channel, state, count, oldest }) => ({ channel, state: NoticeState.parse(state), count, oldestAtMs: oldest }));
}

/** Channels with notices that wait since before a time, or were given up since another. */
export async function noticeTroubles(db: ReadModel, { lateBeforeMs, sinceMs }: { readonly lateBeforeMs: number; readonly sinceMs: number }): Promise<{ channel: string; late: number; givenUp: number }[]> {
  const rows = await db.selectFrom("notices").select(({ fn }) => ["channel", "state", fn.countAll<number>().as("count")])
    .where((eb) => eb.or([eb.and([eb("state", "=", "waiting"), eb("created_at", "<", lateBeforeMs)]), eb.and([eb("state", "=", "given_up"), eb("settled_at", ">=", sinceMs)])])).groupBy(["channel", "state"]).execute();
  const of = (channel: string, state: NoticeState): number => rows.find((row) => row.channel === channel && row.state === state)?.count ?? 0;
  return [...new Set(rows.map((row) => row.channel))].sort().map((channel) => ({ channel, late: of(channel, "waiting"), givenUp: of(channel, "given_up") }));
}

export function itemOfNotice(row: NoticeRow): NoticeItem {
  return {
    noticeId: row.notice_id, channel: row.channel, event: NoticeEvent.parse(row.event), version: row.version, state: NoticeState.parse(row.state), attempts: row.attempts, createdAtMs: row.created_at, note: row.note,
    ...(row.state === "waiting" ? { dueAtMs: row.due_at } : {}), ...(row.settled_at === null ? {} : { settledAtMs: row.settled_at }),
  };
}

/** Takes a callback once. False: it was taken before. */
export async function takeCallback(db: ReadModel, callHash: string, nowMs: number, expiresAtMs: number): Promise<boolean> {
  await db.deleteFrom("taken_callbacks").where("expires_at", "<", nowMs).execute();
  const { numInsertedOrUpdatedRows } = await db.insertInto("taken_callbacks").values({ call_hash: callHash, expires_at: expiresAtMs }).onConflict((oc) => oc.doNothing()).executeTakeFirst();
  return numInsertedOrUpdatedRows === 1n;
}

/** Notices go with their approvals; links some time after their end, so that until then one that was used says so. */
export async function forgetNotices(db: ReadModel, nowMs: number): Promise<void> {
  const kept = db.selectFrom("approvals").select("approval_id");
  await db.deleteFrom("notices").where("approval_id", "not in", kept).execute();
  await db.deleteFrom("notice_todo").where("approval_id", "not in", kept).execute();
  await db.deleteFrom("one_time_links").where("expires_at", "<", nowMs - LINK_KEPT_MS).execute();
  await db.deleteFrom("taken_callbacks").where("expires_at", "<", nowMs).execute();
}
