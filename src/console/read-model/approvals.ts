/**
 * Owns: the approvals table. Three sources write it, in any order and as often as they like: the record (opened, from the
 * journal), the closing, assignment and snooze (from the journal), and what is to be shown (from the pending topic). Each has its own
 * columns and wins by position or version, so the row comes out the same.
 */
import type { Kysely } from "kysely";
import { ApprovalEvent, type ApprovalListItem } from "../../contracts/api.js";
import { ApprovalRecord, PendingApproval } from "../../contracts/decisions.js";
import type { ApprovalRow, ReadModel, Tables } from "./database.js";
import { markForNotices } from "./notices.js";
import { pageOfRows, type Page, type PageRequest } from "./page.js";

type ApprovalState = ApprovalListItem["state"];
export interface ApprovalFilter extends PageRequest { readonly tenant: string; readonly state: ApprovalState | "all"; readonly sessionId?: string | undefined;
  /** Whose turn it is; null: nobody's. */ readonly assignedTo?: string | null | undefined;
  /** Leaves out what somebody has put off until later than this. */ readonly awakeAtMs?: number | undefined }
export interface Closing { readonly approvalId: string; readonly actorId: string; readonly position: number; readonly atMs: number; readonly as: Exclude<ApprovalState, "open">; readonly by?: string; readonly decision?: string }

/** Place of an event in its session's journal. A commit never has that many events. */
export function positionOf(rev: number, index: number): number { return rev * 10_000 + index; }

const NEVER = Number.MAX_SAFE_INTEGER;

/** The journal says that it was opened, or opened again. */
export async function putOpening(db: Kysely<Tables>, actorId: string, position: number, record: ApprovalRecord): Promise<void> {
  const columns = { opened_pos: position, opened_at: record.openedAtMs, version: record.version, record: JSON.stringify(record), sort_at: record.expiresAtMs ?? NEVER, tool: record.tool ?? null, rule: record.rule };
  await db.insertInto("approvals").values({ ...emptyRow(record.approvalId, actorId), ...columns })
    .onConflict((oc) => oc.column("approval_id").doUpdateSet(columns).where("approvals.opened_pos", "<=", position)).execute();
}

/** The journal says that it is no longer open. */
export async function putClosing(db: Kysely<Tables>, closing: Closing): Promise<void> {
  const columns = { closed_pos: closing.position, closed_as: closing.as, closed_at: closing.atMs, decided_by: closing.by ?? null, decision: closing.decision ?? null };
  await db.insertInto("approvals").values({ ...emptyRow(closing.approvalId, closing.actorId), ...columns })
    .onConflict((oc) => oc.column("approval_id").doUpdateSet(columns).where("approvals.closed_pos", "<=", closing.position)).execute();
}

/** The pending topic brought what is to be shown. An older version never replaces a newer one. */
export async function putPending(db: Kysely<Tables>, pending: PendingApproval): Promise<void> {
  const shown = { tenant: pending.tenant, session_id: pending.sessionId, pending: JSON.stringify(pending), pending_version: pending.record.version };
  const { record } = pending;
  const fromRecord = { version: record.version, opened_at: record.openedAtMs, sort_at: record.expiresAtMs ?? NEVER, tool: record.tool ?? null, rule: record.rule };
  await db.insertInto("approvals").values({ ...emptyRow(record.approvalId, pending.actorId), ...shown, ...fromRecord })
    .onConflict((oc) => oc.column("approval_id").doUpdateSet(shown).where("approvals.pending_version", "<", record.version)).execute();
  // Until the journal has told, the record in the message is the best there is.
  await db.updateTable("approvals").set(fromRecord).where("approval_id", "=", record.approvalId).where("opened_pos", "=", 0).where("version", "<", record.version).execute();
  // Last: a crash before this leaves the delivery without its ack, and it comes again.
  await markForNotices(db, record.approvalId);
}

export async function putAssignment(db: Kysely<Tables>, approvalId: string, position: number, to: string | undefined): Promise<void> {
  await db.updateTable("approvals").set({ assigned_to: to ?? null, assigned_pos: position }).where("approval_id", "=", approvalId).where("assigned_pos", "<", position).execute();
}

