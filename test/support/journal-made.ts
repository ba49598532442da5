/** Owns: journals of made-up sessions, entry by entry as a session commits them: for the read model's tests and its bench. Deterministic. */
import { actorIdOf } from "../../src/contracts/ids.js";
import type { JournalAppended, JournalEntry, SessionEvent, SessionSummary } from "../../src/contracts/journal.js";

export interface MadeSession { readonly index: number; /** Model calls; all but the last call one tool. */ readonly modelCalls: number; readonly startMs: number; readonly tenant?: string }

export const AGENTS = ["assistant", "order-triage", "refunds", "support"] as const;
const TOPICS = ["refund", "delivery", "invoice", "address", "cancellation", "warranty", "password", "discount"] as const;
const STATUSES = ["IDLE", "IDLE", "IDLE", "IDLE", "IDLE", "IDLE", "CLOSED", "EXECUTING_TOOL", "PLANNING", "ESCALATED"] as const;

/** One run of a session: what it was told, model calls and tool calls in turn, its end. */
export function madeJournal({ index, modelCalls, startMs, tenant = "default" }: MadeSession): JournalAppended[] {
  const sessionId = `case-${String(index).padStart(6, "0")}`;
  const actorId = actorIdOf(tenant, sessionId);
  const agent = AGENTS[index % AGENTS.length] ?? "assistant";
  const runId = `run_${String(index)}`;
  const made: JournalAppended[] = [];
  let rev = 0;
  const totals = { modelCalls: 0, toolCalls: 0, inputTokens: 0, outputTokens: 0, costUsd: 0 };
  const commit = (events: SessionEvent[], status: SessionSummary["status"]): void => {
    rev += 1;
    const atMs = startMs + rev * 250;
    const entry: JournalEntry = { v: 1, actorId, rev, commitId: `c${String(rev)}`, atMs, command: "Made", host: "h", digest: `d${String(rev)}`, events };
    made.push({ entry, summary: { tenant, sessionId, actorId, agent, agentVersion: "1", status, rev, createdAtMs: startMs, updatedAtMs: atMs, waitingFor: "the next event", mailboxLength: 0, openApprovals: 0, ...totals } });
  };
  const input = `Customer ${String(index)} asks about ${TOPICS[index % TOPICS.length] ?? "nothing"}: order ord-${String(index * 7 % 90_000)} please help`;
  commit([
    { type: "SessionOpened", tenant, sessionId, actorId, agent, agentVersion: "1" },
    { type: "RunStarted", runId, key: `k${String(index)}`, eventRev: 1, input, requestedBy: `user-${String(index % 500)}`, correlationId: runId },
    { type: "ModelCallStarted", runId, step: 1, attempt: 1, host: "h", reservedUsd: 0.01 },
  ], "PLANNING");
  for (let step = 1; step <= modelCalls; step += 1) {
    const last = step === modelCalls;
    const callId = `call_${String(index)}_${String(step)}`;
    const rule = step % 3 === 0 ? "small-refunds" : "read-only";
    Object.assign(totals, { modelCalls: totals.modelCalls + 1, inputTokens: totals.inputTokens + 900, outputTokens: totals.outputTokens + 60, costUsd: totals.costUsd + 0.003 });
    commit([{
      type: "ModelAnswered", runId, step, attempt: 1, model: index % 2 === 0 ? "big-model" : "small-model", text: last ? "Done." : "", stop: last ? "end" : "tool_use", usage: { inputTokens: 900, outputTokens: 60, cacheReadTokens: 0, cacheWriteTokens: 0 }, costUsd: 0.003,
      calls: last ? [] : [{ callId, providerCallId: callId, tool: "look_up_order", args: "{}", argsDigest: "sha256:00", effects: "none", critical: false, timeoutMs: 1_000, maxTries: 3 }],
    }, ...(last ? [{ type: "RunEnded" as const, runId, key: `k${String(index)}`, outcome: "completed" as const, text: "Done." }]
      : [{ type: "ToolCallAllowed" as const, callId, rule, policyVersion: "p-1" }, { type: "ToolCallDispatched" as const, callId, try: 1, deadlineAtMs: startMs + 60_000, grantIssuedAtMs: startMs, grantExpiresAtMs: startMs + 60_000 }])],
    last ? STATUSES[index % STATUSES.length] ?? "IDLE" : "EXECUTING_TOOL");
    if (last) break;
    totals.toolCalls += 1;
    commit([
      { type: "ToolResultRecorded", callId, providerCallId: callId, tool: "look_up_order", status: "succeeded", content: { text: "{}", truncated: false } },
      { type: "ModelCallStarted", runId, step: step + 1, attempt: 1, host: "h", reservedUsd: 0.01 },
    ], "SUMMARIZING");
  }
  return made;
}
