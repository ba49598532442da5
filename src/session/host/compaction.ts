/**
 * Owns: finding where a journal may be cut: behind the last entry up to which every event has its outcome (a run boundary), that is
 * old enough, not among the newest, and that the console has shown to have. What is to go is read once, and its chain of digests is
 * checked on the way: a damaged journal is left as it is, for the check-up.
 */
import type { JournalEntry } from "../../contracts/journal.js";
import type { SessionCompact } from "../../contracts/messages.js";
import { compactableFromRev, compactableToRev, isCompactable } from "../core/decide/compaction.js";
import { continuesFrom } from "../core/digest.js";
import { ERASE_AFTER_MS } from "../core/limits.js";
import type { OpenSession, SessionState } from "../core/state.js";

const PAGE = 200;
/** Entries that one step takes, a boundary allowing; the console asks again for the rest. */
const MAX_STEP = 1_000;

export interface Cut { readonly toRev: number; readonly toDigest: string; readonly toAtMs: number }

/** Where to cut; undefined where nothing may go, or so little that its snapshot would not be worth it. */
export async function findCut(state: SessionState, ask: SessionCompact & { readonly nowMs: number }, read: (fromRev: number, toRev: number) => Promise<JournalEntry[]>): Promise<Cut | undefined> {
  if (!isCompactable(state)) return undefined;
  const fromRev = compactableFromRev(state);
  const toRev = Math.min(compactableToRev(state), state.rev - ask.keepEntries, ask.projectedRev);
  if (toRev - fromRev + 1 < worthwhile(ask.keepEntries)) return undefined;
  const cut = await lastBoundary({ fromRev, toRev, beforeMs: ask.nowMs - Math.max(ask.olderThanMs, ERASE_AFTER_MS) }, state, read);
  return cut === undefined || cut.toRev - fromRev + 1 < worthwhile(ask.keepEntries) ? undefined : cut;
}

/** Least number of entries to go: the whole journal stays below one and a half times what is kept. */
function worthwhile(keepEntries: number): number { return Math.min(MAX_STEP, Math.ceil(keepEntries / 2)); }

async function lastBoundary(range: { fromRev: number; toRev: number; beforeMs: number }, state: OpenSession, read: (fromRev: number, toRev: number) => Promise<JournalEntry[]>): Promise<Cut | undefined> {
  const firstRev = state.keptFromRev ?? state.baseRev ?? 1;
  const open = new Set<string>();
  let cut: Cut | undefined;
  let previous: JournalEntry | undefined;
  for (let pageFrom = firstRev; pageFrom <= range.toRev; pageFrom += PAGE) {
    const entries = await read(pageFrom, Math.min(range.toRev, pageFrom + PAGE - 1));
    for (const entry of entries) {
      if (entry.rev !== (previous?.rev ?? firstRev - 1) + 1 || (previous !== undefined && !continuesFrom(previous.digest, entry))) return undefined;
      previous = entry;
      if (entry.atMs > range.beforeMs) return cut;
      follow(open, entry);
      if (open.size === 0 && entry.rev >= range.fromRev) cut = { toRev: entry.rev, toDigest: entry.digest, toAtMs: entry.atMs };
      if (cut !== undefined && entry.rev - range.fromRev + 1 >= MAX_STEP) return cut;
    }
  }
  return cut;
}

/** Events without outcome. The first entry of the range begins at a boundary, so that none is open before it. */
function follow(open: Set<string>, { events }: JournalEntry): void {
  for (const event of events) {
    if (event.type === "EventReceived") open.add(event.key);
    else if (event.type === "RunEnded" || event.type === "EventRejected") open.delete(event.key);
  }
}
