/**
 * Owns: shortening the journal of a living session (I9). Only at rest, so that nothing in the state points into what goes; never what
 * the model is still shown, the newest entries, or one that is younger than a day (a writer that stood still may come back until then).
 * The first entry of a life stays: it keeps a host that has lost the document from beginning again at its revision.
 */
import type { CommandOf, Decision } from "../command.js";
import { ERASE_AFTER_MS, MIN_KEPT_ENTRIES } from "../limits.js";
import type { OpenSession, SessionState } from "../state.js";
import { Draft } from "./draft.js";

/** First entry that the next compaction may take. */
export function compactableFromRev(state: OpenSession): number {
  return state.keptFromRev ?? (state.baseRev ?? 1) + 1;
}

/** Last entry that may go, whatever its age. */
export function compactableToRev(state: OpenSession): number {
  const shownFromRev = state.window.rounds.length === 0 ? state.rev : state.window.fromRev;
  return Math.min(state.rev - MIN_KEPT_ENTRIES, shownFromRev - 1);
}

/** Nothing is open, waits, or is still to be erased. */
export function isCompactable(state: SessionState): state is OpenSession {
  return state.status === "IDLE" && state.quarantine === undefined && state.erase === undefined && state.mailbox.length + state.outbox.length === 0;
}

/** Does nothing where it does not fit any more: the console asks again. */
export function compactJournal(state: SessionState, command: CommandOf<"Compact">): Decision {
  const draft = new Draft(state, command);
  const { toRev, toDigest, toAtMs } = command;
  if (!isCompactable(state) || draft.atMs - toAtMs < ERASE_AFTER_MS) return draft.accept();
  const fromRev = compactableFromRev(state);
  if (toRev < fromRev || toRev > compactableToRev(state)) return draft.accept();
  draft.emit({
    // As it is stored: a member that is undefined is none.
    type: "JournalCompacted", toRev, toDigest, state: JSON.parse(JSON.stringify(state)) as Record<string, unknown>,
    erase: { fromRev, toRev, dueAtMs: draft.atMs },
  });
  return draft.accept();
}
