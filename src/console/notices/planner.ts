/**
 * Owns: which notices there must be, from what the read model knows of an approval. Rows have ids made of what they tell, so that planning again, after a
 * crash or in another console, makes none twice.
 *
 * - A channel gets the newest event that is routed to it; older ones that had not gone out are overtaken by it.
 * - When an approval closes, every channel that was to have its card is told, whether the card got there or not: an outage loses no notice.
 */
import { createHash } from "node:crypto";
import type { Kysely } from "kysely";
import type { NoticeEvent } from "../../contracts/notices.js";
import { placedApproval } from "../read-model/approvals.js";
import type { NoticeRow, ReadModel, Tables } from "../read-model/database.js";
import { addNotice, markedApprovals, noticesOf, overtake, remindersOf, unmark } from "../read-model/notices.js";
import { channelsFor } from "./routing.js";
import type { NoticeSettings } from "./settings.js";

type Placed = NonNullable<Awaited<ReturnType<typeof placedApproval>>>;
interface Told { readonly event: NoticeEvent; readonly pos: number; readonly channels: readonly string[] }

const BATCH = 200;

/** Plans for what has happened since. Without settings there is nobody to tell, and marks are just dropped. Returns how many approvals were looked at. */
export async function planNotices(db: ReadModel, settings: NoticeSettings | undefined, nowMs: number): Promise<number> {
  const marked = await markedApprovals(db, BATCH);
  for (const mark of marked) {
    await db.transaction().execute(async (trx) => {
      const placed = settings === undefined ? undefined : await placedApproval(trx, mark.approval_id);
      if (settings !== undefined && placed !== undefined) await (placed.item.state === "open" ? planOpen : planClosed)(trx, settings, placed, nowMs);
      await unmark(trx, mark);
    });
  }
  return marked.length;
}

/** The id of a notice: the same telling has the same one. */
export function noticeIdOf(...parts: readonly (string | number)[]): string { return `ntc_${createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 32)}`; }

/** Cards, that is what asks for a decision. */
export function isCard(row: Pick<NoticeRow, "event">): boolean { return row.event === "opened" || row.event === "reminded" || row.event === "escalated"; }

async function planOpen(trx: Kysely<Tables>, settings: NoticeSettings, { item: { pending }, openedPos }: Placed, nowMs: number): Promise<void> {
  const { record } = pending;
  const existing = await noticesOf(trx, record.approvalId);
  await overtake(trx, existing.filter((row) => isCard(row) && row.version < record.version).map((row) => row.notice_id), nowMs, "the approval has changed");
  const told: Told[] = [
    { event: "opened", pos: 0, channels: channelsFor(settings.routes, pending, "opened") },
    ...(await remindersOf(trx, record.approvalId, openedPos)).map(({ pos, event: { to } }): Told => {
      const event = to === undefined ? "reminded" : "escalated";
      return { event, pos, channels: channelsFor(settings.routes, pending, event, to) };
    }),
  ];
  const known = new Set(existing.map((row) => row.notice_id));
  for (const { name } of settings.channels) {
    const rows = told.filter(({ channels }) => channels.includes(name)).map(({ event, pos }) => rowFor(pending, { event, pos, channel: name, version: record.version, nowMs, id: noticeIdOf(record.approvalId, record.version, event, pos, name) }));
    const fresh = rows.filter((row) => !known.has(row.notice_id));
    const newest = fresh.at(-1);
    if (newest === undefined) continue;
    await overtake(trx, existing.filter((row) => row.channel === name && isCard(row)).map((row) => row.notice_id), nowMs, "a newer notice tells it");
    for (const row of fresh) await addNotice(trx, row === newest ? row : { ...row, state: "overtaken", settled_at: nowMs, note: "a newer notice tells it" });
  }
}

async function planClosed(trx: Kysely<Tables>, settings: NoticeSettings, { item: { pending }, closedPos }: Placed, nowMs: number): Promise<void> {
  const { record } = pending;
  const existing = await noticesOf(trx, record.approvalId);
  const cards = existing.filter(isCard);
  await overtake(trx, cards.map((row) => row.notice_id), nowMs, "decided before it could be sent");
  for (const { name, kind } of settings.channels) {
    const copies = cards.filter((row) => row.channel === name);
    if (copies.length === 0) continue;
    const about = { pos: closedPos, channel: name, version: record.version, nowMs };
    await addNotice(trx, rowFor(pending, { ...about, event: "settled", id: noticeIdOf(record.approvalId, "settled", closedPos, name) }));
    if (kind !== "discord") continue;
    for (const { receipt, notice_id } of copies) {
      if (receipt !== null) await addNotice(trx, rowFor(pending, { ...about, event: "locked", id: noticeIdOf(record.approvalId, "locked", closedPos, name, notice_id), target: JSON.stringify({ message: receipt }) }));
    }
  }
}

type About = { readonly id: string; readonly event: NoticeEvent; readonly pos: number; readonly channel: string; readonly version: number; readonly nowMs: number; readonly target?: string };

/** A notice that waits to be sent. */
export function rowFor({ tenant, sessionId, record }: Placed["item"]["pending"], { id, event, pos, channel, version, nowMs, target }: About): NoticeRow {
  return {
    notice_id: id, approval_id: record.approvalId, tenant, session_id: sessionId, channel, event, version, pos, state: "waiting", attempts: 0, refusals: 0,
    created_at: nowMs, due_at: nowMs, settled_at: null, note: "", receipt: null, target: target ?? null,
  };
}
