/**
 * Owns: what follows from a settled step: the next model call when every call has its result, dispatching a call, and
 * the checks that stand before each of them (I4, I11, time).
 */
import { GRANT_TTL_MS, TOOL_GRACE_MS } from "../limits.js";
import { openCallsOf } from "../parts.js";
import type { Run, ToolCall } from "../state.js";
import { consentFault, settleUnconsented } from "./consent.js";
import { plain, type Draft } from "./draft.js";
import { endRun, finishRun, recordResult } from "./ending.js";
import { escalateRun } from "./escalate.js";

export function isExpired(run: Run, atMs: number): boolean {
  return run.expiresAtMs !== undefined && run.expiresAtMs <= atMs;
}

export function expireRun(draft: Draft): void {
  endRun(draft, { outcome: "expired", code: "expired", text: "the event's time to be done has passed" });
}

/** Goes on where nothing is outstanding: ends a run that is ending, or calls the model again. */
export function advance(draft: Draft, reserveUsd: number): void {
  const run = draft.run;
  if (run === undefined || openCallsOf(run).length > 0 || draft.model !== undefined) return;
  if (run.ending !== undefined) { finishRun(draft, run.ending); return; }
  if (draft.session.approvals.length > 0) return;
  startModel(draft, run, reserveUsd);
}

/** The next model call, unless time, reflections, steps or budget forbid it. Nothing may be outstanding. */
export function startModel(draft: Draft, run: Run, reserveUsd: number): void {
  if (isExpired(run, draft.atMs)) { expireRun(draft); return; }
  const { maxReflections } = draft.command.limits;
  if (run.reflections > maxReflections) {
    escalateRun(draft, run, "reflection_limit", `${String(run.reflections)} tool failures in a row went back to the model; the limit is ${String(maxReflections)}`);
    return;
  }
  if (run.steps >= run.maxSteps) {
    escalateRun(draft, run, "step_limit", `the run has used its ${String(run.maxSteps)} steps; raise the limit or give up`);
    return;
  }
  if (run.spentUsd + reserveUsd > run.budgetUsd) {
    const cost = `the next model call may cost ${String(reserveUsd)} USD`;
    escalateRun(draft, run, "budget", `${cost}; ${String(run.spentUsd)} of ${String(run.budgetUsd)} USD are spent; raise the budget or give up`);
    return;
  }
  draft.emit({ type: "ModelCallStarted", runId: run.runId, step: run.steps + 1, attempt: run.attempt + 1, host: draft.command.host, reservedUsd: reserveUsd });
}

/** Same tool, same arguments, and nobody knows whether they took effect (I6). */
export function blockedBy(draft: Draft, call: { callId: string; tool: string; argsDigest: string }): boolean {
  return draft.session.unknownCalls.some((other) => other.callId !== call.callId && other.tool === call.tool && other.argsDigest === call.argsDigest);
}

export const BLOCKED = "blocked: an earlier call with the same arguments has an unknown outcome; do not repeat it until that is known";

/** Sends a call out, as the given try. The right to run it (I4) has been recorded before. */
export function dispatchCall(draft: Draft, callId: string, attempt: number): void {
  const { run } = draft;
  const call = draft.call(callId);
  if (run === undefined || call === undefined) return;
  if (run.ending === undefined && isExpired(run, draft.atMs)) { expireRun(draft); return; }
  if (blockedBy(draft, call)) { recordResult(draft, call, "failed", plain(BLOCKED)); return; }
  const fault = consentFault(call, { atMs: draft.atMs, policyVersion: draft.command.policyVersion });
  if (fault !== undefined) { settleUnconsented(draft, call, fault); return; }
  const grant = call.grant ?? { issuedAtMs: draft.atMs, expiresAtMs: draft.atMs + GRANT_TTL_MS };
  const deadlineAtMs = draft.atMs + call.timeoutMs + TOOL_GRACE_MS;
  if (call.grant !== undefined && deadlineAtMs > grant.expiresAtMs) { grantTooOld(draft, call); return; }
  draft.emit({ type: "ToolCallDispatched", callId, try: attempt, deadlineAtMs, grantIssuedAtMs: grant.issuedAtMs, grantExpiresAtMs: grant.expiresAtMs });
}

/** A grant is minted once per call, never again: the worker may have forgotten that it ran. The model may propose the call anew. */
function grantTooOld(draft: Draft, call: ToolCall): void {
  recordResult(draft, call, "failed", plain("not run again: its permission has expired; propose the call anew if it is still needed"));
}
