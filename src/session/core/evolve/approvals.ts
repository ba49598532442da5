/** Owns: how questions to people and their answers fold into the state. Only open approvals are kept; closed ones leave a line in the ring. */
import type { ApprovalRecord } from "../../../contracts/decisions.js";
import type { SessionEventOf } from "../../../contracts/journal.js";
import { RING } from "../limits.js";
import { addRow, dropRows, ring, withCall, withCommon, withModel, withRun, type EntryAt, type Parts } from "../parts.js";
import type { CallState, ToolCall } from "../state.js";
import type { AppliersOf } from "./applier.js";

function opened(parts: Parts, record: ApprovalRecord, entry: EntryAt): Parts {
  const listed = withCommon(parts, { approvals: [...parts.common.approvals, record] });
  const published = publish(listed, record, entry);
  if (record.callId === undefined) return withRun(published, (run) => ({ escalations: run.escalations + 1 }));
  return withCall(published, record.callId, (call) => ({ openings: call.openings + 1, life: waitingFor(record, call) }));
}

function waitingFor(record: ApprovalRecord, call: ToolCall): CallState {
  const { approvalId } = record;
  const attempt = "try" in call.life ? call.life.try : 1;
  if (record.escalation === "outcome_unknown") return { phase: "unknown", try: attempt, approvalId };
  if (record.escalation === "critical_tool_failed") return { phase: "escalated", try: attempt, approvalId };
  return { phase: "awaiting_approval", approvalId };
}

function publish(parts: Parts, record: ApprovalRecord, entry: EntryAt): Parts {
  return addRow(parts, { rowId: `approval:${record.approvalId}:${String(record.version)}`, kind: "approval_pending", subject: record.approvalId }, entry);
}

function dropApprovalRows(parts: Parts, approvalId: string): Parts {
  return dropRows(parts, (row) => row.kind === "approval_pending" && row.subject === approvalId);
}

function noted(parts: Parts, approvalId: string, decisionId: string, verdict: string, entry: EntryAt): Parts {
  return withCommon(parts, { recentDecisions: ring(parts.common.recentDecisions, { approvalId, decisionId, verdict, rev: entry.rev }, RING) });
}

function closed(parts: Parts, approvalId: string): Parts {
  return withCommon(dropApprovalRows(parts, approvalId), { approvals: parts.common.approvals.filter((record) => record.approvalId !== approvalId) });
}

function decided(parts: Parts, event: SessionEventOf<"DecisionRecorded">, entry: EntryAt): Parts {
  const record = parts.common.approvals.find((open) => open.approvalId === event.approvalId);
  if (record === undefined) return parts;
  const told = modified(noted(parts, event.approvalId, event.decisionId, event.final ? event.kind : "signed", entry), event, record, entry);
  if (!event.final) return signed(told, event, record, entry);
  const again = event.kind === "retry" && record.callId === undefined;
  return withRun(closed(told, record.approvalId), () => (again ? { reflections: 0, lostAttempts: 0, failedAttempts: 0 } : {}));
}

function modified(parts: Parts, event: SessionEventOf<"DecisionRecorded">, record: ApprovalRecord, entry: EntryAt): Parts {
  const { argsDigest } = event;
  if (event.kind !== "modify" || argsDigest === undefined || record.callId === undefined) return parts;
  return withCall(parts, record.callId, () => ({ argsDigest, argsRev: entry.rev }));
}

/** One signature of a quorum. New arguments are a new question: version up, earlier signatures void, shown again. */
function signed(parts: Parts, event: SessionEventOf<"DecisionRecorded">, record: ApprovalRecord, entry: EntryAt): Parts {
  const signature = { principalId: event.principal.id, decisionId: event.decisionId, atMs: entry.atMs };
  const newDigest = event.kind === "modify" ? event.argsDigest : undefined;
  const changed = newDigest !== undefined;
  const next: ApprovalRecord = {
    ...record, approvers: event.approvers ?? record.approvers, signatures: changed ? [signature] : [...record.signatures, signature],
    ...(changed ? { version: record.version + 1, argsDigest: newDigest, argsRev: entry.rev } : {}),
  };
  const listed = withCommon(parts, { approvals: parts.common.approvals.map((open) => (open.approvalId === record.approvalId ? next : open)) });
  return changed ? publish(dropApprovalRows(listed, record.approvalId), next, entry) : listed;
}

export const approvalAppliers: AppliersOf<
  "ApprovalOpened" | "Escalated" | "ApprovalReceived" | "DecisionRecorded" | "DecisionRefused" | "ApprovalExpired" | "ApprovalWithdrawn"
> = {
  ApprovalOpened: (parts, event, entry) => opened(parts, event.record, entry),
  Escalated: (parts, event, entry) => opened(withModel(parts, undefined), event.record, entry),
  ApprovalReceived: (parts, event) => dropApprovalRows(parts, event.approvalId),
  DecisionRecorded: decided,
  DecisionRefused: (parts, event, entry) => noted(parts, event.approvalId, event.decisionId, event.code, entry),
  ApprovalExpired: (parts, event, entry) => noted(closed(parts, event.approvalId), event.approvalId, "", "expired", entry),
  ApprovalWithdrawn: (parts, event, entry) => noted(closed(parts, event.approvalId), event.approvalId, "", "withdrawn", entry),
};