export async function putSnooze(db: Kysely<Tables>, approvalId: string, position: number, untilMs: number | undefined): Promise<void> {
  await db.updateTable("approvals").set({ snoozed_until: untilMs ?? null, snoozed_pos: position }).where("approval_id", "=", approvalId).where("snoozed_pos", "<", position).execute();
}

/** Notes what happened; again is once. */
export async function putApprovalEvent(db: Kysely<Tables>, approvalId: string, position: number, event: ApprovalEvent): Promise<void> {
  const { numInsertedOrUpdatedRows } = await db.insertInto("approval_events").values({ approval_id: approvalId, pos: position, event: JSON.stringify(event) }).onConflict((oc) => oc.doNothing()).executeTakeFirst();
  if (numInsertedOrUpdatedRows === 1n) await markForNotices(db, approvalId);
}

/** The newest 200, in their order. */
export async function historyOf(db: ReadModel, approvalId: string): Promise<ApprovalEvent[]> {
  const rows = await db.selectFrom("approval_events").selectAll().where("approval_id", "=", approvalId).orderBy("pos", "desc").limit(200).execute();
  return rows.reverse().map((row) => ApprovalEvent.parse(JSON.parse(row.event)));
}

export async function listApprovals(db: ReadModel, filter: ApprovalFilter): Promise<Page<ApprovalListItem>> {
  const soonest = filter.state === "open";
  let query = db.selectFrom("approvals").selectAll().where("tenant", "=", filter.tenant).where("pending", "is not", null).limit(filter.limit + 1);
  if (filter.sessionId !== undefined) query = query.where("session_id", "=", filter.sessionId);
  if (filter.assignedTo !== undefined) query = filter.assignedTo === null ? query.where("assigned_to", "is", null) : query.where("assigned_to", "=", filter.assignedTo);
  const { awakeAtMs } = filter;
  if (awakeAtMs !== undefined) query = query.where((eb) => eb.or([eb("snoozed_until", "is", null), eb("snoozed_until", "<=", awakeAtMs)]));
  if (soonest) query = query.whereRef("closed_pos", "<=", "opened_pos");
  else if (filter.state !== "all") query = query.whereRef("closed_pos", ">", "opened_pos").where("closed_as", "=", filter.state);
  query = soonest ? query.orderBy("sort_at") : query.orderBy("opened_at", "desc");
  query = query.orderBy("approval_id");
  const { after } = filter;
  const key = soonest ? "sort_at" : "opened_at";
  if (after !== undefined) query = query.where((eb) => eb.or([eb(key, soonest ? ">" : "<", after[0]), eb.and([eb(key, "=", after[0]), eb("approval_id", ">", after[1])])]));
  const rows = await query.execute();
  const courses = await coursesOf(db, rows);
  return pageOfRows(rows, filter.limit, (row) => itemOf(row, courses.get(row.approval_id)), (row) => [row[key] ?? 0, row.approval_id]);
}

export async function findApproval(db: ReadModel, tenant: string, approvalId: string): Promise<ApprovalListItem | undefined> {
  const found = await placedApproval(db, approvalId);
  return found?.item.pending.tenant === tenant ? found.item : undefined;
}

/** An approval of any tenant with the places in its journal where it was opened and closed last. For the console's own work; what people see goes through `findApproval`. */
export async function placedApproval(db: Kysely<Tables>, approvalId: string): Promise<{ readonly item: ApprovalListItem; readonly openedPos: number; readonly closedPos: number } | undefined> {
  const row = await db.selectFrom("approvals").selectAll().where("approval_id", "=", approvalId).where("pending", "is not", null).executeTakeFirst();
  return row === undefined ? undefined : { item: itemOf(row, (await coursesOf(db, [row])).get(approvalId)), openedPos: row.opened_pos, closedPos: row.closed_pos };
}

/** What people decided on a tool, the latest first. */
export async function similarDecisions(db: ReadModel, tenant: string, { tool, except, limit }: { readonly tool: string; readonly except: string; readonly limit: number }): Promise<ApprovalListItem[]> {
  const rows = await db.selectFrom("approvals").selectAll().where("tenant", "=", tenant).where("tool", "=", tool).where("closed_as", "=", "decided").whereRef("closed_pos", ">", "opened_pos")
    .where("pending", "is not", null).where("approval_id", "!=", except).orderBy("closed_at", "desc").limit(limit).execute();
  const courses = await coursesOf(db, rows);
  return rows.map((row) => itemOf(row, courses.get(row.approval_id)));
}

