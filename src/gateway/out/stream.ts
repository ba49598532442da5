/**
 * Owns: GET /v1/sessions/:id/stream. The journal, read through the actor, is the truth; hints and polls only say when to read.
 *
 * S1 every journal entry after the cursor is sent exactly once, in order, its rev as the `id:`; a client that comes back with
 *    Last-Event-ID goes on without gap or duplicate. S2 memory per stream is bounded: the next entry is read when the client took the last.
 *    An entry that a hint brings along is the next one of the journal or waits for it; whatever is missing in between is read.
 * S3 deltas carry no id, are lossy, and are sent only when the stream has caught up.
 */
import type { JournalEntry } from "../../contracts/journal.js";
import type { LiveDelta } from "../../contracts/messages.js";
import { errorFields, type Logger } from "../../platform/log.js";
import type { FeedHandle, News } from "./feeds.js";
import { publicEntry } from "./public-entry.js";
import type { SseWriter } from "./sse.js";

/** Wakes one sleeper; a wake while nobody sleeps is kept. */
export class Alarm {
  #rung = false;
  #sleeper: (() => void) | undefined;

  ring(): void {
    this.#rung = true;
    this.#sleeper?.();
  }

  /** Resolves at the next ring, or after `timeoutMs`. */
  async wait(timeoutMs?: number): Promise<void> {
    if (!this.#rung) {
      await new Promise<void>((resolve) => {
        const timer = timeoutMs === undefined ? undefined : setTimeout(resolve, timeoutMs);
        this.#sleeper = () => { clearTimeout(timer); resolve(); };
      });
    }
    this.#sleeper = undefined;
    this.#rung = false;
  }
}

export interface StreamOptions {
  readonly writer: SseWriter;
  readonly feed: FeedHandle;
  readonly alarm: Alarm;
  readonly afterRev: number;
  /** End after this run's end has been sent. */
  readonly untilRun: string | undefined;
  /** The end of a run that no journal will ever name. */
  readonly deadRun: (runId: string) => Promise<RunEnd | undefined>;
  readonly logger: Logger;
}

/** Entries that are kept while one before them is missing. What is beyond is read. */
const MAX_OFFERED = 16;
const OVERTAKEN_MS = 50;

export class SessionStream {
  readonly #offered = new Map<number, JournalEntry>();
  #cursor: number;
  #caughtUp = false;
  /** The awaited run's death has been looked for. */
  #looked = false;
  /** The awaited run is in the journal. */
  #begun = false;
  #mustLook = true;

  constructor(private readonly options: StreamOptions) { this.#cursor = options.afterRev; }

  /** Runs until the client is gone or the awaited run has ended. Never throws. */
  async run(): Promise<void> {
    const { writer, alarm, logger } = this.options;
    writer.closed.addEventListener("abort", () => { alarm.ring(); });
    while (!writer.closed.aborted) {
      try {
        if ((await this.#sendPage()) === "ended") break;
      } catch (error) {
        // The actor moves, or the sidecar restarts: the next poll reads on from the same cursor.
        logger.debug({ ...errorFields(error) }, "a stream could not read its journal; it tries again");
        this.#mustLook = true;
        await alarm.wait();
      }
    }
    writer.end();
  }

  /** Wakes the stream, unless it has sent what the news are about. */
  hear({ rev, entry }: News): void {
    if (rev !== undefined && rev <= this.#cursor) return;
    if (entry !== undefined && this.#offered.size < MAX_OFFERED) this.#offered.set(entry.rev, entry);
    else this.#mustLook = true;
    this.options.alarm.ring();
  }

  /** A piece of the answer that is being produced. */
  delta(delta: LiveDelta): void {
    const { runId, step, attempt, index, text } = delta;
    if (this.#caughtUp) this.options.writer.offer({ event: "delta", data: { runId, step, attempt, index, text } });
  }

  async #sendPage(): Promise<"ended" | "more"> {
    const { feed, alarm, writer } = this.options;
    if ((await this.#sendOffered()) === "ended") return "ended";
    if (this.#caughtUp && !this.#mustLook) {
      await this.#waitForNext();
      return "more";
    }
    this.#mustLook = false;
    const page = await feed.read(this.#cursor);
    if (page === undefined) return "ended"; // the session was deleted
    const before = this.#cursor;
    for (const entry of page.entries) {
      if (writer.closed.aborted || (await this.#sendEntry(entry)) === "ended") return "ended";
    }
    if (this.#cursor > before && page.headRev > this.#cursor) { this.#caughtUp = false; return "more"; }
    this.#caughtUp = true;
    if (await this.#diedBeforeItBegan(page.entries.length === 0)) return "ended";
    await alarm.wait();
    return "more";
  }

  /** Asked when the client has caught up, then only when a wake-up brought no entry: a dead event adds none. */
  async #diedBeforeItBegan(nothingNew: boolean): Promise<boolean> {
    const { untilRun, deadRun, writer } = this.options;
    if (untilRun === undefined || this.#begun || (this.#looked && !nothingNew)) return false;
    this.#looked = true;
    const end = await deadRun(untilRun);
    if (end !== undefined) await writer.send({ event: "end", data: end });
    return end !== undefined;
  }

  /** Hints may overtake each other: one that is missing is given a moment before it is read. */
  async #waitForNext(): Promise<void> {
    const { alarm } = this.options;
    if (this.#offered.size === 0) {
      await alarm.wait();
      return;
    }
    await alarm.wait(OVERTAKEN_MS);
    if (!this.#offered.has(this.#cursor + 1)) this.#mustLook = true;
  }

  /** What hints brought, as far as nothing is missing before it. */
  async #sendOffered(): Promise<"ended" | "more"> {
    for (let next = this.#offered.get(this.#cursor + 1); next !== undefined; next = this.#offered.get(this.#cursor + 1)) {
      if (this.options.writer.closed.aborted || (await this.#sendEntry(next)) === "ended") return "ended";
    }
    return "more";
  }

  async #sendEntry(entry: JournalEntry): Promise<"ended" | "more"> {
    const { writer, untilRun } = this.options;
    if (entry.rev <= this.#cursor) return "more";
    // Entries are kept for 24 h at least; where older ones are gone, the client is told instead of led to believe that it has all.
    if (entry.rev > this.#cursor + 1) await writer.send({ event: "gap", data: { code: "journal_compacted", fromRev: this.#cursor + 1, toRev: entry.rev - 1, readableFromRev: entry.rev } });
    await writer.send({ event: "journal", id: entry.rev, data: publicEntry(entry) });
    this.#cursor = entry.rev;
    this.#begun ||= entry.events.some((event) => event.type === "EventReceived" && event.runId === untilRun);
    for (const rev of this.#offered.keys()) if (rev <= entry.rev) this.#offered.delete(rev);
    const end = untilRun === undefined ? undefined : endOf(entry, untilRun);
    if (end === undefined) return "more";
    await writer.send({ event: "end", data: end });
    return "ended";
  }
}

export interface RunEnd { readonly runId: string; readonly outcome: string; readonly code?: string; readonly deadLetterId?: string; readonly rev: number }

function endOf(entry: JournalEntry, runId: string): RunEnd | undefined {
  for (const event of entry.events) {
    if (event.type === "RunEnded" && event.runId === runId) return { runId, outcome: event.outcome, ...(event.code === undefined ? {} : { code: event.code }), rev: entry.rev };
    if (event.type === "EventRejected" && event.runId === runId) return { runId, outcome: "rejected", code: event.code, rev: entry.rev };
  }
  return undefined;
}
