/**
 * Owns: what cannot be in a sound state: a run, call or approval for which nothing is outstanding, so that nothing would ever
 * move it. `decide` never leads there (a property test says so); a lost or damaged document, or an older build's fault, may.
 */
import type { Repair } from "./command.js";
import { modelOf, openCallsOf, runOf } from "./parts.js";
import type { OpenSession, OutboxRow, ToolCall } from "./state.js";

export function faultsOf(state: OpenSession): Repair[] {
  const run = runOf(state);
  const calls = run?.calls ?? [];
  const faults: Repair[] = [...state.outbox.filter((row) => isOrphaned(state, row, calls)).map(({ rowId }): Repair => ({ what: "row_orphaned", subject: rowId })), ...calls.flatMap((call) => callFault(state, call)), ...state.approvals.flatMap(({ approvalId, runId, callId }): Repair[] => {
    const asked = callId === undefined || calls.some(({ life }) => "approvalId" in life && life.approvalId === approvalId);
    return runId === run?.runId && asked ? [] : [{ what: "approval_orphaned", subject: approvalId }];
  })];
  if (run === undefined || faults.length > 0 || modelOf(state) !== undefined || state.approvals.length > 0 || openCallsOf(run).length > 0) return faults;
  return [{ what: "run_stuck", subject: run.runId }];
}

/** It would be published for ever: what clears it cannot come any more. */
function isOrphaned(state: OpenSession, { kind, subject }: OutboxRow, calls: readonly ToolCall[]): boolean {
  if (kind === "tool_request") return !calls.some(({ callId, life }) => callId === subject && life.phase === "dispatched");
  return kind === "approval_pending" && !state.approvals.some(({ approvalId }) => approvalId === subject);
}

function callFault(state: OpenSession, { callId, life }: ToolCall): Repair[] {
  switch (life.phase) {
    case "proposed": return [{ what: "call_unjudged", subject: callId }];
    case "awaiting_approval": case "unknown": case "escalated":
      return state.approvals.some((record) => record.approvalId === life.approvalId) ? [] : [{ what: "question_lost", subject: callId }];
    case "dispatched": {
      const known = life.claimedBy !== undefined || state.outbox.some((row) => row.kind === "tool_request" && row.subject === callId);
      return known ? [] : [{ what: "request_lost", subject: callId }];
    }
    case "waiting_retry": case "finished": return [];
  }
}
