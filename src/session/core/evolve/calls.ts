/** Owns: how the life of tool calls folds into the state. Outbox rows of a call are cleared here, by evidence. */
import type { SessionEventOf } from "../../../contracts/journal.js";
import { RING } from "../limits.js";
import { addRow, callOf, dropRows, ring, withCall, withCommon, withRun, type EntryAt, type Parts } from "../parts.js";
import type { Run } from "../state.js";
import { useAllowance } from "./allowances.js";
import type { AppliersOf } from "./applier.js";
import { growRound } from "./window.js";

function dropToolRows(parts: Parts, callId: string): Parts {
  return dropRows(parts, (row) => row.kind === "tool_request" && row.subject === callId);
}

function known(parts: Parts, callId: string): Parts {
  return withCommon(parts, { unknownCalls: parts.common.unknownCalls.filter((call) => call.callId !== callId) });
}

function allowed(parts: Parts, { callId, policyVersion, allowanceId }: SessionEventOf<"ToolCallAllowed">): Parts {
  const permitted = withCall(parts, callId, ({ argsDigest }) => ({ permit: { policyVersion, argsDigest } }));
  return allowanceId === undefined ? permitted : useAllowance(permitted, allowanceId);
}

function dispatched(parts: Parts, event: SessionEventOf<"ToolCallDispatched">, entry: EntryAt): Parts {
  const { totals } = parts.common;
  const counted = withCommon(parts, { totals: { ...totals, toolCalls: totals.toolCalls + (event.try === 1 ? 1 : 0) } });
  const moved = withCall(known(counted, event.callId), event.callId, () => ({
    grant: { issuedAtMs: event.grantIssuedAtMs, expiresAtMs: event.grantExpiresAtMs },
    life: { phase: "dispatched", try: event.try, deadlineAtMs: event.deadlineAtMs },
  }));
  return addRow(dropToolRows(moved, event.callId), { rowId: `tool:${event.callId}:${String(event.try)}`, kind: "tool_request", subject: event.callId }, entry);
}

function claimed(parts: Parts, event: SessionEventOf<"ToolCallClaimed">, entry: EntryAt): Parts {
  const row = parts.common.outbox.find((open) => open.kind === "tool_request" && open.subject === event.callId);
  return withCall(dropToolRows(parts, event.callId), event.callId, ({ life }) => (
    life.phase === "dispatched" ? { life: { ...life, claimedBy: event.worker, askedAtMs: entry.atMs, publications: row?.publication ?? life.publications ?? 1 } } : {}
  ));
}

function tryFailed(parts: Parts, event: SessionEventOf<"ToolTryFailed">): Parts {
  const { retryAtMs } = event;
  return withCall(dropToolRows(parts, event.callId), event.callId, (call) => ({
    ...(event.kind === "timeout" && call.effects !== "none" ? { unproven: true } : {}),
    ...(retryAtMs === undefined ? {} : { life: { phase: "waiting_retry", try: event.try, dueAtMs: retryAtMs } }),
  }));
}

function outcomeUnknown(parts: Parts, event: SessionEventOf<"ToolOutcomeUnknown">): Parts {
  const call = callOf(parts.run, event.callId);
  if (call === undefined || parts.run === undefined) return parts;
  const item = { callId: call.callId, tool: call.tool, argsDigest: call.argsDigest, runId: parts.run.runId, ...(call.unproven === true ? { unproven: call.unproven } : {}) };
  const listed = withCommon(known(parts, call.callId), { unknownCalls: ring(known(parts, call.callId).common.unknownCalls, item, RING) });
  return withCall(dropToolRows(listed, call.callId), call.callId, () => ({ life: { phase: "unknown", try: event.try, approvalId: "" } }));
}

function reflectionsAfter(run: Run, status: string): number {
  if (status === "succeeded") return 0;
  return run.reflections + (status === "failed" || status === "timed_out" ? 1 : 0);
}

function resultRecorded(parts: Parts, event: SessionEventOf<"ToolResultRecorded">): Parts {
  const call = callOf(parts.run, event.callId);
  const settled = event.status === "responded" ? known(parts, event.callId) : parts;
  const finished = withCall(dropToolRows(settled, event.callId), event.callId, () => ({ life: { phase: "finished", status: event.status } }));
  const counted = withRun(finished, (run) => ({
    reflections: reflectionsAfter(run, event.status),
    ...(event.status === "rejected" && call !== undefined ? { rejected: ring(run.rejected, { tool: call.tool, argsDigest: call.argsDigest }, RING) } : {}),
  }));
  return growRound(counted, event.content.text);
}

export const callAppliers: AppliersOf<
  "ToolCallAllowed" | "ToolCallDenied" | "ToolCallDispatched" | "ToolCallClaimed" | "ToolTryFailed" | "ToolOutcomeUnknown" | "ToolResultRecorded" | "LateResultRecorded"
> = {
  ToolCallAllowed: allowed,
  ToolCallDenied: (parts) => parts,
  ToolCallDispatched: dispatched,
  ToolCallClaimed: claimed,
  ToolTryFailed: tryFailed,
  ToolOutcomeUnknown: outcomeUnknown,
  ToolResultRecorded: resultRecorded,
  LateResultRecorded: (parts, event) => known(parts, event.callId),
};
