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

export const OnExpiry = z.enum(["reject", "escalate", "keep"]);
export type OnExpiry = z.infer<typeof OnExpiry>;

/** Why a run stands still until a person decides. */
export const EscalationReason = z.enum([
  "critical_tool_failed", "step_limit", "budget", "reflection_limit", "model_lost", "model_failed", "approval_expired", "outcome_unknown",
]);
export type EscalationReason = z.infer<typeof EscalationReason>;

/** Who may decide. Empty roles mean `approver` or `admin`. */
export const ApproverRule = z.object({
  roles: z.array(z.string()),
  quorum: z.number().int().min(1),
  excludeRequester: z.boolean(),
});
export type ApproverRule = z.infer<typeof ApproverRule>;

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
});
export type PendingApproval = z.infer<typeof PendingApproval>;

/** Data of DECISION_MADE: a JWS by the console over DecisionClaims. */
export const DecisionMade = z.object({
  tenant: z.string(), sessionId: z.string(), actorId: z.string(), approvalId: z.string(), decision: z.string(),
});
export type DecisionMade = z.infer<typeof DecisionMade>;

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
  /** `respond`: the answer that becomes the call's result. `reject`: the reason for the model. */
  text: z.string().max(20_000).optional(),
  /** `raise`: the new limits. */
  raise: z.object({ budgetUsd: z.number().positive().optional(), maxSteps: z.number().int().positive().optional() }).optional(),
  principal: Principal,
  via: z.enum(["web", "cli", "slack", "api"]),
  iat: z.number().int(),
  exp: z.number().int(),
});
export type DecisionClaims = z.infer<typeof DecisionClaims>;
