/**
 * Owns: the verdict on one sealed call (I4). Pure; the same policy, manifest and facts give the same verdict.
 *
 * - Every rule that matches is collected; deny beats ask beats allow. Nothing matching: the tool's default, else ask.
 * - A condition that fails at run time holds for deny and ask rules and does not for allow rules: fail closed.
 * - Several asks merge to the strictest: highest risk and quorum, shortest expiry, requester excluded if any says so, expiry
 *   stop > reject > escalate > keep, decisions, roles and groups intersected, the tool's own approvers included. Rules without roles do not narrow.
 *   Where two name roles (or groups) that have none in common, only `admin` may decide: one of them alone must not.
 */
import type { Principal } from "../../../contracts/cloudevent.js";
import { parseForUse } from "../../../contracts/json.js";
import type { DecisionKind, Risk, ToolManifest } from "../../../contracts/tools.js";
import type { Verdict } from "../command.js";
import { shortError } from "./condition.js";
import { durationMs, ruleFits, type CompiledRule, type Policy, type PolicyVariables } from "./policy.js";

/** The facts of one call. `principal` is who caused the run, where known. */
export interface CallFacts {
  readonly toolName: string;
  /** Sealed canonical text. */
  readonly argsText: string;
  readonly session: { readonly id: string; readonly tenant: string; readonly agent: string };
  readonly principal: Principal | undefined;
  readonly budget: { readonly spentUsd: number; readonly budgetUsd: number };
}

interface Match { readonly compiled: CompiledRule; readonly note: string }
const RISKS: readonly Risk[] = ["low", "medium", "high"];
const EXPIRIES = ["stop", "reject", "escalate", "keep"] as const;
/** Of all rules together; a stored approval has a bound (I9). */
const MAX_STEPS = 8;

/** Whether a person may allow the tool for the session instead of this call only: never where the risk is high, or more than one has to sign. */
export function mayAllowSession({ allowSession, risk, approvers }: Pick<Verdict, "allowSession" | "risk" | "approvers">): boolean {
  return allowSession === true && risk !== "high" && approvers.quorum === 1;
}

export function judge(policy: Policy, manifest: ToolManifest, facts: CallFacts): Verdict {
  const variables = variablesOf(manifest, facts);
  const matches = policy.rules.flatMap((compiled) => matchOf(compiled, facts, variables));
  const of = (verdict: Verdict["verdict"]): Match[] => matches.filter(({ compiled }) => compiled.rule.verdict === verdict);
  const denials = of("deny");
  if (denials.length > 0) return verdictOf(policy, manifest, "deny", denials);
  const asks = of("ask");
  if (asks.length > 0) return verdictOf(policy, manifest, "ask", asks);
  const allows = of("allow");
  if (allows.length > 0) return verdictOf(policy, manifest, "allow", allows);
  const fallback = manifest.defaultVerdict;
  return {
    ...verdictOf(policy, manifest, fallback ?? "ask", []),
    rule: fallback === undefined ? "no-rule" : "tool-default",
    reason: fallback === undefined ? `no rule matches ${facts.toolName}, so a person is asked` : `no rule matches; ${facts.toolName} itself says ${fallback}`,
  };
}

/** A rule that fits and holds. An error while finding out counts against the call. */
function matchOf(compiled: CompiledRule, facts: CallFacts, variables: PolicyVariables | { readonly unreadable: string }): Match[] {
  const { rule, holds } = compiled;
  if (!ruleFits(rule, facts.toolName, facts.session.agent)) return [];
  if (holds === undefined) return [{ compiled, note: "" }];
  const failed = (why: string): Match[] => (rule.verdict === "allow" ? [] : [{ compiled, note: ` (its condition could not be evaluated: ${why})` }]);
  if ("unreadable" in variables) return failed(variables.unreadable);
  try {
    const result = holds(variables);
    if (result === true) return [{ compiled, note: "" }];
    return result === false ? [] : failed(`it gave ${typeof result}, expected true or false`);
  } catch (error) {
    return failed(shortError(error));
  }
}

function variablesOf(manifest: ToolManifest, facts: CallFacts): PolicyVariables | { readonly unreadable: string } {
  let args: unknown;
  try {
    args = parseForUse(facts.argsText);
  } catch (error) {
    return { unreadable: shortError(error) };
  }
  const { principal } = facts;
  return {
    tool: { name: facts.toolName, effects: manifest.effects, risk: manifest.risk, critical: manifest.critical, reconcilable: manifest.reconcilable },
    args, session: { id: facts.session.id, tenant: facts.session.tenant, agent: facts.session.agent },
    principal: { id: principal?.id ?? "", class: principal?.class ?? "", roles: principal?.roles ?? [] },
    budget: { spentUsd: facts.budget.spentUsd, budgetUsd: facts.budget.budgetUsd },
  };
}

