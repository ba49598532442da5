/**
 * Owns: "allow this tool for this session" (I4). Granted only by a decision, never for risk high and never where more than one
 * signature is wanted; asked at each use whether it still holds; ended by time, number, another policy, or a person.
 */
import { canonicalText, parseLossless } from "../../../contracts/json.js";
import { allowanceIdOf } from "../../../contracts/ids.js";
import type { ApprovalRecord, Remember, SessionAllowance } from "../../../contracts/decisions.js";
import type { CommandOf, Decision, JudgedCall } from "../command.js";
import { MAX_ALLOWANCES } from "../limits.js";
import { requestersOf } from "../parts.js";
import type { Run, SessionCommon, SessionState } from "../state.js";
import { Draft, given, type Objection } from "./draft.js";

type Judged = Extract<JudgedCall, { ok: true }>;
/** The call as policy and schema see it now. */
type Current = Pick<Judged, "args" | "verdict">;

/** Why a decision may not be remembered; undefined where it may. */
export function rememberObjection(state: Pick<SessionCommon, "allowances">, record: ApprovalRecord, command: { readonly remember: Remember; readonly current: Current | undefined; readonly atMs: number }): Objection | undefined {
  const { remember, current, atMs } = command;
  const refused = (why: string): Objection => ["decision_not_allowed", `${record.tool ?? "this"} cannot be allowed for the session: ${why}`];
  if (record.kind !== "tool_call" || record.tool === undefined) return refused("only an approval of a tool call can");
  if (record.risk === "high" || current?.verdict.risk === "high") return refused("its risk is high, and that is decided call by call");
  if (record.approvers.quorum > 1 || (current?.verdict.approvers.quorum ?? 1) > 1) return refused("more than one person has to approve each call");
  if (record.allowSession !== true || current?.verdict.allowSession === false) return refused("policy does not let it");
  const { policyVersion } = current?.verdict ?? record;
  const holding = (state.allowances ?? []).filter((one) => endOf(one, atMs, policyVersion) === undefined);
  if (holding.length >= MAX_ALLOWANCES) return refused(`the session has ${String(MAX_ALLOWANCES)} allowances; revoke one first`);
  if (remember.where === undefined) return undefined;
  return current !== undefined && isWithin(remember.where, current.args) ? undefined : ["arguments_invalid", "the arguments that the allowance is limited to are not those of this call"];
}

export function grantAllowance(draft: Draft, record: ApprovalRecord, command: CommandOf<"Decide">): void {
  const { claims, judged } = command;
  const { remember } = claims;
  if (remember === undefined || record.tool === undefined) return;
  const verdict = judged.ok ? judged.current?.verdict : undefined;
  const { policyVersion } = verdict ?? record;
  for (const one of draft.session.allowances ?? []) endWhereOver(draft, one, policyVersion);
  draft.emit({ type: "AllowanceGranted", allowance: {
    allowanceId: allowanceIdOf(claims.jti), tool: record.tool, approvalId: record.approvalId, ...given("where", remember.where === undefined ? undefined : canonicalText(parseLossless(remember.where))),
    rule: verdict?.rule ?? record.rule, policyVersion, grantedBy: claims.principal.id, grantedAtMs: draft.atMs,
    expiresAtMs: draft.atMs + remember.forMs, ...given("usesLeft", remember.uses),
  } });
}

/** The allowance that lets this call run without asking. Those of the tool that have ended are noted on the way. */
export function allowanceFor(draft: Draft, run: Run, call: Judged): string | undefined {
  const { verdict } = call;
  for (const one of (draft.session.allowances ?? []).filter(({ tool }) => tool === call.tool)) {
    if (endWhereOver(draft, one, verdict.policyVersion)) continue;
    if (covers(one, run, call)) return one.allowanceId;
  }
  return undefined;
}

function endWhereOver(draft: Draft, one: SessionAllowance, policyVersion: string): boolean {
  const over = endOf(one, draft.atMs, policyVersion);
  if (over !== undefined) draft.emit({ type: "AllowanceEnded", allowanceId: one.allowanceId, reason: over });
  return over !== undefined;
}

function endOf(one: SessionAllowance, atMs: number, policyVersion: string): "expired" | "used_up" | "policy_changed" | undefined {
  if (one.expiresAtMs <= atMs) return "expired";
  if (one.usesLeft !== undefined && one.usesLeft <= 0) return "used_up";
  return one.policyVersion === policyVersion ? undefined : "policy_changed";
}

function covers(one: SessionAllowance, run: Run, { args, verdict }: Judged): boolean {
  if (verdict.risk === "high" || verdict.approvers.quorum > 1 || verdict.allowSession === false || one.rule !== verdict.rule) return false;
  if (verdict.approvers.excludeRequester && requestersOf(run).includes(one.grantedBy)) return false;
  return one.where === undefined || isWithin(one.where, args);
}

/** Every argument that `where` names is there, digit by digit the same. */
function isWithin(where: string, args: string): boolean {
  try {
    const [wanted, given] = [parseLossless(where), parseLossless(args)];
    if (!isObject(wanted) || !isObject(given) || Object.keys(wanted).length === 0) return false;
    return Object.entries(wanted).every(([key, value]) => Object.hasOwn(given, key) && canonicalText(given[key]) === canonicalText(value));
  } catch {
    return false;
  }
}

function isObject(value: unknown): value is Record<string, unknown> { return value !== null && typeof value === "object" && !Array.isArray(value); }

export function revokeAllowance(state: SessionState, command: CommandOf<"RevokeAllowance">): Decision {
  const draft = new Draft(state, command);
  const { key, allowanceId, reason, principal } = command;
  if (draft.session.recentCommands.includes(key)) return draft.refuse("duplicate", "this was received before");
  if (draft.session.allowances?.some((one) => one.allowanceId === allowanceId) !== true) return draft.refuse("not_found", `this session has no allowance ${allowanceId}`);
  draft.emit({ type: "AllowanceEnded", allowanceId, reason: "revoked", key, ...given("principal", principal), ...given("note", reason === "" ? undefined : reason) });
  return draft.accept();
}
