/**
 * Owns: what wakes streams, and how many reads they cost. One feed per session that is being watched: hints of the live
 * topic (most bring the entry along) and a slow, adaptive poll wake its streams; reads of the same place at the same time are one read, so that a
 * thousand watchers of a session cost what one costs.
 *
 * F1 a hint is never lost on a stream: a read that began before the hint is not shared with a stream that it woke.
 * F2 a feed without streams does not exist: no timer, no memory.
 */
import type { JournalPage } from "../../contracts/api.js";
import type { JournalEntry } from "../../contracts/journal.js";
import type { LiveDelta } from "../../contracts/messages.js";
import type { Sessions } from "../ports.js";

/** Why a stream is woken: the journal reaches `rev`, whose entry may have come along; or nothing is known, and it should look. */
export interface News { readonly rev?: number; readonly entry?: JournalEntry }

export interface FeedListener {
  readonly wake: (news: News) => void;
  readonly delta: (delta: LiveDelta) => void;
}

export interface FeedOptions { readonly pollMs: number; readonly pollCapMs: number; readonly pageSize: number }

const HINT_PATIENCE_MS = 200;

interface Feed {
  readonly listeners: Set<FeedListener>;
  readonly reads: Map<number, Promise<JournalPage | undefined>>;
  pollMs: number;
  timer: NodeJS.Timeout;
}

/** A stream's hold on its session's feed. */
export interface FeedHandle {
  /** Journal entries after `afterRev`; undefined where there is no session. Throws Problem `actor_unavailable`. */
  read(afterRev: number): Promise<JournalPage | undefined>;
  close(): void;
}

export class Feeds {
  readonly #feeds = new Map<string, Feed>();

  constructor(private readonly sessions: Pick<Sessions, "readJournal">, private readonly options: FeedOptions) {}

  /** Sessions being watched. */
  get size(): number { return this.#feeds.size; }

  open(actorId: string, listener: FeedListener): FeedHandle {
    const feed = this.#feeds.get(actorId) ?? this.#create(actorId);
    feed.listeners.add(listener);
    return {
      read: (afterRev) => this.#read(actorId, feed, afterRev),
      close: () => {
        feed.listeners.delete(listener);
        if (feed.listeners.size > 0 || this.#feeds.get(actorId) !== feed) return;
        clearTimeout(feed.timer);
        this.#feeds.delete(actorId);
      },
    };
  }

  /** A hint that the session's journal has grown to `rev`, and perhaps by what. */
  advance(actorId: string, rev: number, entry?: JournalEntry): void {
    const feed = this.#feeds.get(actorId);
    if (feed === undefined) return;
    this.#quicken(actorId, feed);
    wakeAll(feed, entry === undefined ? { rev } : { rev, entry });
  }

  /** Something happened to the session that its journal does not tell. */
  look(actorId: string): void {
    const feed = this.#feeds.get(actorId);
    if (feed !== undefined) wakeAll(feed, {});
  }

  /** What `advance` says, by a channel that loses nothing. The hint usually comes too, and brings more, so it is given a moment. */
  reached(actorId: string, rev: number): void {
    if (!this.#feeds.has(actorId)) return;
    setTimeout(() => { this.advance(actorId, rev); }, HINT_PATIENCE_MS).unref();
  }

  delta(delta: LiveDelta): void {
    const feed = this.#feeds.get(delta.actorId);
    if (feed === undefined) return;
    for (const listener of feed.listeners) listener.delta(delta);
  }

  #create(actorId: string): Feed {
    const feed: Feed = { listeners: new Set(), reads: new Map(), pollMs: this.options.pollMs, timer: setTimeout(() => { this.#poll(actorId, feed); }, this.options.pollMs) };
    this.#feeds.set(actorId, feed);
    return feed;
  }

  #poll(actorId: string, feed: Feed): void {
    feed.pollMs = Math.min(feed.pollMs * 1.5, this.options.pollCapMs);
    feed.timer = setTimeout(() => { this.#poll(actorId, feed); }, feed.pollMs);
    wakeAll(feed, {});
  }

  /** Something happens: poll at the short pace again, from now on. */
  #quicken(actorId: string, feed: Feed): void {
    if (this.#feeds.get(actorId) !== feed) return;
    clearTimeout(feed.timer);
    feed.pollMs = this.options.pollMs;
    feed.timer = setTimeout(() => { this.#poll(actorId, feed); }, feed.pollMs);
  }

  #read(actorId: string, feed: Feed, afterRev: number): Promise<JournalPage | undefined> {
    const shared = feed.reads.get(afterRev);
    if (shared !== undefined) return shared;
    const read = this.sessions.readJournal(actorId, afterRev, this.options.pageSize);
    feed.reads.set(afterRev, read);
    const forget = (): void => { if (feed.reads.get(afterRev) === read) feed.reads.delete(afterRev); };
    read.then((page) => { forget(); if (page !== undefined && page.entries.length > 0) this.#quicken(actorId, feed); }, forget);
    return read;
  }
}

function wakeAll(feed: Feed, news: News): void {
  feed.reads.clear(); // F1
  for (const listener of feed.listeners) listener.wake(news);
}
