/**
 * Owns: what a policy is (DESIGN 5). Rules say allow, ask or deny for the calls they match; all matching rules are
 * collected and the strictest wins. A compiled policy is immutable, and its version is a digest of its text: every
 * verdict in the journal names the text that gave it.
 */
import { z } from "zod";
import { OnExpiry } from "../../../contracts/decisions.js";
import { DecisionKind, Risk } from "../../../contracts/tools.js";

const Glob = z.string().min(1).max(200);

const Duration = z.string().regex(/^[1-9]\d{0,5}[smhd]$/, 'expected a number and s, m, h or d, such as "24h"');
const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A checked duration in milliseconds. */
export function durationMs(text: string): number {
  return Number(text.slice(0, -1)) * (UNIT_MS[text.slice(-1)] ?? 1);
}

/** One rule as it is written in YAML. */
export const PolicyRule = z.strictObject({
  id: z.string().regex(/^[a-z0-9][a-z0-9._-]{0,62}$/, "expected lower-case letters, digits, dots, dashes and underscores, 63 at most"),
  match: z.strictObject({ tools: z.array(Glob).min(1).optional(), agents: z.array(Glob).min(1).optional() }).default({}),
  /** CEL over tool, args, session, principal, budget; a rule without it always holds. */
  when: z.string().min(1).max(4000).optional(),
  verdict: z.enum(["allow", "ask", "deny"]),
  /** For people and, where the call is denied, for the model. */
  reason: z.string().min(1).max(1000),
  risk: Risk.optional(),
  approvers: z.strictObject({
    roles: z.array(z.string().min(1).max(100)).min(1).optional(),
    /** A person must be in one of them as well. */
    groups: z.array(z.string().min(1).max(100)).min(1).optional(),
    quorum: z.number().int().min(1).max(10).optional(),
    excludeRequester: z.boolean().optional(),
  }).optional(),
  allowed: z.array(DecisionKind).min(1).optional(),
  /** `90s`, `30m`, `24h`, `7d`. */
  expiresIn: Duration.optional(),
  onExpiry: OnExpiry.optional(),
  /** Reminders, and who else may decide from then on. */
  chain: z.array(z.strictObject({ after: Duration, to: z.strictObject({ roles: z.array(z.string().min(1).max(100)).min(1).optional(), groups: z.array(z.string().min(1).max(100)).min(1).optional() })
    .refine((to) => to.roles !== undefined || to.groups !== undefined, "name roles or groups; leave it out for a reminder").optional() })).min(1).max(5).optional(),
  /** Whether a person may allow the tool for the rest of the session; never where the risk is high. */
  allowSession: z.boolean().optional(),
  /** How long an approval may wait until the call goes out. */
  consentFor: Duration.optional(),
});
export type PolicyRule = z.infer<typeof PolicyRule>;

export const PolicyFile = z.strictObject({ version: z.literal(1), rules: z.array(z.unknown()) });

/** A rule with its condition compiled and its place known. */
export interface CompiledRule {
  readonly rule: PolicyRule;
  readonly file: string;
  readonly line: number;
  readonly expiresInMs: number | undefined;
  readonly holds: ((variables: PolicyVariables) => unknown) | undefined;
}

export interface Policy {
  /** Short digest of all policy texts; the same on every host, wherever the files lie. */
  readonly version: string;
  readonly rules: readonly CompiledRule[];
}

/** What conditions see. `args` are the sealed arguments. */
export interface PolicyVariables {
  readonly tool: { readonly name: string; readonly effects: string; readonly risk: string; readonly critical: boolean; readonly reconcilable: boolean };
  readonly args: unknown;
  readonly session: { readonly id: string; readonly tenant: string; readonly agent: string };
  readonly principal: { readonly id: string; readonly class: string; readonly roles: readonly string[] };
  readonly budget: { readonly spentUsd: number; readonly budgetUsd: number };
}

/** Does a glob fit a name? `*` stands for any run of characters, all else is literal. */
export function globFits(glob: string, name: string): boolean {
  const parts = glob.split("*");
  const first = parts[0] ?? "";
  if (parts.length === 1) return glob === name;
  const last = parts[parts.length - 1] ?? "";
  if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= name.length - last.length;
}

/** Does the rule's `match` fit, conditions aside? */
export function ruleFits(rule: PolicyRule, tool: string, agent: string): boolean {
  const { tools, agents } = rule.match;
  return (tools === undefined || tools.some((glob) => globFits(glob, tool))) && (agents === undefined || agents.some((glob) => globFits(glob, agent)));
}
