/** Owns: whether a person's decision counts (I4, I10). Each check has its own code; the first that fails is recorded. */
import type { ApprovalRecord, ApproverRule, DecisionClaims } from "../../../contracts/decisions.js";
import { plural } from "../../../contracts/plural.js";
import type { Principal } from "../../../contracts/cloudevent.js";
import type { CommandOf, Verdict } from "../command.js";
import { requestersOf, runOf } from "../parts.js";
import type { OpenSession, Run } from "../state.js";
import { rememberObjection } from "./allowances.js";
import type { Objection } from "./draft.js";
import { isExpired } from "./progress.js";

type Modified = NonNullable<Extract<CommandOf<"Decide">["judged"], { ok: true }>["modified"]>;

export function objectionTo(state: OpenSession, command: CommandOf<"Decide">): Objection | undefined {
  const { claims, judged } = command;
  if (!judged.ok) return [judged.code, judged.message ?? "the decision was not accepted by the session host"];
  const record = state.approvals.find((open) => open.approvalId === claims.approvalId);
  if (record === undefined) return closedObjection(state, claims.approvalId);
  const run = runOf(state);
  const asked: Asked = { record, by: claims.principal, requesters: run === undefined ? [record.requestedBy] : requestersOf(run) };
  return staleObjection(record, command) ?? personObjection(record.approvers, asked, stepsTaken(record))
    ?? runObjection(run, command.atMs) ?? signatureObjection(record, claims) ?? contentObjection(state, asked, command) ?? policyObjection(asked, command);
}

/** What is asked about has changed: the tool is another than the one that was shown. Only a valid decision finds out; a refusal of the call needs no tool. */
export function changedTool(record: ApprovalRecord, { claims, judged }: CommandOf<"Decide">): string | undefined {
  const now = judged.ok && (claims.kind === "approve" || claims.kind === "modify") ? judged.toolDigest : undefined;
  return now === undefined || record.toolDigest === undefined || now === record.toolDigest ? undefined : now;
}

export function ruleOf(approvers: Verdict["approvers"]): ApproverRule {
  const { roles, groups, quorum, excludeRequester } = approvers;
  return { roles: [...roles], ...(groups === undefined || groups.length === 0 ? {} : { groups: [...groups] }), quorum, excludeRequester };
}

interface Asked { readonly record: ApprovalRecord; readonly by: Principal; readonly requesters: readonly string[] }
interface People { readonly roles: readonly string[]; readonly groups?: readonly string[] | undefined }

/** Who may decide besides, since steps of the chain were due. */
function stepsTaken({ chain, chainDone }: ApprovalRecord): People[] {
  return (chain ?? []).slice(0, chainDone ?? 0).flatMap(({ to }) => to ?? []);
}

