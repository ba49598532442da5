/** Owns: whether a person's decision counts (I4, I10). Each check has its own code; the first that fails is recorded. */
import type { ApprovalRecord, DecisionClaims } from "../../../contracts/decisions.js";
import type { Principal } from "../../../contracts/cloudevent.js";
import type { ProblemCode } from "../../../contracts/problems.js";
import type { CommandOf } from "../command.js";
import { runOf } from "../parts.js";
import type { OpenSession } from "../state.js";
import { isExpired } from "./progress.js";

export type Objection = readonly [code: ProblemCode, message: string];
type Modified = NonNullable<Extract<CommandOf<"Decide">["judged"], { ok: true }>["modified"]>;

export function objectionTo(state: OpenSession, command: CommandOf<"Decide">): Objection | undefined {
  const { claims, judged } = command;
  if (!judged.ok) return [judged.code, "the decision was not accepted by the session host"];
  const record = state.approvals.find((open) => open.approvalId === claims.approvalId);
  if (record === undefined) return closedObjection(state, claims.approvalId);
  return staleObjection(record, command) ?? personObjection(record.approvers, record.requestedBy, claims.principal)
    ?? runObjection(state, command.atMs) ?? signatureObjection(record, claims) ?? contentObjection(record, claims, judged.modified);
}

function closedObjection(state: OpenSession, approvalId: string): Objection {
  const verdicts = state.recentDecisions.filter((line) => line.approvalId === approvalId).map((line) => line.verdict);
  if (verdicts.includes("expired")) return ["approval_expired", `approval ${approvalId} has expired`];
  if (verdicts.includes("withdrawn")) return ["approval_withdrawn", `approval ${approvalId} was withdrawn`];
  if (verdicts.some((verdict) => FINAL.has(verdict))) return ["already_decided", `approval ${approvalId} has been decided`];
  return ["approval_not_found", `this session has no approval ${approvalId}`];
}

const FINAL = new Set<string>(["approve", "modify", "reject", "respond", "raise", "retry", "give_up"]);

function staleObjection(record: ApprovalRecord, command: CommandOf<"Decide">): Objection | undefined {
  const { claims } = command;
  if (claims.version !== record.version) return ["version_mismatch", `the decision is for version ${String(claims.version)}; the approval is at version ${String(record.version)}`];
  if (claims.argsDigest !== record.argsDigest) return ["digest_mismatch", `the decision is for ${claims.argsDigest}; asked is ${record.argsDigest}`];
  if (record.onExpiry !== "keep" && record.expiresAtMs !== undefined && record.expiresAtMs <= command.atMs) return ["approval_expired", `approval ${record.approvalId} has expired`];
  if (!record.allowed.includes(claims.kind)) return ["decision_not_allowed", `${claims.kind} is not allowed here; allowed: ${record.allowed.join(", ")}`];
  return undefined;
}

function personObjection(approvers: { readonly roles: readonly string[]; readonly excludeRequester: boolean }, requestedBy: string, principal: Principal): Objection | undefined {
  const roles = approvers.roles.length === 0 ? ["approver", "admin"] : approvers.roles;
  if (principal.class !== "person") return ["not_an_approver", `only a person may decide; this principal is a ${principal.class}`];
  if (!principal.roles.some((role) => roles.includes(role))) return ["not_an_approver", `asked is one of the roles ${roles.join(", ")}; ${principal.id} has ${principal.roles.join(", ") || "none"}`];
  if (approvers.excludeRequester && principal.id === requestedBy) return ["own_request", `${principal.id} asked for this and may not decide it`];
  return undefined;
}

function runObjection(state: OpenSession, atMs: number): Objection | undefined {
  const run = runOf(state);
  return run === undefined || isExpired(run, atMs) ? ["approval_expired", "the run's time has passed"] : undefined;
}

function signatureObjection(record: ApprovalRecord, claims: DecisionClaims): Objection | undefined {
  const signed = record.signatures.some((signature) => signature.principalId === claims.principal.id);
  return signed && claims.kind === "approve" ? ["already_decided", `${claims.principal.id} has already signed`] : undefined;
}

function contentObjection(record: ApprovalRecord, claims: DecisionClaims, modified: Modified | undefined): Objection | undefined {
  switch (claims.kind) {
    case "modify": return modifyObjection(record, claims.principal, modified);
    case "respond": return (claims.text ?? "") === "" ? ["arguments_invalid", "respond needs a text: it becomes the call's result"] : undefined;
    case "raise": return claims.raise?.budgetUsd === undefined && claims.raise?.maxSteps === undefined ? ["arguments_invalid", "raise needs a new budget or step limit"] : undefined;
    case "approve": case "reject": case "retry": case "give_up": return undefined;
  }
}

/** New arguments stand under policy again: whoever may not approve them may not bring them in by `modify`. */
function modifyObjection(record: ApprovalRecord, principal: Principal, modified: Modified | undefined): Objection | undefined {
  if (modified === undefined) return ["arguments_invalid", "modify needs new arguments"];
  const { verdict } = modified;
  if (verdict.verdict === "deny") return ["denied_by_policy", `policy denies the new arguments: ${verdict.reason}`];
  return verdict.verdict === "ask" ? personObjection(verdict.approvers, record.requestedBy, principal) : undefined;
}
