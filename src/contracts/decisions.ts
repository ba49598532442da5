/**
 * Owns: approvals on the wire: the pending record that operators see, and the signed decision that comes back
 * (DESIGN 5). A decision names the approval, its version and the digest of what was shown (I5, I10).
 */
import { z } from "zod";
import { Principal } from "./cloudevent.js";
import { DecisionKind, Risk } from "./tools.js";

export const APPROVAL_PENDING = "com.docket.approval.pending.v1";
export const APPROVAL_RECEIVED = "com.docket.approval.received.v1";
export const DECISION_MADE = "com.docket.decision.made.v1";

/** What happens when nobody decides in time. `reject`: the call's result is `expired` and the agent goes on; `stop`: the run ends with it. Never a person's no. */
export const OnExpiry = z.enum(["stop", "reject", "escalate", "keep"]);
export type OnExpiry = z.infer<typeof OnExpiry>;

/** Why a run stands still until a person decides. */
export const EscalationReason = z.enum([
  "critical_tool_failed", "step_limit", "budget", "reflection_limit", "model_lost", "model_failed", "approval_expired", "outcome_unknown",
]);
export type EscalationReason = z.infer<typeof EscalationReason>;

/** Who may decide: one of the roles and, where groups are named, in one of the groups. Empty roles mean `approver` or `admin`. */
export const ApproverRule = z.object({
  roles: z.array(z.string()),
  groups: z.array(z.string()).optional(),
  quorum: z.number().int().min(1),
  excludeRequester: z.boolean(),
});
export type ApproverRule = z.infer<typeof ApproverRule>;

/** A step of an approval's chain. With `to`, these people may decide too from `atMs` on; without, it reminds those who may already. */
export const ChainStep = z.object({ atMs: z.number().int(), to: z.object({ roles: z.array(z.string()), groups: z.array(z.string()) }).optional() });
export type ChainStep = z.infer<typeof ChainStep>;

/**
 * A person's word that further calls of a tool need not ask in this session. Checked at each use: same rule, same policy version, arguments
 * within `where`, risk below high, and not for a run that the granting person asked for where the rule forbids that.
 */
export const SessionAllowance = z.object({
  allowanceId: z.string(), tool: z.string(), approvalId: z.string(),
  /** Canonical JSON object: these arguments must be the same. Left out: any arguments. */
  where: z.string().optional(),
  rule: z.string(), policyVersion: z.string(), grantedBy: z.string(), grantedAtMs: z.number().int(),
  expiresAtMs: z.number().int(), usesLeft: z.number().int().optional(),
});
export type SessionAllowance = z.infer<typeof SessionAllowance>;

/** How long an allowance may last. */
export const REMEMBER_SPAN = { atLeastMs: 1_000, atMostMs: 7 * 86_400_000 } as const;
/** `approve` with it grants a SessionAllowance. It always ends by time; by number where `uses` is given. */
export const Remember = z.object({
  where: z.string().min(2).max(500).optional(), forMs: z.number().int().min(REMEMBER_SPAN.atLeastMs).max(REMEMBER_SPAN.atMostMs), uses: z.number().int().min(1).max(1000).optional(),
});
export type Remember = z.infer<typeof Remember>;