export function closedObjection(state: OpenSession, approvalId: string): Objection {
  const lines = state.recentDecisions.filter((line) => line.approvalId === approvalId);
  const verdicts = lines.map((line) => line.verdict);
  if (verdicts.includes("expired")) return ["approval_expired", `approval ${approvalId} has expired`];
  if (verdicts.includes("withdrawn")) return ["approval_withdrawn", `approval ${approvalId} was withdrawn`];
  const final = lines.find(({ verdict }) => FINAL.has(verdict));
  if (final !== undefined) return ["already_decided", `approval ${approvalId} has been decided: ${final.verdict}, in journal entry ${String(final.rev)} (docket approval show ${approvalId} says by whom)`];
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

function personObjection(approvers: Verdict["approvers"], { by, requesters }: Asked, besides: readonly People[]): Objection | undefined {
  if (by.class !== "person") return ["not_an_approver", `only a person may decide; this principal is a ${by.class}`];
  const lacks = lacking(approvers, by);
  if (lacks !== undefined && !besides.some((people) => lacking(people, by) === undefined)) return ["not_an_approver", lacks];
  if (approvers.excludeRequester && requesters.includes(by.id)) return ["own_request", `${by.id} asked for this and may not decide it`];
  return undefined;
}

/** What a person lacks to be one of these. */
function lacking(people: People, { id, roles: has, groups: isIn = [] }: Principal): string | undefined {
  const roles = people.roles.length === 0 ? ["approver", "admin"] : people.roles;
  if (!has.some((role) => roles.includes(role))) return `asked is one of the roles ${roles.join(", ")}; ${id} has ${has.join(", ") || "none"}`;
  const groups = people.groups ?? [];
  return groups.length === 0 || isIn.some((group) => groups.includes(group)) ? undefined : `asked is one of the groups ${groups.join(", ")}; ${id} is in ${isIn.join(", ") || "none"}`;
}

function runObjection(run: Run | undefined, atMs: number): Objection | undefined {
  return run === undefined || isExpired(run, atMs) ? ["approval_expired", "the run's time has passed"] : undefined;
}

function signatureObjection(record: ApprovalRecord, claims: DecisionClaims): Objection | undefined {
  const signed = record.signatures.some((signature) => signature.principalId === claims.principal.id);
  if (!signed || claims.kind !== "approve") return undefined;
  return ["already_decided", `you have already signed (${claims.principal.id}); ${plural(Math.max(1, record.approvers.quorum - record.signatures.length), "more person has", "more people have")} to, and nobody counts twice`];
}

function contentObjection(state: OpenSession, asked: Asked, { claims, judged, atMs }: CommandOf<"Decide">): Objection | undefined {
  const { record } = asked;
  if (claims.remember !== undefined) {
    const objection: Objection | undefined = claims.kind === "approve" ? rememberObjection(state, record, { remember: claims.remember, current: judged.ok ? judged.current : undefined, atMs }) : ["arguments_invalid", `only approve can be remembered, not ${claims.kind}`];
    if (objection !== undefined) return objection;
  }
  switch (claims.kind) {
    case "modify": return modifyObjection(asked, judged.ok ? judged.modified : undefined);
    case "respond": return (claims.text ?? "") === "" ? ["arguments_invalid", "respond needs a text: it becomes the call's result"] : undefined;
    case "raise": return raiseObjection(runOf(state), record, claims.raise ?? {});
    case "approve": case "reject": case "retry": case "give_up": return undefined;
  }
}

/** New arguments stand under policy again: whoever may not approve them may not bring them in by `modify`. */
function modifyObjection(asked: Asked, modified: Modified | undefined): Objection | undefined {
  if (modified === undefined) return ["arguments_invalid", "modify needs new arguments"];
  const { verdict } = modified;
  if (verdict.verdict === "deny") return ["denied_by_policy", `policy denies the new arguments: ${verdict.reason}`];
  return verdict.verdict === "ask" ? personObjection(verdict.approvers, asked, stepsUnder(asked.record, verdict)) : undefined;
}

/** Policy has changed since the question was put: what was asked for then and what is asked for now must both be met. A refusal never needs that. */
function policyObjection(asked: Asked, { claims, judged }: CommandOf<"Decide">): Objection | undefined {
  const verdict = judged.ok && claims.kind === "approve" ? judged.current?.verdict : undefined;
  if (verdict === undefined || verdict.policyVersion === asked.record.policyVersion) return undefined;
  if (verdict.verdict === "deny") return ["denied_by_policy", `policy ${verdict.policyVersion} denies the call: ${verdict.reason}`];
  if (verdict.verdict === "allow") return undefined;
  if (!verdict.allowed.includes("approve")) return ["decision_not_allowed", `policy ${verdict.policyVersion} does not let it be approved; allowed: ${verdict.allowed.join(", ")}`];
  return personObjection(verdict.approvers, asked, stepsUnder(asked.record, verdict));
}

/** Steps of the chain count for the rules that they belong to. */
function stepsUnder(record: ApprovalRecord, verdict: Verdict): People[] { return verdict.rule === record.rule && verdict.policyVersion === record.policyVersion ? stepsTaken(record) : []; }

/** A raise that raises nothing would ask the same question again at once. */
function raiseObjection(run: Run | undefined, { escalation }: ApprovalRecord, { budgetUsd, maxSteps }: NonNullable<DecisionClaims["raise"]>): Objection | undefined {
  if (budgetUsd === undefined && maxSteps === undefined) return ["arguments_invalid", "raise needs a new budget or step limit"];
  if (run === undefined) return undefined;
  if (escalation === "budget" && (budgetUsd ?? 0) <= run.budgetUsd) return ["arguments_invalid", `the budget is ${String(run.budgetUsd)} USD; raise it to more`];
  return escalation === "step_limit" && (maxSteps ?? 0) <= run.maxSteps ? ["arguments_invalid", `the limit is ${String(run.maxSteps)} steps; raise it to more`] : undefined;
}
