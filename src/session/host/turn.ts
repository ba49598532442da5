/**
 * Owns: the turn: one exclusive, milliseconds-long pass of a session: load, decide, commit (DESIGN 3).
 * Does not own: what a command means (core), what happens after the commit (effects.ts).
 *
 * I3: one turn at a time per session in this process, by a mutex that outlives actor instances; across processes the
 *     create-only journal key of the next revision is the fence.
 * I2: the ledger row is written create-only in the same transaction; a duplicate needs no read before the write.
 * I9: a document that this process does not know is checked against the end of its journal first (checkup.ts).
 * A refusal or a no-op decided on a cached document is decided again on a fresh one, since a fence needs a write.
 */
import { randomUUID } from "node:crypto";
import { Mutex } from "async-mutex";
import { sha256Hex } from "../../contracts/ids.js";
import { isCheckpoint, type JournalEntry, type SessionEvent, type StoredText } from "../../contracts/journal.js";
import { Problem } from "../../contracts/problems.js";
import { STORED_VERSION } from "../../contracts/stored-version.js";
import type { Clock } from "../../platform/clock.js";
import type { Logger } from "../../platform/log.js";
import { decide } from "../core/decide.js";
import type { Decision, SessionCommand } from "../core/command.js";
import { entryDigest } from "../core/digest.js";
import { evolveAll } from "../core/evolve.js";
import { guardEvents } from "../core/rest.js";
import { NEW_SESSION, type SessionState } from "../core/state.js";
import { SessionCache, type CachedSession } from "./cache.js";
import { examine, type Findings } from "./checkup.js";
import { ledgerRowsOf } from "./ledger.js";
import type { GuardPlan } from "./guard.js";
import type { SessionStore, TurnWrite } from "./ports.js";

/** Inline limit of a text in the journal; the whole goes to a blob beside it. */
export const INLINE_TEXT_BYTES = 16 * 1024;
const MAX_COMMIT_TRIES = 12;

/** What a command builder may look at. Building must take milliseconds: the session is locked meanwhile. */
export interface TurnContext {
  readonly state: SessionState;
  readonly atMs: number;
  /** True on a retry after a conflict or a refusal: the ledger may know what the document's ring does not. */
  readonly conflicted: boolean;
  seen(key: string): Promise<boolean>;
  entries(fromRev: number, toRev: number): Promise<JournalEntry[]>;
  readBlob(key: string): Promise<string | undefined>;
  /** Keeps a text: inline up to a limit, the whole in a blob that is written with this turn. */
  keep(actorId: string, text: string): StoredText;
}

/** Gives the command for the state it finds, or undefined when there is nothing to do. */
export type BuildCommand = (context: TurnContext) => SessionCommand | undefined | Promise<SessionCommand | undefined>;

export interface TurnOutcome {
  readonly decision: Decision;
  readonly before: SessionState;
  readonly after: SessionState;
  readonly events: readonly SessionEvent[];
  /** The entry that was committed; undefined when nothing had to be. */
  readonly entry?: JournalEntry;
}

export interface TurnsDeps {
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly host: string;
  /** Called with the generation and period before a commit that arms the guard. */
  readonly armGuard: (actorId: string, plan: GuardPlan) => Promise<void>;
  /** Rows that were published since the last commit: this one clears them along with what it is for. */
  readonly published: (actorId: string) => readonly string[];
  /** The command that heals a session which a check-up found unsound. */
  readonly heal: (state: SessionState, atMs: number, findings: Pick<Findings, "found" | "quarantine">) => SessionCommand;
  /** Its effects, before the turn goes on. */
  readonly healed: (outcome: TurnOutcome) => Promise<void>;
}

const NOTHING: Decision = { ok: true, events: [] };

export class Turns {
  readonly #mutexes = new Map<string, Mutex>();
  readonly #cache: SessionCache;

  constructor(private readonly deps: TurnsDeps) {
    this.#cache = new SessionCache(deps.store, deps.clock);
  }

