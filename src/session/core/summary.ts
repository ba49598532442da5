/** Owns: what lists show of a session. */
import type { SessionSummary } from "../../contracts/journal.js";
import type { Risk } from "../../contracts/tools.js";
import { openCallsOf, runOf } from "./parts.js";
import { isBusy, nextDueAtMs } from "./rest.js";
import type { ModelCall, OpenSession, Run, ToolCall } from "./state.js";

export function summaryOf(state: OpenSession): SessionSummary {
  const run = runOf(state);
  const risk = highestRisk(state);
  const dueAtMs = lookAgainAtMs(state);
  const { modelCalls, toolCalls, inputTokens, outputTokens, costUsd } = state.totals;
  return {
    tenant: state.tenant, sessionId: state.sessionId, actorId: state.actorId, agent: state.agent, agentVersion: state.agentVersion,
    status: state.status, rev: state.rev, createdAtMs: state.createdAtMs, updatedAtMs: state.updatedAtMs,
    ...(run === undefined ? {} : { runId: run.runId }), waitingFor: waitingFor(state), mailboxLength: state.mailbox.length, openApprovals: state.approvals.length,
    modelCalls, toolCalls, inputTokens, outputTokens, costUsd,
    ...(dueAtMs === undefined ? {} : { nextDueAtMs: dueAtMs }), ...(risk === undefined ? {} : { risk }),
    ...(state.quarantine === undefined ? {} : { quarantine: { ...state.quarantine } }),
    ...(readableFromRev(state) > 1 ? { journalFromRev: readableFromRev(state) } : {}),
  };
}

/** The oldest entry that is shown: what was before was compacted, or belongs to a deleted life and is nobody's business any more. */
export function readableFromRev(state: OpenSession): number {
  return Math.max(1, state.baseRev ?? 1, state.keptFromRev ?? 1);
}

/** A session whose host and guard are lost (a wiped scheduler) has no deadline of its own: the console looks after its guard should have. */
const LOOK_MS = 6_000;

function lookAgainAtMs(state: OpenSession): number | undefined {
  const dueAtMs = nextDueAtMs(state);
  const lookAtMs = guardOverdueAtMs(state);
  return lookAtMs === undefined ? dueAtMs : Math.min(dueAtMs ?? Infinity, lookAtMs);
}

/** Also of a session that has nothing to do: its guard's last tick releases the guard, and one that was never registered does not tick. */
function guardOverdueAtMs(state: OpenSession): number | undefined {
  if (isBusy(state)) return state.updatedAtMs + LOOK_MS;
  const { armed, dueAtMs, periodMs } = state.guard;
  return armed && dueAtMs === undefined ? state.updatedAtMs + periodMs + LOOK_MS : undefined;
}

/** In words, for people. */
function waitingFor(state: OpenSession): string {
  if (state.quarantine !== undefined) return `an operator: quarantined (${state.quarantine.reason}): ${state.quarantine.message}`;
  switch (state.status) {
    case "IDLE": return state.mailbox.length === 0 ? "the next event" : `its turn: ${String(state.mailbox.length)} in the mailbox`;
    case "PLANNING": case "SUMMARIZING": return modelWords(state.model);
    case "EXECUTING_TOOL": return callWords(state.run);
    case "AWAITING_APPROVAL": return `a person's decision on ${state.approvals.map((record) => record.tool ?? "the run").join(", ")}`;
    case "ESCALATED": return `a person (${state.escalation.reason}): ${state.escalation.message}`;
    case "CLOSED": return "nothing: closed";
    case "DELETED": return state.erase === undefined ? "nothing: deleted" : "its journal to be erased: deleted";
  }
}

function modelWords(model: ModelCall): string {
  const where = `step ${String(model.step)}, attempt ${String(model.attempt)}`;
  return model.phase === "running" ? `the model (${where})` : `another try of the model (${where})`;
}

function callWords(run: Run): string {
  const words = openCallsOf(run).map(oneCall);
  return `${run.ending === undefined ? "" : `the end of the run (${run.ending.outcome}): `}${words.join(", ")}`;
}

function oneCall(call: ToolCall): string {
  const { life } = call;
  switch (life.phase) {
    case "dispatched": return `tool ${call.tool} (try ${String(life.try)})`;
    case "waiting_retry": return `tool ${call.tool} (try ${String(life.try + 1)} is due)`;
    case "proposed": case "awaiting_approval": case "unknown": case "escalated": case "finished": return `tool ${call.tool}`;
  }
}

const RANK: Record<Risk, number> = { low: 0, medium: 1, high: 2 };

function highestRisk(state: OpenSession): Risk | undefined {
  return state.approvals.map((record) => record.risk).sort((a, b) => RANK[b] - RANK[a])[0];
}
