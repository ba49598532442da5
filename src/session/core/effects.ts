/** Owns: what the outside has to do after a commit. Derived, never stored: a lost effect is found again by the next Tick. */
import type { SessionEvent } from "../../contracts/journal.js";
import type { Effect } from "./command.js";
import { modelOf, runOf } from "./parts.js";
import { nextDueAtMs } from "./rest.js";
import type { OutboxRow, SessionState } from "./state.js";

export function effectsOf(before: SessionState, events: readonly SessionEvent[], after: SessionState): Effect[] {
  return [...aborts(events), ...calls(events, after), ...publications(before, after), ...wake(before, after), ...next(after)];
}

function aborts(events: readonly SessionEvent[]): Effect[] {
  return events.flatMap((event): Effect[] => {
    const givenUp = event.type === "ModelCallFailed" && (event.kind === "aborted" || event.kind === "lost");
    return givenUp ? [{ type: "AbortModel", runId: event.runId, step: event.step, attempt: event.attempt }] : [];
  });
}

/** Only the call that is still open after the commit. */
function calls(events: readonly SessionEvent[], after: SessionState): Effect[] {
  const model = modelOf(after);
  const run = runOf(after);
  if (run === undefined || model?.phase !== "running") return [];
  const started = events.some((event) => event.type === "ModelCallStarted" && event.runId === run.runId && event.step === model.step && event.attempt === model.attempt);
  return started ? [{ type: "CallModel", runId: run.runId, step: model.step, attempt: model.attempt }] : [];
}

function publications(before: SessionState, after: SessionState): Effect[] {
  const known = new Map(rowsOf(before).map((row) => [row.rowId, row.publication]));
  return rowsOf(after).filter((row) => known.get(row.rowId) !== row.publication).map((row) => ({ type: "Publish", rowId: row.rowId }));
}

function rowsOf(state: SessionState): readonly OutboxRow[] {
  return state.status === "NEW" ? [] : state.outbox;
}

function wake(before: SessionState, after: SessionState): Effect[] {
  const atMs = nextDueAtMs(after);
  return atMs === undefined || atMs === nextDueAtMs(before) ? [] : [{ type: "WakeAt", atMs }];
}

function next(after: SessionState): Effect[] {
  return after.status === "IDLE" && after.mailbox.length > 0 && after.quarantine === undefined ? [{ type: "TakeNext" }] : [];
}
