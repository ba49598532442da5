/**
 * Owns: carrying a person's decision to the session (DESIGN 5): authorise, sign, publish, and wait for the session's own
 * verdict. A publish that returned proves nothing; only the session knows. The session checks everything again (I10).
 */
import { setTimeout as pause } from "node:timers/promises";
import type { DecisionAnswer, DecisionRequest } from "../contracts/api.js";
import { DECISION_MADE, type DecisionClaims, type PendingApproval } from "../contracts/decisions.js";
import { sha256Hex } from "../contracts/ids.js";
import { canonicalize } from "../contracts/json.js";
import { Problem } from "../contracts/problems.js";
import type { Authenticated } from "../platform/apikeys.js";
import { MAX_ARGS_BYTES } from "../session/core/seal.js";
import { faultPoint } from "../platform/faults.js";
import { errorFields } from "../platform/log.js";
import type { ConsoleConfig } from "./config.js";
import { decisionTrace, recordDecision } from "./decision-span.js";
import { envelopeFor } from "./envelopes.js";
import type { ConsoleDeps } from "./ports.js";

export type Via = DecisionClaims["via"];
type Verdict = Omit<DecisionAnswer, "approvalId" | "decisionId">;
export interface Decision { readonly pending: PendingApproval; readonly request: DecisionRequest; readonly caller: Authenticated; readonly via: Via }

/** Throws Problem unless the caller is a person with the role to decide at all; which approvals, the session says. */
export function requireApprover(caller: Authenticated): void {
  const { principal } = caller;
  if (principal.class !== "person") throw new Problem("not_an_approver", `${principal.id} is a ${principal.class}; only a person may decide`);
}

/** The decision's id: the same click gives the same id, another person's or another content never does. */
export function decisionIdOf({ pending, request, caller }: Decision, clickId: string): string {
  const content = Object.entries(request).filter(([key]) => key !== "decisionId").sort();
  return `dec_${sha256Hex(JSON.stringify([caller.tenant, caller.principal.id, pending.record.approvalId, clickId, content])).slice(0, 32)}`;
}

/** What is wrong with the request itself. Arguments come back canonical. Throws Problem. */
export function checkRequest(request: DecisionRequest): DecisionRequest {
  const missing = request.kind === "modify" && request.args === undefined ? "args" : request.kind === "respond" && request.text === undefined ? "text"
    : request.kind === "raise" && request.raise === undefined ? "raise" : undefined;
  if (missing !== undefined) throw new Problem("validation_failed", `a decision to ${request.kind} needs "${missing}"`, { errors: [{ path: missing, message: "is required here" }] });
  if (request.kind === "reject" && (request.text ?? "").trim() === "") throw new Problem("validation_failed", "rejecting needs a reason for the model", { errors: [{ path: "text", message: "is required here" }] });
  if (request.kind !== "modify" && request.args !== undefined) throw new Problem("validation_failed", `"args" means something only with modify, not with ${request.kind}`, { errors: [{ path: "args", message: "leave it out" }] });
  if (request.remember !== undefined && request.kind !== "approve") throw new Problem("validation_failed", `"remember" means something only with approve, not with ${request.kind}`, { errors: [{ path: "remember", message: "leave it out" }] });
  if (request.remember?.where !== undefined) return { ...request, remember: { ...request.remember, where: objectText(request.remember.where) } };
  if (request.args === undefined) return request;
  const bytes = Buffer.byteLength(request.args);
  if (bytes > MAX_ARGS_BYTES) throw new Problem("payload_too_large", `the new arguments have ${String(bytes)} bytes; the limit is ${String(MAX_ARGS_BYTES)}`);
  try {
    return { ...request, args: canonicalize(request.args) };
  } catch (error) {
    throw new Problem("arguments_invalid", `the new arguments are not JSON: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

function objectText(where: string): string {
  try {
    const text = canonicalize(where);
    if (text.startsWith("{") && text !== "{}") return text;
  } catch {
    // said below
  }
  throw new Problem("validation_failed", `"remember.where" is JSON text of an object with the arguments that must stay the same, such as {"orderId":"1001"}`, { errors: [{ path: "remember.where", message: "expected a JSON object that is not empty" }] });
}

/** Signs, publishes and waits. `verdict` is the session's word, or `not_known_yet`. Throws Problem where the broker does not take it. */
export async function carryDecision(deps: ConsoleDeps, config: ConsoleConfig, decision: Decision, decisionId: string): Promise<DecisionAnswer> {
  const { pending } = decision;
  const answer = { approvalId: pending.record.approvalId, decisionId };
  const before = await lookUp(deps, pending.actorId, decisionId);
  if (before !== undefined) return { ...answer, ...before };
  const nowMs = deps.clock.nowMs();
  const jws = await deps.signer.sign(claimsOf(decision, decisionId, nowMs, config.decisionTtlMs));
  faultPoint("before-decision");
  await deps.decisions.publish(envelopeFor({
    id: decisionId, type: DECISION_MADE, tenant: pending.tenant, sessionId: pending.sessionId, atMs: nowMs, by: decision.caller.principal, expiresAtMs: nowMs + config.decisionTtlMs, traceparent: decisionTrace(pending, decisionId),
    data: { tenant: pending.tenant, sessionId: pending.sessionId, actorId: pending.actorId, approvalId: pending.record.approvalId, decision: jws },
  }));
  const verdict = await waitForVerdict(deps, config, pending.actorId, decisionId);
  recordDecision(decision, decisionId, { verdict: verdict.verdict, startMs: nowMs, endMs: deps.clock.nowMs() });
  return { ...answer, ...verdict };
}

function claimsOf({ pending, request, caller, via }: Decision, decisionId: string, nowMs: number, ttlMs: number): DecisionClaims {
  const iat = Math.floor(nowMs / 1000);
  return {
    iss: "docket/console", aud: "docket/sessions", sub: pending.actorId, jti: decisionId, approvalId: pending.record.approvalId,
    version: request.version, argsDigest: request.argsDigest, kind: request.kind,
    ...(request.args === undefined ? {} : { args: request.args }), ...(request.text === undefined ? {} : { text: request.text }),
    ...(request.raise === undefined ? {} : { raise: request.raise }), ...(request.remember === undefined ? {} : { remember: request.remember }),
    principal: caller.principal, via, iat, exp: iat + Math.ceil(ttlMs / 1000),
  };
}

async function waitForVerdict(deps: ConsoleDeps, config: ConsoleConfig, actorId: string, decisionId: string): Promise<Verdict> {
  const started = performance.now();
  for (let pauseMs = config.verdictPollMs; performance.now() - started < config.verdictWaitMs; pauseMs = Math.min(pauseMs * 1.5, config.verdictPollMs * 5)) {
    const found = await lookUp(deps, actorId, decisionId);
    if (found !== undefined) return found;
    await pause(pauseMs);
  }
  return { verdict: "not_known_yet" };
}

/** The session's verdict. A session that cannot be asked just now has none yet. */
async function lookUp(deps: ConsoleDeps, actorId: string, decisionId: string): Promise<Verdict | undefined> {
  try {
    const outcome = await deps.sessions.readDecision(actorId, decisionId);
    if (!outcome.known) return undefined;
    return { verdict: outcome.verdict ?? "recorded", ...(outcome.rev === undefined ? {} : { rev: outcome.rev }), ...(outcome.message === undefined ? {} : { message: outcome.message }) };
  } catch (error) {
    deps.logger.debug({ actorId, ...errorFields(error) }, "a session could not be asked for a verdict");
    return undefined;
  }
}
