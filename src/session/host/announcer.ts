/**
 * Owns: telling readers what was committed: the journal for the console, hints with the entries for streams. Each channel has one
 * publish under way, and a busy host begins no more than one in so many milliseconds; what is committed meanwhile goes out together in
 * the next. A host that is not busy speaks at once. Lossy: a batch that the broker does not take is dropped, and readers find the gap.
 */
import { randomUUID } from "node:crypto";
import { JOURNAL_APPENDED, type JournalAppended, type JournalEntry } from "../../contracts/journal.js";
import { LIVE_ADVANCED, type LiveAdvance } from "../../contracts/messages.js";
import type { Clock } from "../../platform/clock.js";
import { errorFields, type Logger } from "../../platform/log.js";
import { summaryOf } from "../core/summary.js";
import type { OpenSession } from "../core/state.js";
import type { Bus } from "./ports.js";

/** Below what every broker takes by default (NATS: 1 MB), envelope and escapes included. */
const MAX_BATCH_CHARS = 200_000;
/** What waits while a broker does not answer; beyond it the oldest are dropped. */
export const MAX_QUEUED = 10_000;
/** A stream reads a larger entry from the session. */
const MAX_HINT_CHARS = 32_000;

/** A host is busy on a channel that had so many publishes within a second. */
const BUSY_PER_SECOND = 20;
/**
 * Least time between the beginnings of two publishes of a busy host, in milliseconds. A person looks at the console, so its journal may come later
 * than the entries that a stream shows as they are made.
 */
export const PACE_MS: Pace = { journal: 100, live: 25 };
export interface Pace { readonly journal: number; readonly live: number }

interface Queued { readonly text: string; readonly done: () => void }

export class Announcer {
  readonly #journal: Batches;
  readonly #live: Batches;

  constructor(deps: { readonly bus: Bus; readonly clock: Clock; readonly logger: Logger; readonly pace: Pace }) {
    this.#journal = new Batches("journal", JOURNAL_APPENDED, "appended", deps);
    this.#live = new Batches("live", LIVE_ADVANCED, "advanced", deps);
  }

  /** Resolves when the broker has the journal's entry, or when it was dropped. Never rejects. */
  announce(state: OpenSession, entry: JournalEntry): Promise<void> {
    const appended: JournalAppended = { entry, summary: summaryOf(state) };
    const text = JSON.stringify(appended);
    const advance: LiveAdvance = { actorId: state.actorId, rev: entry.rev, ...(text.length > MAX_HINT_CHARS ? {} : { entry }) };
    void this.#live.put(JSON.stringify(advance));
    return this.#journal.put(text);
  }

  /** Resolves when all that was announced so far was published or dropped. */
  async said(): Promise<void> { await Promise.all([this.#journal.said(), this.#live.said()]); }
}

class Batches {
  readonly #queue: Queued[] = [];
  /** Set and cleared in the same breath as the queue is looked at: whoever is told and speaks again at once must not be left waiting. */
  #busy = false;
  #publishing: Promise<void> = Promise.resolve();
  /** Ends the pause between two publishes. */
  #hurry: () => void = () => undefined;
  #isStopping = false;
  /** When the last publishes began, the oldest first. */
  readonly #begun: number[] = [];
  #serial = 0;
  /** A repeated id inside a broker's duplicate window would swallow a batch, and another process counts from one again. */
  readonly #sender = randomUUID();

  constructor(private readonly channel: keyof Pace, private readonly type: string, private readonly member: "appended" | "advanced", private readonly deps: { readonly bus: Bus; readonly clock: Clock; readonly logger: Logger; readonly pace: Pace }) {}

  /** Takes an item as JSON text: it is written once, for its size and for the message. */
  put(text: string): Promise<void> {
    return new Promise((resolve) => {
      this.#queue.push({ text, done: resolve });
      if (this.#queue.length > MAX_QUEUED) {
        this.#queue.shift()?.done();
        this.deps.logger.warn({ channel: this.channel, waiting: MAX_QUEUED }, "the broker does not keep up; the oldest announcement is dropped and readers find the gap");
      }
      if (!this.#busy) this.#publishing = this.#publish();
    });
  }

  /** The last words: nothing is held back any more. */
  async said(): Promise<void> {
    this.#isStopping = true;
    this.#hurry();
    await this.#publishing;
  }

  async #publish(): Promise<void> {
    this.#busy = true;
    while (this.#queue.length > 0) {
      const paced = this.#pause();
      const batch = this.#next();
      this.#serial += 1;
      try {
        await this.deps.bus.publish(this.channel, {
          specversion: "1.0", id: `${this.#sender}:${String(this.#serial)}`, source: `docket://sessions/${this.channel}`, type: this.type, data: `{"${this.member}":[${batch.map(({ text }) => text).join(",")}]}`,
        });
      } catch (error) {
        this.deps.logger.warn({ channel: this.channel, entries: batch.length, ...errorFields(error) }, "announcements were lost; readers find the gap");
      }
      for (const { done } of batch) done();
      await paced;
    }
    this.#busy = false;
  }

  async #pause(): Promise<void> {
    const ms = this.deps.pace[this.channel];
    if (this.#isStopping || ms === 0 || !this.#isBusy()) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#hurry = () => { clearTimeout(timer); resolve(); };
    });
  }

  #isBusy(): boolean {
    const nowMs = this.deps.clock.nowMs();
    this.#begun.push(nowMs);
    if (this.#begun.length <= BUSY_PER_SECOND) return false;
    const first = this.#begun.shift() ?? nowMs;
    return nowMs - first < 1_000;
  }

  #next(): Queued[] {
    let chars = 0;
    let count = 0;
    for (const { text } of this.#queue) {
      chars += text.length;
      if (count > 0 && chars > MAX_BATCH_CHARS) break;
      count += 1;
    }
    return this.#queue.splice(0, count);
  }
}
