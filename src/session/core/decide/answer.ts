/** Owns: what an answer of the model leads to: the end of the run, or its calls judged one by one (I4, I5). */
import type { ProposedCall } from "../../../contracts/journal.js";
import { approvalIdOf, argsDigest } from "../../../contracts/ids.js";
import type { ApprovalRecord } from "../../../contracts/decisions.js";
import type { CommandOf, Decision, JudgedCall } from "../command.js";
import { MAX_CALLS, MAX_MESSAGE, MAX_QUESTION } from "../limits.js";
import { mayAllowSession } from "../policy/judge.js";
import type { Run, SessionState } from "../state.js";
import { allowanceFor } from "./allowances.js";
import { clip, Draft, given, plain } from "./draft.js";
import { finishRun, recordResult } from "./ending.js";
import { advance, BLOCKED, blockedBy, dispatchCall, expireRun, isExpired } from "./progress.js";
import { ruleOf } from "./verdict.js";

type Judged = Extract<JudgedCall, { ok: true }>;

export function recordAnswer(state: SessionState, command: CommandOf<"RecordAnswer">): Decision {
  const draft = new Draft(state, command);
  const { run, model } = draft;
  const current = run?.runId === command.runId && model?.phase === "running" && model.step === command.step && model.attempt === command.attempt;
  if (run === undefined || !current) return bookStale(draft, command);
  const refused = command.stop === "refusal";
  draft.emit({
    type: "ModelAnswered", runId: run.runId, step: command.step, attempt: command.attempt, model: command.model, text: command.text,
    calls: refused ? [] : command.calls.map(proposed), stop: command.stop, usage: command.usage, costUsd: command.costUsd, ...given("carry", command.carry),
  });
  if (refused) finishRun(draft, { outcome: "failed", code: "model_refused", text: command.text });
  else if (command.calls.length > 0) judgeCalls(draft, run, command);
  else if (run.steerPending) advance(draft, command.reserveUsd);
  else finishRun(draft, { outcome: "completed", ...given("code", command.stop === "max_tokens" ? "truncated" : undefined), text: command.text });
  return draft.accept();
}

/** Too late to count. Its cost is booked once; an answer that was booked before (a repeated command) does nothing. */
function bookStale(draft: Draft, command: CommandOf<"RecordAnswer">): Decision {
  const { runId, step, attempt, usage, costUsd } = command;
  if (isUnbooked(draft.state, command)) draft.emit({ type: "ModelCostBooked", runId, step, attempt, usage, costUsd });
  return draft.accept();
}

export function isUnbooked(state: SessionState, at: { runId: string; step: number; attempt: number }): boolean {
  return state.status !== "NEW" && state.unbooked.some((item) => item.runId === at.runId && item.step === at.step && item.attempt === at.attempt);
}

function proposed(call: JudgedCall): ProposedCall {
  const { callId, providerCallId, tool, args } = call;
  if (!call.ok) return { callId, providerCallId, tool, args, argsDigest: argsDigest(args), effects: "none", critical: false, timeoutMs: 0, maxTries: 1 };
  return { callId, providerCallId, tool, args, argsDigest: call.argsDigest, effects: call.effects, critical: call.critical, timeoutMs: call.timeoutMs, maxTries: call.maxTries };
}

function judgeCalls(draft: Draft, run: Run, command: CommandOf<"RecordAnswer">): void {
  for (const call of command.calls.slice(MAX_CALLS)) {
    recordResult(draft, call, "failed", plain(`not run: one answer may hold ${String(MAX_CALLS)} calls; propose it again`));
  }
  if (isExpired(run, draft.atMs)) { expireRun(draft); return; }
  for (const call of command.calls.slice(0, MAX_CALLS)) {
    if (draft.run?.runId === run.runId) judgeCall(draft, call);
  }
  advance(draft, command.reserveUsd);
}

function judgeCall(draft: Draft, call: JudgedCall): void {
  if (!call.ok) { recordResult(draft, call, "failed", plain(clip(call.message, MAX_MESSAGE))); return; }
  const { rule, policyVersion, reason, verdict } = call.verdict;
  if (verdict === "deny") {
    draft.emit({ type: "ToolCallDenied", callId: call.callId, rule, policyVersion, reason });
    recordResult(draft, call, "denied", plain(clip(`denied by policy: ${reason}`, MAX_MESSAGE)));
    return;
  }
  if (blockedBy(draft, call)) { recordResult(draft, call, "failed", plain(BLOCKED)); return; }
  if (wasRejected(draft, call)) { recordResult(draft, call, "rejected", plain("a person has already rejected this call with these arguments in this run")); return; }
  const allowanceId = verdict === "ask" && draft.run !== undefined ? allowanceFor(draft, draft.run, call) : undefined;
  if (verdict === "ask" && allowanceId === undefined) { openApproval(draft, call); return; }
  draft.emit({ type: "ToolCallAllowed", callId: call.callId, rule, policyVersion, ...given("allowanceId", allowanceId) });
  dispatchCall(draft, call.callId, 1);
}

function wasRejected(draft: Draft, call: Judged): boolean {
  return draft.run?.rejected.some((other) => other.tool === call.tool && other.argsDigest === call.argsDigest) ?? false;
}

function openApproval(draft: Draft, call: Judged): void {
  const { run } = draft;
  if (run === undefined) return;
  const { verdict } = call;
  const ttlMs = verdict.expiresInMs ?? draft.command.limits.approvalTtlMs;
  const expiresAtMs = Math.min(draft.atMs + ttlMs, run.expiresAtMs ?? Infinity);
  const chain = (verdict.chain ?? []).map(({ afterMs, to }) => ({ atMs: draft.atMs + afterMs, ...(to === undefined ? {} : { to: { roles: [...to.roles], groups: [...to.groups] } }) }))
    .filter(({ atMs }) => verdict.onExpiry === "keep" || atMs < expiresAtMs);
  const record: ApprovalRecord = {
    approvalId: approvalIdOf(call.callId, 1), version: 1, kind: "tool_call", runId: run.runId, callId: call.callId, tool: call.tool,
    argsRev: draft.entry.rev, argsDigest: call.argsDigest, risk: verdict.risk, rule: verdict.rule, policyVersion: verdict.policyVersion,
    question: clip(verdict.reason, MAX_QUESTION), allowed: [...verdict.allowed],
    approvers: ruleOf(verdict.approvers), requestedBy: run.requestedBy, openedAtMs: draft.atMs,
    expiresAtMs, onExpiry: verdict.onExpiry, signatures: [], ...(chain.length === 0 ? {} : { chain }),
    ...(mayAllowSession(verdict) ? { allowSession: true } : {}), ...given("consentForMs", verdict.consentForMs), ...given("toolDigest", call.toolDigest),
  };
  draft.emit({ type: "ApprovalOpened", record });
}
