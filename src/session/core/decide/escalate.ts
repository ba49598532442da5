/** Owns: turning a run that cannot go on by itself into a question to people (DESIGN 3, failure of a tool). */
import type { ApprovalRecord, ChainStep, EscalationReason } from "../../../contracts/decisions.js";
import { approvalIdOf, argsDigest } from "../../../contracts/ids.js";
import type { DecisionKind } from "../../../contracts/tools.js";
import { MAX_QUESTION } from "../limits.js";
import type { Run, ToolCall } from "../state.js";
import { clip, given, type Draft } from "./draft.js";

const ANSWERS: Record<Exclude<EscalationReason, "approval_expired">, DecisionKind[]> = {
  budget: ["raise", "give_up"],
  step_limit: ["raise", "give_up"],
  reflection_limit: ["retry", "give_up"],
  model_lost: ["retry", "give_up"],
  model_failed: ["retry", "give_up"],
  critical_tool_failed: ["retry", "give_up"],
  outcome_unknown: ["retry", "respond", "give_up"],
};

/** About the run as a whole. */
export function escalateRun(draft: Draft, run: Run, reason: Exclude<EscalationReason, "approval_expired">, message: string): void {
  const question = clip(message, MAX_QUESTION);
  const record = { ...base(draft, run, reason, question), approvalId: approvalIdOf(run.runId, run.escalations + 1), argsDigest: argsDigest(question), allowed: ANSWERS[reason] };
  draft.emit({ type: "Escalated", runId: run.runId, reason, message: question, record });
}

/** About one call: the rest of the answer goes on meanwhile. */
export function escalateCall(draft: Draft, run: Run, call: ToolCall, about: { reason: "critical_tool_failed" | "outcome_unknown"; message: string }): void {
  const question = clip(about.message, MAX_QUESTION);
  const record: ApprovalRecord = {
    ...base(draft, run, about.reason, question), approvalId: approvalIdOf(call.callId, call.openings + 1), callId: call.callId, tool: call.tool, argsRev: call.argsRev,
    argsDigest: argsDigest(question), allowed: ANSWERS[about.reason],
  };
  draft.emit({ type: "Escalated", runId: run.runId, reason: about.reason, message: question, record });
}

/** An approval nobody decided in time: the same arguments are shown to the same people and to administrators (I5). */
export function escalateExpired(draft: Draft, run: Run, call: ToolCall, expired: ApprovalRecord): void {
  const question = clip(`nobody decided in time: ${expired.question}`, MAX_QUESTION);
  const roles = expired.approvers.roles.length === 0 ? [] : [...new Set([...expired.approvers.roles, "admin"])];
  const record: ApprovalRecord = {
    ...base(draft, run, "approval_expired", question), approvalId: approvalIdOf(call.callId, call.openings + 1), callId: call.callId, tool: call.tool,
    argsRev: call.argsRev, argsDigest: call.argsDigest, risk: expired.risk, rule: expired.rule, policyVersion: expired.policyVersion,
    approvers: { ...expired.approvers, roles }, chain: [...(expired.chain ?? []).slice(0, expired.chainDone ?? 0), ADMIN_TOO(draft.atMs)], chainDone: (expired.chainDone ?? 0) + 1,
    ...given("consentForMs", expired.consentForMs), allowed: [...new Set<DecisionKind>([...expired.allowed, "reject", "give_up"])],
  };
  draft.emit({ type: "Escalated", runId: run.runId, reason: "approval_expired", message: question, record });
}

/** Also where groups are asked for, which an administrator need not be in. */
const ADMIN_TOO = (atMs: number): ChainStep => ({ atMs, to: { roles: ["admin"], groups: [] } });

function base(draft: Draft, run: Run, reason: EscalationReason, question: string): Omit<ApprovalRecord, "approvalId" | "argsDigest" | "allowed"> {
  return {
    version: 1, kind: "escalation", escalation: reason, runId: run.runId, risk: "high", rule: `escalation.${reason}`, policyVersion: "",
    question, approvers: { roles: ["approver", "admin"], quorum: 1, excludeRequester: false }, requestedBy: run.requestedBy,
    openedAtMs: draft.atMs, ...given("expiresAtMs", run.expiresAtMs), onExpiry: "keep", signatures: [],
  };
}
