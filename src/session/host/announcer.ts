/**
 * Owns: telling readers what was committed: the journal for the console, hints with the entries for streams. Each channel has one
 * publish under way; what is committed meanwhile goes out together in the next, so that an idle host speaks at once and a busy
 * one seldom. Lossy: a batch that the broker does not take is dropped, and readers find the gap.
 */
import { randomUUID } from "node:crypto";
import type { ChannelName } from "../../contracts/channels.js";
import { JOURNAL_APPENDED, type JournalAppended, type JournalEntry } from "../../contracts/journal.js";
import { LIVE_ADVANCED, type LiveAdvance } from "../../contracts/messages.js";
import { errorFields, type Logger } from "../../platform/log.js";
import { summaryOf } from "../core/summary.js";
import type { OpenSession } from "../core/state.js";
import type { Bus } from "./ports.js";

/** Below what every broker takes by default (NATS: 1 MB), envelope and escapes included. */
const MAX_BATCH_CHARS = 200_000;
/** What waits while a broker does not answer; beyond it the oldest are dropped. */
const MAX_QUEUED = 10_000;
/** A stream reads a larger entry from the session. */
const MAX_HINT_CHARS = 32_000;

interface Queued { readonly text: string; readonly done: () => void }

export class Announcer {
  readonly #journal: Batches;
  readonly #live: Batches;

  constructor(deps: { readonly bus: Bus; readonly logger: Logger }) {
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
  #serial = 0;
  /** A repeated id inside a broker's duplicate window would swallow a batch, and another process counts from one again. */
  readonly #sender = randomUUID();

  constructor(private readonly channel: ChannelName, private readonly type: string, private readonly member: "appended" | "advanced", private readonly deps: { readonly bus: Bus; readonly logger: Logger }) {}

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

  async said(): Promise<void> { await this.#publishing; }

  async #publish(): Promise<void> {
    this.#busy = true;
    while (this.#queue.length > 0) {
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
    }
    this.#busy = false;
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