/** Records of a session's open approvals, as far as they are known here. */
export async function openRecords(db: ReadModel, actorId: string): Promise<ApprovalRecord[]> {
  const rows = await db.selectFrom("approvals").selectAll().where("actor_id", "=", actorId).whereRef("closed_pos", "<=", "opened_pos").where("pending", "is not", null).limit(100).execute();
  return rows.map((row) => itemOf(row).pending.record);
}

/** What has happened to approvals since they were opened last: signatures and steps of the chain. */
async function coursesOf(db: ReadModel, rows: readonly ApprovalRow[]): Promise<Map<string, ApprovalEvent[]>> {
  const opened = new Map(rows.map((row) => [row.approval_id, row.opened_pos]));
  if (opened.size === 0) return new Map();
  const found = await db.selectFrom("approval_events").selectAll().where("approval_id", "in", [...opened.keys()]).orderBy("approval_id").orderBy("pos").execute();
  const courses = new Map<string, ApprovalEvent[]>();
  for (const { approval_id, pos, event } of found) if (pos > (opened.get(approval_id) ?? 0)) courses.set(approval_id, [...(courses.get(approval_id) ?? []), ApprovalEvent.parse(JSON.parse(event))]);
  return courses;
}

/** The record as its session has it by now (I7). */
function followed(record: ApprovalRecord, course: readonly ApprovalEvent[]): ApprovalRecord {
  let { signatures } = record;
  const steps = Math.max(record.chainDone ?? 0, course.filter(({ what }) => what === "reminded").length);
  for (const { what, by, decisionId, atMs, alone, detail } of course) {
    if (what === "asked_again") signatures = [];
    const agrees = what === "signed" || (what === "decided" && (detail === "approve" || detail === "modify"));
    if (!agrees || by === undefined || decisionId === undefined) continue;
    const others = alone === true ? [] : signatures.filter((one) => one.decisionId !== decisionId);
    signatures = [...others, { principalId: by, decisionId, atMs }];
  }
  return { ...record, signatures, ...(steps === 0 ? {} : { chainDone: steps }) };
}

function itemOf(row: ApprovalRow, course: readonly ApprovalEvent[] = []): ApprovalListItem {
  const pending = PendingApproval.parse(JSON.parse(row.pending ?? "null"));
  // The same version may be known twice; what the journal says of it comes later and has more (I7).
  const told = row.record === null ? pending.record : ApprovalRecord.parse(JSON.parse(row.record));
  const record = { ...followed(told.version === pending.record.version ? told : pending.record, course), ...(row.assigned_to === null ? {} : { assignedTo: row.assigned_to }), ...(row.snoozed_until === null ? {} : { snoozedUntilMs: row.snoozed_until }) };
  const closed = row.closed_pos > row.opened_pos;
  return {
    pending: { ...pending, record },
    state: closed ? stateOf(row.closed_as) : "open",
    ...(closed && row.decided_by !== null ? { decidedBy: row.decided_by } : {}),
    ...(closed && row.closed_at !== null ? { decidedAtMs: row.closed_at } : {}),
    ...(closed && row.decision !== null ? { decision: row.decision } : {}),
    ...(closed ? saidWith(course) : {}),
  };
}

/** What the last decision said, and what the last `modify` made of the arguments. */
function saidWith(course: readonly ApprovalEvent[]): Pick<ApprovalListItem, "reason" | "modifiedArgs"> {
  const reason = course.findLast(({ what }) => what === "decided")?.text;
  const modifiedArgs = course.findLast(({ args }) => args !== undefined)?.args;
  return { ...(reason === undefined ? {} : { reason }), ...(modifiedArgs === undefined ? {} : { modifiedArgs }) };
}

function stateOf(word: string | null): ApprovalState {
  return word === "expired" || word === "withdrawn" ? word : "decided";
}

function emptyRow(approvalId: string, actorId: string): ApprovalRow {
  return { approval_id: approvalId, actor_id: actorId, tenant: null, session_id: null, version: 0, opened_pos: 0, closed_pos: 0, closed_as: null, closed_at: null, decided_by: null, decision: null, opened_at: null, sort_at: NEVER, record: null, pending: null, pending_version: 0, tool: null, rule: null, assigned_to: null, assigned_pos: 0, snoozed_until: null, snoozed_pos: 0 };
}
