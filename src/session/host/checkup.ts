/**
 * Owns: the check-up of a session whose document this process meets for the first time (start, another host's turn): the last
 * entries are there, continue the chain of digests and end in the document's own. It reads a bounded tail; only where that
 * is wrong is the whole journal read (from its newest checkpoint on), which is the truth (I7): if it is whole, the document is folded from it anew, else the
 * session is quarantined.
 */
import { isCheckpoint, type JournalEntry, type QuarantineReason } from "../../contracts/journal.js";
import { faultsOf } from "../core/checkup.js";
import type { Repair } from "../core/command.js";
import { continuesFrom } from "../core/digest.js";
import { evolveAll } from "../core/evolve.js";
import { readableFromRev } from "../core/summary.js";
import { NEW_SESSION, type OpenSession, type SessionState } from "../core/state.js";

/** Entries before the head that are looked at, and the one that must not be there behind it. */
export const CHECKED_ENTRIES = 8;
const PAGE = 200;
/** A longer journal is not folded anew: a repair may take seconds, not minutes. */
export const MAX_REBUILT = 20_000;

export interface Findings {
  /** What to go on from: the document, or what the journal folds to. */
  readonly state: OpenSession;
  readonly found: readonly Repair[];
  readonly quarantine?: { readonly reason: QuarantineReason; readonly message: string };
}

type Fault = NonNullable<Findings["quarantine"]>;
/** What is read of the session. */
export interface Journal {
  entries(fromRev: number, toRev: number): Promise<JournalEntry[]>;
  /** Revision of the newest entry that is whole in itself, where there is one. */
  checkpoint(): Promise<number | undefined>;
}

/** What is wrong with the session; undefined where nothing is. Another host that commits meanwhile looks like a fault: load again before you believe it. */
export async function examine(state: SessionState, journal: Journal): Promise<Findings | undefined> {
  if (state.status === "NEW") return await lostDocument(journal);
  if (state.quarantine !== undefined) return undefined;
  const fromRev = Math.max(1, readableFromRev(state), state.checkedFromRev ?? 1, state.rev - CHECKED_ENTRIES + 1);
  const fault = tailFault(state, fromRev, await journal.entries(fromRev, state.rev + 1));
  if (fault === undefined) return faultsOf(state).length === 0 ? undefined : { state, found: [] };
  const { state: folded, whole } = await foldJournal(journal);
  if (whole && folded.status !== "NEW" && folded.rev >= state.rev) return { state: folded, found: [{ what: "document_stale", subject: `revision ${String(state.rev)}: ${fault.message}` }] };
  // The entry that says so goes behind all that are there.
  return { state: { ...state, rev: await lastRev(state.rev, journal) }, found: [], quarantine: fault };
}

function tailFault(state: OpenSession, fromRev: number, entries: readonly JournalEntry[]): Fault | undefined {
  for (let rev = fromRev; rev <= state.rev; rev += 1) {
    if (!entries.some((entry) => entry.rev === rev)) return { reason: "journal_gap", message: `journal entry ${String(rev)} of ${String(state.rev)} is missing` };
  }
  const broken = entries.find((entry, index) => index > 0 && !continuesFrom(entries[index - 1]?.digest ?? "", entry));
  if (broken !== undefined) return { reason: "journal_digest", message: `journal entry ${String(broken.rev)} does not continue the one before it` };
  const head = entries.find((entry) => entry.rev === state.rev);
  if (head?.digest !== state.journalDigest) return { reason: "journal_digest", message: `the document was not made by journal entry ${String(state.rev)}` };
  return entries.some((entry) => entry.rev > state.rev) ? { reason: "journal_digest", message: `the journal goes on behind the document's revision ${String(state.rev)}` } : undefined;
}

/** Only asked for when a first commit conflicted: then there is a journal, or the event is known. */
async function lostDocument(journal: Journal): Promise<Findings | undefined> {
  const { state, whole } = await foldJournal(journal);
  if (state.status === "NEW") return undefined;
  if (whole) return { state, found: [{ what: "document_lost", subject: `revision ${String(state.rev)}` }] };
  const rev = await lastRev(Math.max(state.rev, await journal.checkpoint() ?? 0), journal);
  return { state: { ...state, rev }, found: [], quarantine: { reason: "journal_gap", message: `the document is lost, and the journal is whole up to entry ${String(state.rev)} only` } };
}

/** What the journal folds to, from its newest checkpoint on; of one that is not whole, what its beginning folds to. */
async function foldJournal(journal: Journal): Promise<{ state: SessionState; whole: boolean }> {
  const firstRev = await journal.checkpoint() ?? 1;
  const folded = await foldFrom(firstRev, journal);
  return firstRev === 1 || folded.state.status !== "NEW" ? folded : { ...await foldFrom(1, journal), whole: false };
}

async function foldFrom(firstRev: number, journal: Journal): Promise<{ state: SessionState; whole: boolean }> {
  let state: SessionState = NEW_SESSION;
  for (let fromRev = firstRev; ; fromRev += PAGE) {
    const entries = await journal.entries(fromRev, fromRev + PAGE - 1);
    if (entries.length > 0 && fromRev >= firstRev + MAX_REBUILT) return { state, whole: false };
    for (const entry of entries) {
      if (entry.rev !== (state.status === "NEW" ? firstRev : state.rev + 1) || !continues(state, entry)) return { state, whole: false };
      state = evolveAll(state, entry.events, entry);
    }
    if (entries.length < PAGE) return { state, whole: true };
  }
}

/** A checkpoint at the beginning: the digest it was chained to is in the state that it carries, or was erased with a deleted session. */
function continues(state: SessionState, entry: JournalEntry): boolean {
  if (state.status !== "NEW") return continuesFrom(state.journalDigest, entry);
  if (!isCheckpoint(entry)) return entry.rev === 1 && continuesFrom("", entry);
  const [first] = entry.events;
  return first?.type !== "JournalCompacted" || continuesFrom(String(first.state["journalDigest"]), entry);
}

async function lastRev(rev: number, journal: Journal): Promise<number> {
  const last = (await journal.entries(rev + 1, rev + PAGE)).at(-1)?.rev;
  return last === undefined ? rev : await lastRev(last, journal);
}
