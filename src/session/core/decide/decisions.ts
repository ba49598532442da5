/** Owns: what a valid decision of a person does, and the record of those that do nothing (I10). */
import type { ApprovalRecord } from "../../../contracts/decisions.js";
import type { CommandOf, Decision } from "../command.js";
import type { SessionState } from "../state.js";
import { clip, Draft, given, plain, type Objection } from "./draft.js";
import { CONSENT_MS, MAX_MESSAGE } from "../limits.js";
import { grantAllowance } from "./allowances.js";
import { endRun, recordResult } from "./ending.js";
import { advance, dispatchCall } from "./progress.js";
import { changedTool, objectionTo, ruleOf } from "./verdict.js";

type Decide = CommandOf<"Decide">;

export function decideApproval(state: SessionState, command: Decide): Decision {
  const draft = new Draft(state, command);
  const { claims } = command;
  if (draft.session.recentDecisions.some((line) => line.decisionId === claims.jti)) return draft.refuse("duplicate", `decision ${claims.jti} was received before`);
  const objection = objectionTo(draft.session, command);
  const record = draft.session.approvals.find((open) => open.approvalId === claims.approvalId);
  if (objection !== undefined || record === undefined) return refused(draft, command, objection ?? ["approval_not_found", `this session has no approval ${claims.approvalId}`]);
  const toolDigest = changedTool(record, command);
  if (toolDigest !== undefined) {
    draft.emit({ type: "ApprovalAskedAgain", approvalId: record.approvalId, toolDigest });
    return refused(draft, command, ["version_mismatch", `tool ${record.tool ?? ""} has changed since this was asked; it is asked again as version ${String(record.version + 1)}`]);
  }
  const final = recordDecision(draft, record, command);
  if (final) carryOut(draft, record, command);
  return draft.accept();
}

function refused(draft: Draft, { claims, judged }: Decide, [code, message]: Objection): Decision {
  draft.emit({
    type: "DecisionRefused", approvalId: claims.approvalId, decisionId: claims.jti, code,
    // Without a good signature nobody has been authenticated: the name would be hearsay.
    ...given("principal", !judged.ok && judged.code === "bad_signature" ? undefined : claims.principal), via: claims.via,
    message: clip(message, MAX_MESSAGE),
  });
  return draft.refuse(code, message);
}

/** Records the decision; true when it settles the approval, false when more signatures are wanted. */
function recordDecision(draft: Draft, record: ApprovalRecord, command: Decide): boolean {
  const { claims, judged } = command;
  const modified = claims.kind === "modify" && judged.ok ? judged.modified : undefined;
  const current = claims.kind === "approve" && judged.ok ? judged.current?.verdict : undefined;
  const judgedBy = modified?.verdict ?? (current?.policyVersion === record.policyVersion ? undefined : current);
  const stricter = judgedBy?.verdict === "ask" ? judgedBy.approvers : undefined;
  const approvers = stricter === undefined ? undefined : { ...ruleOf(stricter), quorum: Math.max(stricter.quorum, record.approvers.quorum) };
  const policyVersion = judgedBy?.policyVersion === record.policyVersion ? undefined : judgedBy?.policyVersion;
  const quorum = approvers?.quorum ?? record.approvers.quorum;
  const counted = claims.kind === "modify" || policyVersion !== undefined ? 1 : record.signatures.length + 1;
  const final = (claims.kind !== "approve" && claims.kind !== "modify") || counted >= quorum;
  draft.emit({
    type: "DecisionRecorded", approvalId: record.approvalId, decisionId: claims.jti, kind: claims.kind, principal: claims.principal, via: claims.via, final,
    ...given("args", modified?.args), ...given("argsDigest", modified?.argsDigest), ...given("text", claims.text), ...given("raise", claims.kind === "raise" ? claims.raise : undefined),
    ...given("approvers", final ? undefined : approvers), ...given("policyVersion", policyVersion),
    ...given("validUntilMs", final && record.callId !== undefined && GOES_OUT.has(claims.kind) ? draft.atMs + (judgedBy?.consentForMs ?? record.consentForMs ?? CONSENT_MS) : undefined),
  });
  return final;
}

const GOES_OUT = new Set<string>(["approve", "modify", "retry"]);

function carryOut(draft: Draft, record: ApprovalRecord, command: Decide): void {
  const { claims } = command;
  const { run } = draft;
  if (run === undefined) return;
  if (claims.kind === "give_up") {
    const text = clip(claims.text ?? record.question, MAX_MESSAGE);
    endRun(draft, { outcome: "escalated", code: record.escalation ?? "given_up", text });
    return;
  }
  if (claims.kind === "raise") draft.emit({ type: "LimitsRaised", runId: run.runId, ...given("budgetUsd", claims.raise?.budgetUsd), ...given("maxSteps", claims.raise?.maxSteps) });
  grantAllowance(draft, record, command);
  if (record.callId !== undefined) settleCall(draft, record.callId, command);
  advance(draft, command.reserveUsd);
}

function settleCall(draft: Draft, callId: string, command: Decide): void {
  const { claims } = command;
  const call = draft.call(callId);
  if (call === undefined) return;
  switch (claims.kind) {
    case "approve": case "modify": { dispatchCall(draft, callId, 1); return; }
    case "retry": { dispatchCall(draft, callId, ("try" in call.life ? call.life.try : 0) + 1); return; }
    case "reject": { recordResult(draft, call, "rejected", plain(clip(`rejected by a person${claims.text === undefined ? "" : `: ${claims.text}`}`, MAX_MESSAGE))); return; }
    case "respond": { recordResult(draft, call, "responded", plain(claims.text ?? "")); return; }
    case "raise": case "give_up": return;
  }
}

/** The console has shown the approval: its row needs no further publication. */
export function acknowledgeApproval(state: SessionState, command: CommandOf<"AcknowledgeApproval">): Decision {
  const draft = new Draft(state, command);
  const open = draft.session.approvals.some((record) => record.approvalId === command.approvalId && record.version === command.version);
  const waiting = draft.session.outbox.some((row) => row.kind === "approval_pending" && row.subject === command.approvalId);
  if (open && waiting) draft.emit({ type: "ApprovalReceived", approvalId: command.approvalId });
  return draft.accept();
}