function verdictOf(policy: Policy, manifest: ToolManifest, verdict: Verdict["verdict"], matches: readonly Match[]): Verdict {
  const rules = matches.map(({ compiled }) => compiled.rule);
  const expiries = matches.map(({ compiled }) => compiled.expiresInMs).filter((ms) => ms !== undefined);
  const consents = rules.flatMap((rule) => (rule.consentFor === undefined ? [] : [durationMs(rule.consentFor)]));
  const chain = chainOf(rules, manifest.approvers);
  return {
    verdict,
    rule: rules.map((rule) => rule.id).join(","),
    policyVersion: policy.version,
    reason: matches.map(({ compiled, note }) => `${compiled.rule.reason}${note}`).join("; "),
    risk: highest([manifest.risk, ...rules.flatMap((rule) => rule.risk ?? [])]),
    allowed: allowedBy(manifest, rules),
    approvers: {
      ...peopleOf([...rules.map((rule) => rule.approvers ?? {}), ...(manifest.approvers === undefined ? [] : [manifest.approvers])]),
      quorum: Math.max(1, ...rules.map((rule) => rule.approvers?.quorum ?? 1)),
      excludeRequester: rules.some((rule) => rule.approvers?.excludeRequester === true),
    },
    onExpiry: EXPIRIES.find((action) => rules.some((rule) => rule.onExpiry === action)) ?? "reject",
    ...(expiries.length === 0 ? {} : { expiresInMs: Math.min(...expiries) }),
    ...(chain.length === 0 ? {} : { chain }), allowSession: rules.every((rule) => rule.allowSession !== false),
    ...(consents.length === 0 ? {} : { consentForMs: Math.min(...consents) }),
  };
}

function highest(risks: readonly Risk[]): Risk {
  return RISKS[Math.max(...risks.map((risk) => RISKS.indexOf(risk)))] ?? "high";
}

/** People as rules and tools name them. */
interface People { readonly roles?: readonly string[] | undefined; readonly groups?: readonly string[] | undefined }
type Rule = CompiledRule["rule"];

/** Who satisfies every one of these; only administrators where nobody can. */
function peopleOf(all: readonly People[]): { roles: string[]; groups?: string[] } {
  const roles = common(all.map((people) => people.roles));
  const groups = common(all.map((people) => people.groups));
  if (roles?.length === 0 || groups?.length === 0) return { roles: ["admin"] };
  return { roles: roles ?? [], ...(groups === undefined ? {} : { groups }) };
}

/** What all of the lists that are there have in common; undefined where there is none. */
function common(lists: readonly (readonly string[] | undefined)[]): string[] | undefined {
  const [first, ...rest] = lists.filter((list) => list !== undefined);
  return first?.filter((word) => rest.every((list) => list.includes(word)));
}

/**
 * Steps of all rules, in order of time. A step widens its own rule only: whoever comes in by it must satisfy every other rule, and where nobody
 * can, it is a reminder.
 */
function chainOf(rules: readonly Rule[], tool: People | undefined): NonNullable<Verdict["chain"]> {
  const steps = rules.flatMap((rule) => (rule.chain ?? []).map(({ after, to }) => {
    const others = [...rules.filter((other) => other !== rule).map((other) => other.approvers ?? {}), ...(tool === undefined ? [] : [tool])];
    const roles = common([to?.roles, ...others.map((people) => people.roles)]);
    const groups = common([to?.groups, ...others.map((people) => people.groups)]);
    const nobody = to === undefined || roles?.length === 0 || groups?.length === 0;
    return { afterMs: durationMs(after), ...(nobody ? {} : { to: { roles: roles ?? [], groups: groups ?? [] } }) };
  }));
  return steps.sort((a, b) => a.afterMs - b.afterMs).slice(0, MAX_STEPS);
}

function allowedBy(manifest: ToolManifest, rules: readonly CompiledRule["rule"][]): DecisionKind[] {
  const common = manifest.allowedDecisions.filter((kind) => rules.every((rule) => rule.allowed?.includes(kind) ?? true));
  // Saying no must always be possible.
  return common.length > 0 ? common : ["reject"];
}
