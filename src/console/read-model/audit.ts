/** Owns: the audit table: who asked for what, when, why, and what came of it. Rows are added, never changed. */
import { randomUUID } from "node:crypto";
import type { ReadModel } from "./database.js";
import { pageOfRows, type Page, type PageRequest } from "./page.js";

export interface AuditEntry {
  readonly auditId: string; readonly atMs: number; readonly tenant: string; readonly principalId: string; readonly keyId: string;
  /** `approval.approve`, `session.cancel`, `dead-letter.redrive` … */
  readonly action: string; readonly target: string;
  /** `requested` before the attempt, then the verdict or the problem code. */
  readonly outcome: string;
  readonly reason: string; readonly detail: Readonly<Record<string, unknown>>; readonly ip: string;
}

export async function addAudit(db: ReadModel, entry: Omit<AuditEntry, "auditId">): Promise<void> {
  await db.insertInto("audit").values({
    audit_id: randomUUID(), at: entry.atMs, tenant: entry.tenant, principal_id: entry.principalId, key_id: entry.keyId, action: entry.action, target: entry.target,
    outcome: entry.outcome, reason: entry.reason, detail: JSON.stringify(entry.detail), ip: entry.ip,
  }).execute();
}

export async function listAudit(db: ReadModel, tenant: string, page: PageRequest): Promise<Page<AuditEntry>> {
  let query = db.selectFrom("audit").selectAll().where("tenant", "=", tenant).orderBy("at", "desc").orderBy("audit_id").limit(page.limit + 1);
  const { after } = page;
  if (after !== undefined) query = query.where((eb) => eb.or([eb("at", "<", after[0]), eb.and([eb("at", "=", after[0]), eb("audit_id", ">", after[1])])]));
  return pageOfRows(await query.execute(), page.limit, (row): AuditEntry => ({
    auditId: row.audit_id, atMs: row.at, tenant: row.tenant, principalId: row.principal_id, keyId: row.key_id, action: row.action, target: row.target,
    outcome: row.outcome, reason: row.reason, detail: JSON.parse(row.detail) as Record<string, unknown>, ip: row.ip,
  }), (row) => [row.at, row.audit_id]);
}
