/**
 * Owns: the check-up of a session whose document this process meets for the first time (start, another host's turn): the last
 * entries are there, continue the chain of digests and end in the document's own. It reads a bounded tail; only where that
 * is wrong is the whole journal read, which is the truth (I7): if it is whole, the document is folded from it anew, else the
 * session is quarantined.
 */
import type { JournalEntry, QuarantineReason } from "../../contracts/journal.js";
import { faultsOf } from "../core/checkup.js";
import type { Repair } from "../core/command.js";
import { entryDigest } from "../core/digest.js";
import { evolveAll } from "../core/evolve.js";
import { NEW_SESSION, type OpenSession, type SessionState } from "../core/state.js";

/** Entries before the head that are looked at, and the one that must not be there behind it. */
const CHECKED_ENTRIES = 8;
const PAGE = 200;
/** A longer journal is not folded anew: a repair may take seconds, not minutes. */
const MAX_REBUILT = 20_000;

export interface Findings {
  /** What to go on from: the document, or what the journal folds to. */
  readonly state: OpenSession;
  readonly found: readonly Repair[];
  readonly quarantine?: { readonly reason: QuarantineReason; readonly message: string };
}

type Fault = NonNullable<Findings["quarantine"]>;
type ReadEntries = (fromRev: number, toRev: number) => Promise<JournalEntry[]>;

/** What is wrong with the session; undefined where nothing is. Another host that commits meanwhile looks like a fault: load again before you believe it. */
export async function examine(state: SessionState, read: ReadEntries): Promise<Findings | undefined> {
  if (state.status === "NEW") return await lostDocument(read);
  if (state.quarantine !== undefined) return undefined;
  const fromRev = Math.max(1, state.baseRev ?? 1, state.checkedFromRev ?? 1, state.rev - CHECKED_ENTRIES + 1);
  const fault = tailFault(state, fromRev, await read(fromRev, state.rev + 1));
  if (fault === undefined) return faultsOf(state).length === 0 ? undefined : { state, found: [] };
  const folded = await foldJournal(read);
  if (folded !== undefined && folded.status !== "NEW" && folded.rev >= state.rev) return { state: folded, found: [{ what: "document_stale", subject: `revision ${String(state.rev)}: ${fault.message}` }] };
  // The entry that says so goes behind all that are there.
  return { state: { ...state, rev: await lastRev(state.rev, read) }, found: [], quarantine: fault };
}

function tailFault(state: OpenSession, fromRev: number, entries: readonly JournalEntry[]): Fault | undefined {
  for (let rev = fromRev; rev <= state.rev; rev += 1) {
    if (!entries.some((entry) => entry.rev === rev)) return { reason: "journal_gap", message: `journal entry ${String(rev)} of ${String(state.rev)} is missing` };
  }
  const broken = entries.find((entry, index) => index > 0 && entryDigest(entries[index - 1]?.digest ?? "", entry.events) !== entry.digest);
  if (broken !== undefined) return { reason: "journal_digest", message: `journal entry ${String(broken.rev)} does not continue the one before it` };
  const head = entries.find((entry) => entry.rev === state.rev);
  if (head?.digest !== state.journalDigest) return { reason: "journal_digest", message: `the document was not made by journal entry ${String(state.rev)}` };
  return entries.some((entry) => entry.rev > state.rev) ? { reason: "journal_digest", message: `the journal goes on behind the document's revision ${String(state.rev)}` } : undefined;
}

/** Only asked for when a first commit conflicted: then there is a journal, or the event is known. */
async function lostDocument(read: ReadEntries): Promise<Findings | undefined> {
  const folded = await foldJournal(read);
  return folded === undefined || folded.status === "NEW" ? undefined : { state: folded, found: [{ what: "document_lost", subject: `revision ${String(folded.rev)}` }] };
}

/** What the whole journal folds to; undefined where it is not whole. */
async function foldJournal(read: ReadEntries): Promise<SessionState | undefined> {
  let state: SessionState = NEW_SESSION;
  for (let fromRev = 1; fromRev < MAX_REBUILT; fromRev += PAGE) {
    const entries = await read(fromRev, fromRev + PAGE - 1);
    for (const entry of entries) {
      const previous: string = state.status === "NEW" ? "" : state.journalDigest;
      if (entry.rev !== state.rev + 1 || entryDigest(previous, entry.events) !== entry.digest) return undefined;
      state = evolveAll(state, entry.events, entry);
    }
    if (entries.length < PAGE) return state;
  }
  return undefined;
}

async function lastRev(rev: number, read: ReadEntries): Promise<number> {
  const last = (await read(rev + 1, rev + PAGE)).at(-1)?.rev;
  return last === undefined ? rev : await lastRev(last, read);
}
