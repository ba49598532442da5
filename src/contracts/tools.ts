/**
 * Owns: what is known of a tool without its code (the manifest), and the wire between session and worker: request,
 * claim, result. `tool requests` go out with a grant; claims and results come back signed by the worker.
 */
import { z } from "zod";

export const ToolName = z.string().regex(/^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/, "expected a letter, then letters, digits, _ or -, 64 at most");

/** `none` reads only; `idempotent` may run again with the same key; `once` must not run again unless proven not started (I6). */
export const ToolEffects = z.enum(["none", "idempotent", "once"]);
export type ToolEffects = z.infer<typeof ToolEffects>;

export const Risk = z.enum(["low", "medium", "high"]);
export type Risk = z.infer<typeof Risk>;

/** What people may answer. The last three answer escalations. */
export const DecisionKind = z.enum(["approve", "modify", "reject", "respond", "raise", "retry", "give_up"]);
export type DecisionKind = z.infer<typeof DecisionKind>;

/** Most of a tool's output that reaches the model: its report must pass every broker and the session's limit. */
export const MAX_OUTPUT_BYTES = 128 * 1024;

/** A tool without its implementation: all that the session host, gateway and console may see. */
export const ToolManifest = z.object({
  name: ToolName,
  title: z.string().max(200).optional(),
  description: z.string().min(1).max(4000),
  /** JSON Schema (draft 2020-12) of the arguments. */
  inputSchema: z.record(z.string(), z.unknown()),
  effects: ToolEffects,
  /** A failure of a critical tool escalates to a person instead of going back to the model. */
  critical: z.boolean(),
  /** The tool can answer "did key K happen?". */
  reconcilable: z.boolean(),
  timeoutMs: z.number().int().positive(),
  /** Bytes of result text that are kept and shown to the model. */
  outputCapBytes: z.number().int().positive().max(MAX_OUTPUT_BYTES),
  maxTries: z.number().int().min(1).max(10),
  risk: Risk,
  /** Which decisions an approver may take; default approve, modify, reject. */
  allowedDecisions: z.array(DecisionKind).min(1),
  /** Who may decide on its calls, whatever policy says besides. */
  approvers: z.object({ roles: z.array(z.string().min(1).max(100)).min(1).optional(), groups: z.array(z.string().min(1).max(100)).min(1).optional() }).optional(),
  /** The verdict where no policy rule matches. Nothing matching and no default means `ask`. */
  defaultVerdict: z.enum(["allow", "ask", "deny"]).optional(),
});
export type ToolManifest = z.infer<typeof ToolManifest>;

export const TOOL_REQUESTED = "com.docket.tool.requested.v1";
export const TOOL_CLAIMED = "com.docket.tool.claimed.v1";
export const TOOL_COMPLETED = "com.docket.tool.completed.v1";

/** Data of TOOL_REQUESTED. `args` is the sealed canonical text; the grant is an EdDSA JWS over GrantClaims. */
export const ToolRequest = z.object({
  tenant: z.string(),
  sessionId: z.string(),
  actorId: z.string(),
  agent: z.string(),
  runId: z.string(),
  callId: z.string(),
  tool: ToolName,
  args: z.string(),
  argsDigest: z.string(),
  /** 1, 2, 3: which try of the call this is. A later try is only sent after the earlier one is known to have failed. */
  try: z.number().int().min(1),
  /** How often this try has been published; a new publication has a new event id, the idempotency key stays. */
  publication: z.number().int().min(1),
  idempotencyKey: z.string(),
  deadlineAtMs: z.number().int(),
  correlationId: z.string().optional(),
  grant: z.string(),
});
export type ToolRequest = z.infer<typeof ToolRequest>;

/** The session was deleted: its workspace may go. `proof` is a grant (GrantClaims) for `WORKSPACE_RELEASE`, with `deletedAtMs` as its digest. */
export const WORKSPACE_RELEASED = "com.docket.workspace.released.v1";
export const WorkspaceReleased = z.object({ tenant: z.string(), sessionId: z.string(), actorId: z.string(), deletedAtMs: z.number().int(), proof: z.string() });
export type WorkspaceReleased = z.infer<typeof WorkspaceReleased>;
/** What such a grant is for: no tool can be named so. */
export const WORKSPACE_RELEASE = "workspace:release";

/** Claims of a grant (issuer `docket/sessions`, audience `docket/tools`). Minted once per call; expires before the worker's records do. */
export const GrantClaims = z.object({
  iss: z.literal("docket/sessions"),
  aud: z.literal("docket/tools"),
  sub: z.string(), // actor id
  jti: z.string(), // call id
  tool: z.string(),
  digest: z.string(),
  iat: z.number().int(),
  exp: z.number().int(),
});
export type GrantClaims = z.infer<typeof GrantClaims>;

/** Data of TOOL_CLAIMED: the worker has the request and will report. */
export const ToolClaim = z.object({
  sessionId: z.string(), tenant: z.string(), actorId: z.string(), runId: z.string(), callId: z.string(),
  try: z.number().int(), worker: z.string(), claimedAtMs: z.number().int(),
});
export type ToolClaim = z.infer<typeof ToolClaim>;

/** How a try ended, as the worker saw it. */
export const ToolOutcome = z.enum(["succeeded", "failed", "outcome_unknown", "not_started"]);
/** Kinds of failure: `transient` may be retried, `permanent` and `business` may not, `refused` never ran (grant, digest, schema). */
export const ToolFailureKind = z.enum(["transient", "permanent", "business", "refused", "timeout"]);
export type ToolFailureKind = z.infer<typeof ToolFailureKind>;

/** Data of TOOL_COMPLETED. `proof` is a JWS by the worker over ResultClaims. */
export const ToolResult = z.object({
  sessionId: z.string(), tenant: z.string(), actorId: z.string(), runId: z.string(), callId: z.string(),
  tool: z.string(),
  try: z.number().int(),
  outcome: ToolOutcome,
  /** Text for the model, at most outputCapBytes; JSON text where the tool returned a value. */
  output: z.string(),
  truncated: z.boolean(),
  failure: z.object({ kind: ToolFailureKind, message: z.string(), retryAfterMs: z.number().int().optional() }).optional(),
  worker: z.string(),
  startedAtMs: z.number().int(),
  endedAtMs: z.number().int(),
  proof: z.string(),
});
export type ToolResult = z.infer<typeof ToolResult>;

/** Claims of a result's proof (issuer `docket/tools`, audience `docket/sessions`). */
export const ResultClaims = z.object({
  iss: z.literal("docket/tools"), aud: z.literal("docket/sessions"),
  sub: z.string(), jti: z.string(), try: z.number().int(), outcome: ToolOutcome, outputDigest: z.string(), iat: z.number().int(),
});
export type ResultClaims = z.infer<typeof ResultClaims>;
