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
  const told = permitted(noted(parts, event.approvalId, event.decisionId, event.final ? event.kind : "signed", entry), event, record, entry);
  if (!event.final) return signed(told, event, record, entry);
  const again = event.kind === "retry" && record.callId === undefined;
  return withRun(closed(told, record.approvalId), () => (again ? { reflections: 0, lostAttempts: 0, failedAttempts: 0 } : {}));
}

/** What the decision makes of the call: its arguments, and what lets it run. */
function permitted(parts: Parts, event: SessionEventOf<"DecisionRecorded">, record: ApprovalRecord, entry: EntryAt): Parts {
  const { argsDigest, kind, final, validUntilMs } = event;
  if (record.callId === undefined) return parts;
  const until = validUntilMs === undefined ? {} : { validUntilMs };
  return withCall(parts, record.callId, (call) => {
    const changed = kind === "modify" && argsDigest !== undefined ? { argsDigest, argsRev: entry.rev } : {};
    if (final && (kind === "approve" || kind === "modify")) return { ...changed, permit: { policyVersion: event.policyVersion ?? record.policyVersion, argsDigest: argsDigest ?? call.argsDigest, ...until } };
    return final && kind === "retry" && call.permit !== undefined ? { permit: { ...call.permit, ...until } } : changed;
  });
}

/** One signature of a quorum. New arguments are a new question: version up, earlier signatures void, shown again. Under another policy earlier ones are void too. */
function signed(parts: Parts, event: SessionEventOf<"DecisionRecorded">, record: ApprovalRecord, entry: EntryAt): Parts {
  const signature = { principalId: event.principal.id, decisionId: event.decisionId, atMs: entry.atMs };
  const newDigest = event.kind === "modify" ? event.argsDigest : undefined;
  const changed = newDigest !== undefined;
  const next: ApprovalRecord = {
    ...record, approvers: event.approvers ?? record.approvers, policyVersion: event.policyVersion ?? record.policyVersion,
    signatures: changed || event.policyVersion !== undefined ? [signature] : [...record.signatures, signature],
    ...(changed ? { version: record.version + 1, argsDigest: newDigest, argsRev: entry.rev } : {}),
  };
  const listed = withCommon(parts, { approvals: parts.common.approvals.map((open) => (open.approvalId === record.approvalId ? next : open)) });
  return changed ? publish(dropApprovalRows(listed, record.approvalId), next, entry) : listed;
}

function askedAgain(parts: Parts, { approvalId, toolDigest }: SessionEventOf<"ApprovalAskedAgain">, entry: EntryAt): Parts {
  const record = parts.common.approvals.find((open) => open.approvalId === approvalId);
  if (record === undefined) return parts;
  const next: ApprovalRecord = { ...record, version: record.version + 1, toolDigest, signatures: [] };
  return publish(dropApprovalRows(patched(parts, approvalId, () => next), approvalId), next, entry);
}

function patched(parts: Parts, approvalId: string, patch: (record: ApprovalRecord) => ApprovalRecord): Parts {
  return withCommon(parts, { approvals: parts.common.approvals.map((record) => (record.approvalId === approvalId ? patch(record) : record)) });
}

function commanded(parts: Parts, key: string): Parts {
  return withCommon(parts, { recentCommands: ring(parts.common.recentCommands, key, RING) });
}

function assigned(parts: Parts, { approvalId, key, to }: SessionEventOf<"ApprovalAssigned">): Parts {
  return patched(commanded(parts, key), approvalId, ({ assignedTo: _before, ...record }) => ({ ...record, ...(to === undefined ? {} : { assignedTo: to }) }));
}

function snoozed(parts: Parts, { approvalId, key, untilMs }: SessionEventOf<"ApprovalSnoozed">): Parts {
  return patched(commanded(parts, key), approvalId, ({ snoozedUntilMs: _before, ...record }) => ({ ...record, ...(untilMs === undefined ? {} : { snoozedUntilMs: untilMs }) }));
}

export const approvalAppliers: AppliersOf<
  "ApprovalAskedAgain" | "ApprovalAssigned" | "ApprovalSnoozed" | "ApprovalReminded" | "ApprovalOpened" | "Escalated" | "ApprovalReceived" | "DecisionRecorded" | "DecisionRefused" | "ApprovalExpired" | "ApprovalWithdrawn"
> = {
  ApprovalOpened: (parts, event, entry) => opened(parts, event.record, entry),
  Escalated: (parts, event, entry) => opened(withModel(parts, undefined), event.record, entry),
  ApprovalReminded: (parts, { approvalId, step }) => patched(parts, approvalId, (record) => ({ ...record, chainDone: step + 1 })),
  ApprovalAskedAgain: askedAgain,
  ApprovalAssigned: assigned,
  ApprovalSnoozed: snoozed,
  ApprovalReceived: (parts, event) => dropApprovalRows(parts, event.approvalId),
  DecisionRecorded: decided,
  DecisionRefused: (parts, event, entry) => noted(parts, event.approvalId, event.decisionId, event.code, entry),
  ApprovalExpired: (parts, event, entry) => noted(closed(parts, event.approvalId), event.approvalId, "", "expired", entry),
  ApprovalWithdrawn: (parts, event, entry) => noted(closed(parts, event.approvalId), event.approvalId, "", "withdrawn", entry),
};
