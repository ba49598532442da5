/** Owns: whether a session is busy, parked or at rest, when it must be looked at next, and the guard reminder's life (DESIGN 3). */
import type { SessionEvent } from "../../contracts/journal.js";
import { GUARD_BUSY_MS, GUARD_MODEL_MS, GUARD_PARKED_MS, REASK_BEFORE_MS, REASK_CAP_MS, REASK_MS } from "./limits.js";
import { modelOf, openCallsOf, runOf } from "./parts.js";
import type { OpenSession, SessionState, ToolCall } from "./state.js";

/** Something is outstanding that the outside must do or report. */
export function isBusy(state: SessionState): boolean {
  if (state.status === "NEW" || state.quarantine !== undefined) return false;
  if (state.outbox.length > 0 || modelOf(state) !== undefined) return true;
  if (state.status === "IDLE") return state.mailbox.length > 0;
  const run = runOf(state);
  return run !== undefined && openCallsOf(run).some((call) => call.life.phase === "dispatched" || call.life.phase === "waiting_retry");
}

/** Earliest time at which a Tick would have something to do; `undefined` where only the outside can move the session. */
export function nextDueAtMs(state: SessionState): number | undefined {
  if (state.status === "NEW" || state.quarantine !== undefined) return undefined;
  const run = runOf(state);
  const model = modelOf(state);
  const due = [
    ...state.mailbox.map((item) => item.expiresAtMs),
    ...state.approvals.filter((record) => record.onExpiry !== "keep").map((record) => record.expiresAtMs),
    ...state.approvals.map((record) => record.chain?.[record.chainDone ?? 0]?.atMs),
    ...(run?.calls ?? []).map((call) => callDueAtMs(state, call)),
    model?.phase === "waiting" ? model.dueAtMs : undefined,
    state.erase?.dueAtMs,
    run?.ending === undefined ? run?.expiresAtMs : undefined,
  ].filter((atMs) => atMs !== undefined);
  return due.length === 0 ? undefined : Math.min(...due);
}

function callDueAtMs(state: OpenSession, call: ToolCall): number | undefined {
  const { life } = call;
  if (life.phase === "waiting_retry") return life.dueAtMs;
  if (life.phase !== "dispatched") return undefined;
  return Math.min(reaskAtMs(state, call) ?? Infinity, life.deadlineAtMs);
}

/** When a claimed call that is quiet is asked for again; undefined while a request for it is on its way. */
export function reaskAtMs(state: OpenSession, call: ToolCall): number | undefined {
  const { life } = call;
  if (life.phase !== "dispatched" || life.claimedBy === undefined || life.askedAtMs === undefined) return undefined;
  if (state.outbox.some((row) => row.kind === "tool_request" && row.subject === call.callId)) return undefined;
  const soonMs = life.askedAtMs + Math.min(REASK_CAP_MS, REASK_MS * 2 ** ((life.publications ?? 1) - 1));
  const lastMs = life.deadlineAtMs - REASK_BEFORE_MS;
  return life.askedAtMs < lastMs ? Math.min(soonMs, lastMs) : soonMs;
}

/**
 * The guard to register before a commit that leads from `before` to `after`. One per busy period; a parked session
 * with a deadline has a slow one whose first tick is that deadline, and needs a fast one again when it becomes busy.
 */
export function guardEvents(before: SessionState, after: SessionState): SessionEvent[] {
  if (after.status === "NEW") return [];
  const busy = isBusy(after);
  const dueAtMs = nextDueAtMs(after);
  if (!busy && dueAtMs === undefined) return [];
  if (after.guard.armed && !tooSlow(after.guard, busy, dueAtMs)) return [];
  const generation = Math.max(after.guard.generation, before.status === "NEW" ? 0 : before.guard.generation) + 1;
  if (!busy) return [{ type: "GuardArmed", generation, periodMs: GUARD_PARKED_MS, ...(dueAtMs === undefined ? {} : { dueAtMs }) }];
  return [{ type: "GuardArmed", generation, periodMs: modelOf(after) === undefined ? GUARD_BUSY_MS : GUARD_MODEL_MS }];
}

/** The guard of a parked session, and it has become busy or has an earlier deadline. */
function tooSlow(guard: OpenSession["guard"], busy: boolean, dueAtMs: number | undefined): boolean {
  if (guard.periodMs !== GUARD_PARKED_MS) return false;
  return busy || (dueAtMs !== undefined && guard.dueAtMs !== undefined && dueAtMs < guard.dueAtMs);
}

/** A guard that was released, or followed by another: generations only go up, so no commit will use this one any more. */
export function guardIsOver(state: SessionState, generation: number): boolean {
  if (state.status === "NEW") return false;
  return state.guard.generation > generation || (state.guard.generation === generation && !state.guard.armed);
}

/** The armed guard has nothing left to guard, or is not the one for the deadline that a parked session waits for. */
export function guardIsIdle(state: SessionState): boolean {
  if (state.status === "NEW" || !state.guard.armed || isBusy(state)) return false;
  const dueAtMs = nextDueAtMs(state);
  return dueAtMs === undefined || state.guard.periodMs !== GUARD_PARKED_MS || state.guard.dueAtMs !== dueAtMs;
}