/** An open question to people, as the session's state holds it. The arguments live in the journal entry `argsRev`. */
export const ApprovalRecord = z.object({
  approvalId: z.string(),
  /** Bumped when what is asked changes; a decision for an older version is refused. */
  version: z.number().int().min(1),
  kind: z.enum(["tool_call", "escalation"]),
  /** Kind `escalation`: what it is about. */
  escalation: EscalationReason.optional(),
  runId: z.string(),
  /** Tool call this is about (kind `tool_call`, and escalations of one call). */
  callId: z.string().optional(),
  tool: z.string().optional(),
  argsRev: z.number().int().optional(),
  argsDigest: z.string(),
  risk: Risk,
  rule: z.string(),
  policyVersion: z.string(),
  /** For people: why this is asked. */
  question: z.string(),
  allowed: z.array(DecisionKind),
  approvers: ApproverRule,
  requestedBy: z.string(),
  openedAtMs: z.number().int(),
  expiresAtMs: z.number().int().optional(),
  onExpiry: OnExpiry,
  /** Approvals given so far, where a quorum is asked. */
  signatures: z.array(z.object({ principalId: z.string(), decisionId: z.string(), atMs: z.number().int() })),
  /** What is to happen before it expires, and how many of these steps have been taken. */
  chain: z.array(ChainStep).optional(), chainDone: z.number().int().optional(),
  /** Whose turn it is, as people have agreed. Gives no right and takes none. */
  assignedTo: z.string().optional(),
  /** Somebody looks at it again then. Changes no deadline. */
  snoozedUntilMs: z.number().int().optional(),
  /** `approve` may be given for the session (see Remember). */
  allowSession: z.boolean().optional(),
  /** How long an approval given here may wait until the call goes out. */
  consentForMs: z.number().int().optional(),
  /** What was known of the tool when it was asked. Another tool of that name is another question. */
  toolDigest: z.string().optional(),
});
export type ApprovalRecord = z.infer<typeof ApprovalRecord>;

/** Data of APPROVAL_PENDING: the record with everything that is to be shown. */
export const PendingApproval = z.object({
  tenant: z.string(), sessionId: z.string(), actorId: z.string(), agent: z.string(),
  record: ApprovalRecord,
  /** Canonical argument text, whole. */
  args: z.string(),
  /** What the model said beside the call. */
  rationale: z.string(),
  /** The input that started the run; untrusted. */
  trigger: z.string(),
  /** The run's trace, for the decision's span. */
  traceparent: z.string().optional(),
});
export type PendingApproval = z.infer<typeof PendingApproval>;

/** Data of DECISION_MADE: a JWS by the console over DecisionClaims. */
export const DecisionMade = z.object({
  tenant: z.string(), sessionId: z.string(), actorId: z.string(), approvalId: z.string(), decision: z.string(),
});
export type DecisionMade = z.infer<typeof DecisionMade>;

export const APPROVAL_TEND = "com.docket.approval.tend.v1";
/** Data of APPROVAL_TEND: whose turn it is, and when to look again. `null` takes it back; left out stays as it is. Never a decision. */
export const ApprovalTend = z.object({
  approvalId: z.string(), assignTo: z.string().min(1).max(200).nullable().optional(), snoozeUntilMs: z.number().int().nullable().optional(), reason: z.string().max(2000).default(""),
});
export type ApprovalTend = z.infer<typeof ApprovalTend>;

export const ALLOWANCE_REVOKE = "com.docket.allowance.revoke.v1";
/** Data of ALLOWANCE_REVOKE. */
export const AllowanceRevoke = z.object({ allowanceId: z.string(), reason: z.string().max(2000).default("") });
export type AllowanceRevoke = z.infer<typeof AllowanceRevoke>;

/** Claims of a decision (issuer `docket/console`, audience `docket/sessions`). `jti` is the decision's id. */
export const DecisionClaims = z.object({
  iss: z.literal("docket/console"), aud: z.literal("docket/sessions"),
  sub: z.string(), // actor id
  jti: z.string().min(1),
  approvalId: z.string(),
  version: z.number().int(),
  argsDigest: z.string(),
  kind: DecisionKind,
  /** `modify`: the new arguments as canonical text. */
  args: z.string().optional(),
  /** `respond`: the answer that becomes the call's result. `reject`: the reason for the model. Else a reason for people. */
  text: z.string().max(20_000).optional(),
  /** `raise`: the new limits. */
  raise: z.object({ budgetUsd: z.number().positive().optional(), maxSteps: z.number().int().positive().optional() }).optional(),
  /** `approve`: further calls of the tool need not ask in this session. */
  remember: Remember.optional(),
  principal: Principal,
  via: z.enum(["web", "cli", "slack", "link", "api"]),
  iat: z.number().int(),
  exp: z.number().int(),
});
export type DecisionClaims = z.infer<typeof DecisionClaims>;
