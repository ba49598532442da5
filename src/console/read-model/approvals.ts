/**
 * Owns: the approvals table. Three sources write it, in any order and as often as they like: the record (opened, from the
 * journal), the closing (from the journal), and what is to be shown (from the pending topic). Each has its own
 * columns and wins by position or version, so the row comes out the same.
 */
import { sql, type Kysely } from "kysely";
import type { ApprovalListItem } from "../../contracts/api.js";
import { ApprovalRecord, PendingApproval } from "../../contracts/decisions.js";
import type { ApprovalRow, ReadModel, Tables } from "./database.js";
import { pageOfRows, type Page, type PageRequest } from "./page.js";

type ApprovalState = ApprovalListItem["state"];
export interface ApprovalFilter extends PageRequest { readonly tenant: string; readonly state: ApprovalState | "all"; readonly sessionId?: string | undefined }
export interface Closing { readonly approvalId: string; readonly actorId: string; readonly position: number; readonly atMs: number; readonly as: Exclude<ApprovalState, "open">; readonly by?: string; readonly decision?: string }

/** Place of an event in its session's journal. A commit never has that many events. */
export function positionOf(rev: number, index: number): number { return rev * 10_000 + index; }

const NEVER = Number.MAX_SAFE_INTEGER;

/** The journal says that it was opened, or opened again. */
export async function putOpening(db: Kysely<Tables>, actorId: string, position: number, record: ApprovalRecord): Promise<void> {
  const columns = { opened_pos: position, opened_at: record.openedAtMs, version: record.version, record: JSON.stringify(record), sort_at: record.expiresAtMs ?? NEVER };
  await db.insertInto("approvals").values({ ...emptyRow(record.approvalId, actorId), ...columns })
    .onConflict((oc) => oc.column("approval_id").doUpdateSet(columns).where("approvals.opened_pos", "<", position)).execute();
}

/** The journal says that it is no longer open. */
export async function putClosing(db: Kysely<Tables>, closing: Closing): Promise<void> {
  const columns = { closed_pos: closing.position, closed_as: closing.as, closed_at: closing.atMs, decided_by: closing.by ?? null, decision: closing.decision ?? null };
  await db.insertInto("approvals").values({ ...emptyRow(closing.approvalId, closing.actorId), ...columns })
    .onConflict((oc) => oc.column("approval_id").doUpdateSet(columns).where("approvals.closed_pos", "<", closing.position)).execute();
}

/** The pending topic brought what is to be shown. An older version never replaces a newer one. */
export async function putPending(db: Kysely<Tables>, pending: PendingApproval): Promise<void> {
  const shown = { tenant: pending.tenant, session_id: pending.sessionId, pending: JSON.stringify(pending) };
  const fromRecord = { version: pending.record.version, opened_at: pending.record.openedAtMs, sort_at: pending.record.expiresAtMs ?? NEVER };
  await db.insertInto("approvals").values({ ...emptyRow(pending.record.approvalId, pending.actorId), ...shown, ...fromRecord })
    .onConflict((oc) => oc.column("approval_id").doUpdateSet(shown)
      .where(sql<boolean>`coalesce(json_extract(approvals.pending, '$.record.version'), 0) < ${pending.record.version}`)).execute();
  // Until the journal has told, the record in the message is the best there is.
  await db.updateTable("approvals").set(fromRecord).where("approval_id", "=", pending.record.approvalId).where("opened_pos", "=", 0).where("version", "<", pending.record.version).execute();
}

export async function listApprovals(db: ReadModel, filter: ApprovalFilter): Promise<Page<ApprovalListItem>> {
  const soonest = filter.state === "open";
  let query = db.selectFrom("approvals").selectAll().where("tenant", "=", filter.tenant).where("pending", "is not", null).limit(filter.limit + 1);
  if (filter.sessionId !== undefined) query = query.where("session_id", "=", filter.sessionId);
  if (soonest) query = query.whereRef("closed_pos", "<=", "opened_pos");
  else if (filter.state !== "all") query = query.whereRef("closed_pos", ">", "opened_pos").where("closed_as", "=", filter.state);
  query = soonest ? query.orderBy("sort_at") : query.orderBy("opened_at", "desc");
  query = query.orderBy("approval_id");
  const { after } = filter;
  const key = soonest ? "sort_at" : "opened_at";
  if (after !== undefined) query = query.where((eb) => eb.or([eb(key, soonest ? ">" : "<", after[0]), eb.and([eb(key, "=", after[0]), eb("approval_id", ">", after[1])])]));
  return pageOfRows(await query.execute(), filter.limit, itemOf, (row) => [row[key] ?? 0, row.approval_id]);
}

export async function findApproval(db: ReadModel, tenant: string, approvalId: string): Promise<ApprovalListItem | undefined> {
  const row = await db.selectFrom("approvals").selectAll().where("approval_id", "=", approvalId).where("tenant", "=", tenant).where("pending", "is not", null).executeTakeFirst();
  return row === undefined ? undefined : itemOf(row);
}

/** Records of a session's open approvals, as far as they are known here. */
export async function openRecords(db: ReadModel, actorId: string): Promise<ApprovalRecord[]> {
  const rows = await db.selectFrom("approvals").selectAll().where("actor_id", "=", actorId).whereRef("closed_pos", "<=", "opened_pos").where("pending", "is not", null).limit(100).execute();
  return rows.map((row) => itemOf(row).pending.record);
}

function itemOf(row: ApprovalRow): ApprovalListItem {
  const pending = PendingApproval.parse(JSON.parse(row.pending ?? "null"));
  // The same version may be known twice; what the journal says of it comes later and has more (I7).
  const record = row.record === null ? pending.record : ApprovalRecord.parse(JSON.parse(row.record));
  const closed = row.closed_pos > row.opened_pos;
  return {
    pending: record.version === pending.record.version ? { ...pending, record } : pending,
    state: closed ? stateOf(row.closed_as) : "open",
    ...(closed && row.decided_by !== null ? { decidedBy: row.decided_by } : {}),
    ...(closed && row.closed_at !== null ? { decidedAtMs: row.closed_at } : {}),
    ...(closed && row.decision !== null ? { decision: row.decision } : {}),
  };
}

function stateOf(word: string | null): ApprovalState {
  return word === "expired" || word === "withdrawn" ? word : "decided";
}

function emptyRow(approvalId: string, actorId: string): ApprovalRow {
  return { approval_id: approvalId, actor_id: actorId, tenant: null, session_id: null, version: 0, opened_pos: 0, closed_pos: 0, closed_as: null, closed_at: null, decided_by: null, decision: null, opened_at: null, sort_at: NEVER, record: null, pending: null };
}
