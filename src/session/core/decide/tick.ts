/** Owns: everything that is due by the clock (guard, nudge, timer). Idempotent: a tick that finds nothing due emits nothing. */
import type { ApprovalRecord } from "../../../contracts/decisions.js";
import type { CommandOf, Decision } from "../command.js";
import { MAX_OUTBOX, REPUBLISH_MS, REPUBLISH_TOOL_MS } from "../limits.js";
import { guardIsIdle, reaskAtMs } from "../rest.js";
import type { SessionState } from "../state.js";
import { Draft, given, plain } from "./draft.js";
import { endRun, recordResult } from "./ending.js";
import { escalateExpired } from "./escalate.js";
import { expireWaiting } from "./intake.js";
import { loseModelCall, startDue } from "./model-call.js";
import { advance, dispatchCall, expireRun, isExpired } from "./progress.js";
import { failTry } from "./tries.js";

type Tick = CommandOf<"Tick">;

export function tick(state: SessionState, command: Tick): Decision {
  const draft = new Draft(state, command);
  expireMailbox(draft);
  const { run } = draft;
  if (run !== undefined && isExpired(run, draft.atMs)) expireRun(draft);
  tickModel(draft, command);
  for (const call of draft.run?.calls ?? []) tickCall(draft, call.callId);
  for (const record of draft.session.approvals) tickApproval(draft, record);
  advance(draft, command.reserveUsd);
  clearPublished(draft, command.published);
  republish(draft);
  releaseGuard(draft, command);
  return draft.accept();
}

/** Each leaves two publications, larger than its place in the mailbox: no more at once than the outbox holds, the others when there is room (I9). */
function expireMailbox(draft: Draft): void {
  for (const item of draft.session.mailbox) {
    if (draft.session.outbox.length >= MAX_OUTBOX) return;
    if (item.expiresAtMs !== undefined && item.expiresAtMs <= draft.atMs) expireWaiting(draft, item);
  }
}

function tickModel(draft: Draft, command: Tick): void {
  const { run, model } = draft;
  if (run === undefined || model === undefined) return;
  if (model.phase === "waiting") { startDue(draft, command.reserveUsd); return; }
  if (command.deadHosts.includes(model.host)) loseModelCall(draft, run, model, command.reserveUsd);
}

function tickCall(draft: Draft, callId: string): void {
  const call = draft.call(callId); // an earlier call of this tick may have ended the run
  if (call === undefined) return;
  const { life } = call;
  if (life.phase === "waiting_retry" && life.dueAtMs <= draft.atMs) { dispatchCall(draft, call.callId, life.try + 1); return; }
  if (life.phase !== "dispatched") return;
  if (life.deadlineAtMs <= draft.atMs) {
    failTry(draft, call, { try: life.try, kind: "timeout", message: "no result before the deadline" });
    return;
  }
  // The worker answers another request with the stored result, so a result that got lost comes back; where the worker died,
  // another takes the call over. Asked ever less often: a long tool is not a dead one.
  if ((reaskAtMs(draft.session, call) ?? Infinity) <= draft.atMs) draft.emit({ type: "PublicationRepeated", rowId: `tool:${call.callId}:${String(life.try)}`, publication: (life.publications ?? 1) + 1 });
}

function tickApproval(draft: Draft, { approvalId }: ApprovalRecord): void {
  takeSteps(draft, approvalId);
  const { run } = draft;
  const record = draft.session.approvals.find((open) => open.approvalId === approvalId);
  if (run === undefined || record === undefined || record.onExpiry === "keep" || record.expiresAtMs === undefined || record.expiresAtMs > draft.atMs) return;
  draft.emit({ type: "ApprovalExpired", approvalId: record.approvalId, action: record.onExpiry });
  const call = record.callId === undefined ? undefined : draft.call(record.callId);
  if (call === undefined) return;
  if (record.onExpiry === "escalate") escalateExpired(draft, run, call, record);
  else recordResult(draft, call, "expired", plain("expired: nobody decided in time, so it did not run"));
  if (record.onExpiry === "stop") endRun(draft, { outcome: "expired", code: "approval_expired", text: `nobody decided in time about ${record.tool ?? "the run"}, and policy ends the run then` });
}

/** Steps of the chain that are due. After a long stillness several at once: those in between reach people too. */
function takeSteps(draft: Draft, approvalId: string): void {
  for (;;) {
    const record = draft.session.approvals.find((open) => open.approvalId === approvalId);
    const step = record?.chainDone ?? 0;
    const due = record?.chain?.[step];
    if (due === undefined || due.atMs > draft.atMs) return;
    draft.emit({ type: "ApprovalReminded", approvalId, step, ...given("to", due.to) });
  }
}

export function clearPublished(draft: Draft, published: readonly string[]): void {
  const rowIds = draft.session.outbox
    .filter((row) => (row.kind === "response" || row.kind === "dead_letter") && published.includes(row.rowId))
    .map((row) => row.rowId);
  if (rowIds.length > 0) draft.emit({ type: "PublicationsCleared", rowIds });
}

function republish(draft: Draft): void {
  for (const row of draft.session.outbox) {
    const waitMs = row.kind === "tool_request" ? REPUBLISH_TOOL_MS : REPUBLISH_MS;
    if (draft.atMs - row.publishedAtMs >= waitMs) draft.emit({ type: "PublicationRepeated", rowId: row.rowId, publication: row.publication + 1 });
  }
}

export function releaseGuard(draft: Draft, command: Tick): void {
  const { guard } = draft.session;
  const current = command.guardGeneration === undefined || command.guardGeneration === guard.generation;
  if (current && guardIsIdle(draft.state)) draft.emit({ type: "GuardReleased", generation: guard.generation });
}
