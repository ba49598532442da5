/**
 * Owns: documents and journal entries kept in memory between turns. A document is dropped after 60 s (DESIGN 3) and
 * after every lost commit; entries never change, so they only leave by size.
 */
import type { JournalEntry } from "../../contracts/journal.js";
import type { Clock } from "../../platform/clock.js";
import { NEW_SESSION, type SessionState } from "../core/state.js";
import type { SessionStore } from "./ports.js";

const DOCUMENT_TTL_MS = 60_000;
const MAX_SESSIONS = 2_000;
const MAX_ENTRIES_PER_SESSION = 400;

export interface CachedSession {
  readonly state: SessionState;
  /** Etag for the first commit after a load. */
  readonly etag: string | undefined;
  /** Read from the store in this very call. */
  readonly fresh: boolean;
  /** This process wrote it, or has checked it before. */
  readonly known: boolean;
}

interface Slot { state: SessionState; loadedAtMs: number; entries: Map<number, JournalEntry> }

export class SessionCache {
  readonly #slots = new Map<string, Slot>();
  /** Digest of each session's head that this process wrote or has checked; outlives the documents, which are loaded again and again. */
  readonly #known = new Map<string, string>();

  constructor(private readonly store: SessionStore, private readonly clock: Clock) {}

  async get(actorId: string): Promise<CachedSession> {
    const slot = this.#slots.get(actorId);
    if (slot !== undefined && this.clock.nowMs() - slot.loadedAtMs < DOCUMENT_TTL_MS) return { state: slot.state, etag: undefined, fresh: false, known: true };
    const loaded = await this.store.load(actorId);
    const state = loaded?.state ?? NEW_SESSION;
    this.#remember(actorId, { state, loadedAtMs: this.clock.nowMs(), entries: slot?.entries ?? new Map<number, JournalEntry>() });
    return { state, etag: loaded?.etag, fresh: true, known: state.status === "NEW" || this.#known.get(actorId) === state.journalDigest };
  }

  /** The document ends where the journal does. */
  vouch(actorId: string, journalDigest: string): void {
    keepNewest(this.#known, actorId, journalDigest);
  }

  /** After a commit: the document is what we wrote; its age still counts from the load. */
  put(actorId: string, state: SessionState, entry: JournalEntry): void {
    const slot = this.#slots.get(actorId) ?? { state, loadedAtMs: this.clock.nowMs(), entries: new Map<number, JournalEntry>() };
    slot.state = state;
    this.vouch(actorId, entry.digest);
    slot.entries.set(entry.rev, entry);
    trim(slot.entries);
    this.#remember(actorId, slot);
  }

  drop(actorId: string): void {
    this.#slots.delete(actorId);
  }

  /** Entries `fromRev` to `toRev`, from memory where they are there, the rest in one bulk read. */
  async entries(actorId: string, fromRev: number, toRev: number): Promise<JournalEntry[]> {
    const kept = this.#slots.get(actorId)?.entries;
    const found = new Map<number, JournalEntry>();
    let firstMissing: number | undefined;
    for (let rev = fromRev; rev <= toRev; rev += 1) {
      const entry = kept?.get(rev);
      if (entry !== undefined) found.set(rev, entry);
      else firstMissing ??= rev;
    }
    if (firstMissing !== undefined) {
      for (const entry of await this.store.readEntries(actorId, firstMissing, toRev)) {
        found.set(entry.rev, entry);
        kept?.set(entry.rev, entry);
      }
      if (kept !== undefined) trim(kept);
    }
    return [...found.values()].sort((a, b) => a.rev - b.rev);
  }

  #remember(actorId: string, slot: Slot): void {
    keepNewest(this.#slots, actorId, slot);
  }
}

/** Puts it last; the longest untouched fall out. */
function keepNewest<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= MAX_SESSIONS) break;
    map.delete(oldest);
  }
}

function trim(entries: Map<number, JournalEntry>): void {
  for (const rev of entries.keys()) {
    if (entries.size <= MAX_ENTRIES_PER_SESSION) break;
    entries.delete(rev);
  }
}