  /** Runs one turn. Throws Problem (retryable) when store or scheduler fail; then nothing is known to be written. */
  async execute(actorId: string, build: BuildCommand): Promise<TurnOutcome> {
    return await this.#exclusive(actorId, async () => {
      for (let attempt = 0; attempt < MAX_COMMIT_TRIES; attempt += 1) {
        const outcome = await this.#attempt(actorId, build, attempt > 0);
        if (outcome !== "again") return outcome;
        this.#cache.drop(actorId);
      }
      throw new Problem("store_unavailable", `session ${actorId}: ${String(MAX_COMMIT_TRIES)} commits in a row lost against another host`, { hint: "the event will be delivered again" });
    });
  }

  /** The state as stored now, and entries, for readers. Takes no lock. */
  async read(actorId: string): Promise<SessionState> {
    return (await this.deps.store.load(actorId))?.state ?? NEW_SESSION;
  }

  async readEntries(actorId: string, fromRev: number, toRev: number): Promise<JournalEntry[]> {
    return await this.#cache.entries(actorId, fromRev, toRev);
  }

  async #attempt(actorId: string, build: BuildCommand, conflicted: boolean): Promise<TurnOutcome | "again"> {
    const cached = await this.#cache.get(actorId);
    if (cached.fresh && (!cached.known || (cached.state.status === "NEW" && conflicted)) && !await this.#isSound(actorId, cached)) return "again";
    const blobs: { key: string; text: string }[] = [];
    const command = await build(this.#context(actorId, cached.state, conflicted, blobs));
    const decision = command === undefined ? NOTHING : decide(cached.state, command);
    if (decision.events.length === 0) {
      // A refusal writes nothing, so the ledger has not spoken yet: an old event that comes again is a duplicate, not a refused one.
      if (!cached.fresh || (!decision.ok && !conflicted)) return "again";
      return { decision, before: cached.state, after: cached.state, events: [] };
    }
    return await this.#commit(actorId, cached, { decision, command: command?.type ?? "", blobs });
  }

  /** False where the session had to be healed, or has moved meanwhile: load it again. */
  async #isSound(actorId: string, cached: CachedSession): Promise<boolean> {
    const { state, etag } = cached;
    const findings = await examine(state, { entries: (fromRev, toRev) => this.#cache.entries(actorId, fromRev, toRev), checkpoint: () => this.deps.store.readCheckpoint(actorId) });
    if (findings === undefined) {
      if (state.status !== "NEW") this.#cache.vouch(actorId, state.journalDigest);
      return true;
    }
    if ((await this.deps.store.load(actorId))?.etag !== etag) return false;
    const { found, quarantine } = findings;
    this.deps.logger[quarantine === undefined ? "warn" : "error"]({ actorId, rev: findings.state.rev, found, quarantine }, quarantine === undefined ? "a session woke up unsound and is repaired" : "what is stored of a session cannot be trusted: it is quarantined");
    const command = this.deps.heal(findings.state, this.deps.clock.nowMs(), findings);
    const outcome = await this.#commit(actorId, { ...cached, state: findings.state }, { decision: decide(findings.state, command), command: command.type, blobs: [] });
    if (outcome !== "again") await this.deps.healed(outcome);
    return false;
  }

  async #commit(actorId: string, cached: CachedSession, turn: { decision: Decision; command: string; blobs: TurnWrite["blobs"] }): Promise<TurnOutcome | "again"> {
    const before = cached.state;
    const atMs = this.deps.clock.nowMs();
    const { entry, after } = this.#nextEntry(actorId, before, turn, atMs);
    await this.#armGuard(actorId, entry.events, after, atMs);
    const write: TurnWrite = {
      actorId, state: after, entry, blobs: turn.blobs, ledger: ledgerRowsOf(entry),
      ...(cached.etag === undefined ? {} : { documentEtag: cached.etag }), ...(isCheckpoint(entry) ? { checkpoint: true as const } : {}),
    };
    if (!await this.#written(write)) return "again";
    this.#cache.put(actorId, after, entry);
    return { decision: turn.decision, before, after, events: entry.events, entry };
  }

  #nextEntry(actorId: string, before: SessionState, turn: { decision: Decision; command: string }, atMs: number): { entry: JournalEntry; after: SessionState } {
    const rev = before.rev + 1;
    const previousDigest = before.status === "NEW" ? "" : before.journalDigest;
    const plain = [...turn.decision.events, ...this.#cleared(before, turn.decision.events)];
    const withoutGuard = evolveAll(before, plain, { rev, atMs, digest: "" });
    const events = [...plain, ...guardEvents(before, withoutGuard)];
    const digest = entryDigest(previousDigest, events);
    const entry: JournalEntry = { v: STORED_VERSION, actorId, rev, commitId: randomUUID(), atMs, command: turn.command, host: this.deps.host, digest, events };
    return { entry, after: evolveAll(before, events, { rev, atMs, digest }) };
  }

  #cleared(before: SessionState, decided: readonly SessionEvent[]): SessionEvent[] {
    if (before.status === "NEW") return [];
    const already = new Set(decided.flatMap((event) => (event.type === "PublicationsCleared" ? event.rowIds : [])));
    const published = this.deps.published(before.actorId);
    const rowIds = before.outbox.map((row) => row.rowId).filter((rowId) => published.includes(rowId) && !already.has(rowId));
    return rowIds.length === 0 ? [] : [{ type: "PublicationsCleared", rowIds }];
  }

  /** True when written. A commit whose reply was lost meets itself by its commit id (DESIGN 3). */
  async #written(write: TurnWrite): Promise<boolean> {
    const { actorId, entry } = write;
    let lost: Error | undefined;
    try {
      if (await this.deps.store.commit(write) === "committed") return true;
    } catch (error) {
      lost = error instanceof Error ? error : new Error("the commit failed", { cause: error });
    }
    this.#cache.drop(actorId);
    const [stored] = await this.deps.store.readEntries(actorId, entry.rev, entry.rev);
    if (stored?.commitId === entry.commitId) return true;
    if (lost !== undefined) throw lost;
    return false;
  }

  /** The reminder exists before the commit that relies on it; a spurious one is harmless, a missing one is not. */
  async #armGuard(actorId: string, events: readonly SessionEvent[], after: SessionState, atMs: number): Promise<void> {
    for (const event of events) {
      if (event.type !== "GuardArmed") continue;
      const dueAtMs = event.dueAtMs ?? atMs + event.periodMs;
      await this.deps.armGuard(actorId, { generation: event.generation, dueMs: Math.max(1000, dueAtMs - atMs), periodMs: event.periodMs });
    }
    if (after.status === "NEW") throw new Error("a commit cannot leave a session NEW");
  }

  #context(actorId: string, state: SessionState, conflicted: boolean, blobs: { key: string; text: string }[]): TurnContext {
    return {
      state, atMs: this.deps.clock.nowMs(), conflicted,
      seen: async (key) => conflicted && await this.deps.store.readLedger(actorId, key) !== undefined,
      entries: (fromRev, toRev) => this.#cache.entries(actorId, fromRev, toRev),
      readBlob: (key) => this.deps.store.readBlob(key),
      keep: (id, text) => keepText(id, state.rev + 1, text, blobs),
    };
  }

  async #exclusive<T>(actorId: string, run: () => Promise<T>): Promise<T> {
    let mutex = this.#mutexes.get(actorId);
    if (mutex === undefined) {
      mutex = new Mutex();
      this.#mutexes.set(actorId, mutex);
    }
    const release = await mutex.acquire();
    try {
      return await run();
    } finally {
      release();
      if (!mutex.isLocked()) this.#mutexes.delete(actorId);
    }
  }
}

function keepText(actorId: string, rev: number, text: string, blobs: { key: string; text: string }[]): StoredText {
  const bytes = Buffer.byteLength(text);
  if (bytes <= INLINE_TEXT_BYTES) return { text, truncated: false };
  const digest = sha256Hex(text);
  const key = `blob:${actorId}:${String(rev)}-${digest.slice(0, 16)}`;
  blobs.push({ key, text });
  const head = Buffer.from(text).subarray(0, INLINE_TEXT_BYTES).toString("utf8").replace(/�+$/, "");
  return { text: head, truncated: true, blob: { key, bytes, digest } };
}
