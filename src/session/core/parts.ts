/**
 * Owns: taking a state apart and putting it together. The status is never stored by hand: `assemble` derives it, by
 * precedence ESCALATED > AWAITING_APPROVAL > PLANNING | SUMMARIZING > EXECUTING_TOOL.
 */
import type { ModelCall, OpenSession, OutboxRow, Run, SessionCommon, SessionState, ToolCall } from "./state.js";

export interface Parts { readonly common: SessionCommon; readonly run?: Run; readonly model?: ModelCall }

/** Which journal entry an event is in. */
export interface EntryAt { readonly rev: number; readonly atMs: number }

export function runOf(state: SessionState): Run | undefined {
  return "run" in state ? state.run : undefined;
}

export function modelOf(state: SessionState): ModelCall | undefined {
  return "model" in state ? state.model : undefined;
}

/** Everybody whose words the run is about: they may not decide where a rule says so. */
export function requestersOf(run: Run): string[] {
  return [run.requestedBy, ...run.steered.flatMap(({ by }) => by ?? [])];
}

/** Calls of the latest answer that have no result yet. */
export function openCallsOf(run: Run): ToolCall[] {
  return run.calls.filter((call) => call.life.phase !== "finished");
}

export function partsOf(state: OpenSession): Parts {
  const run = runOf(state);
  const model = modelOf(state);
  return { common: commonOf(state), ...(run === undefined ? {} : { run }), ...(model === undefined ? {} : { model }) };
}

function commonOf(state: OpenSession): SessionCommon {
  return {
    v: state.v, tenant: state.tenant, sessionId: state.sessionId, actorId: state.actorId, agent: state.agent, agentVersion: state.agentVersion,
    rev: state.rev, journalDigest: state.journalDigest, createdAtMs: state.createdAtMs, updatedAtMs: state.updatedAtMs,
    mailbox: state.mailbox, outbox: state.outbox, approvals: state.approvals, window: state.window, unknownCalls: state.unknownCalls,
    unbooked: state.unbooked, recentRuns: state.recentRuns, recentDecisions: state.recentDecisions, recentCommands: state.recentCommands,
    ...(state.allowances === undefined ? {} : { allowances: state.allowances }),
    totals: state.totals, guard: state.guard, ...(state.closing === undefined ? {} : { closing: state.closing }),
    ...(state.baseRev === undefined ? {} : { baseRev: state.baseRev }), ...(state.keptFromRev === undefined ? {} : { keptFromRev: state.keptFromRev }), ...(state.erase === undefined ? {} : { erase: state.erase }), ...(state.deleted === undefined ? {} : { deleted: state.deleted }),
    ...(state.quarantine === undefined ? {} : { quarantine: state.quarantine }), ...(state.checkedFromRev === undefined ? {} : { checkedFromRev: state.checkedFromRev }),
  };
}

export function assemble(parts: Parts): OpenSession {
  const { common, run, model } = parts;
  if (common.deleted !== undefined) return { ...common, status: "DELETED" };
  if (run === undefined) return common.closing === undefined ? { ...common, status: "IDLE" } : { ...common, status: "CLOSED", reason: common.closing };
  const escalation = common.approvals.find((record) => record.kind === "escalation");
  if (escalation !== undefined) {
    const about = { reason: escalation.escalation ?? "model_failed", approvalId: escalation.approvalId, message: escalation.question };
    return { ...common, status: "ESCALATED", run, escalation: about };
  }
  if (common.approvals.length > 0) return { ...common, status: "AWAITING_APPROVAL", run };
  if (model === undefined) return { ...common, status: "EXECUTING_TOOL", run };
  return { ...common, status: model.step === 1 ? "PLANNING" : "SUMMARIZING", run, model };
}

export function withCommon(parts: Parts, patch: Partial<SessionCommon>): Parts {
  return { ...parts, common: { ...parts.common, ...patch } };
}

/** Patches the open run; without one, nothing changes. */
export function withRun(parts: Parts, patch: (run: Run) => Partial<Run>): Parts {
  return parts.run === undefined ? parts : { ...parts, run: { ...parts.run, ...patch(parts.run) } };
}

export function withModel(parts: Parts, model: ModelCall | undefined): Parts {
  const { common, run } = parts;
  return { common, ...(run === undefined ? {} : { run }), ...(model === undefined ? {} : { model }) };
}

export function withCall(parts: Parts, callId: string, patch: (call: ToolCall) => Partial<ToolCall>): Parts {
  return withRun(parts, (run) => ({ calls: run.calls.map((call) => (call.callId === callId ? { ...call, ...patch(call) } : call)) }));
}

export function callOf(run: Run | undefined, callId: string): ToolCall | undefined {
  return run?.calls.find((call) => call.callId === callId);
}

/** Appends to a bounded list; the oldest falls out (I9). */
export function ring<T>(list: readonly T[], item: T, max: number): T[] {
  return [...list, item].slice(-max);
}

export function addRow(parts: Parts, row: Pick<OutboxRow, "rowId" | "kind" | "subject">, entry: EntryAt): Parts {
  const outbox = [...parts.common.outbox.filter((other) => other.rowId !== row.rowId), { ...row, rev: entry.rev, publication: 1, publishedAtMs: entry.atMs }];
  return withCommon(parts, { outbox });
}

export function dropRows(parts: Parts, gone: (row: OutboxRow) => boolean): Parts {
  return parts.common.outbox.some(gone) ? withCommon(parts, { outbox: parts.common.outbox.filter((row) => !gone(row)) }) : parts;
}

/** Money is kept to the nano-dollar, so that sums of decimals stay readable. */
export function usd(amount: number): number {
  return Math.round(amount * 1e9) / 1e9;
}
