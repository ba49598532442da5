/**
 * Owns: that a dead letter reaches the console (I1). A publish that returned proves nothing: the sidecar can ack what the console
 * never got (DESIGN 7.10). So each app keeps its letters in its own store until the console's receipt, and publishes them again,
 * same id, with growing pauses. The store cannot list its keys: a few index documents list the letters.
 *
 * - B1 a letter and its index entry are written and deleted in ONE transaction: what is kept is always found.
 * - B2 an index holds `perIndex` letters at most (I9). What does not fit is published and not kept, and the log says so: a flood of
 *   poison must not stop the channel that it came on (I14).
 * - B3 of several replicas one publishes: the next due time is written, under the index's etag, before.
 */
import { Mutex } from "async-mutex";
import { z } from "zod";
import { MAX_COMMAND_BYTES, parseEnvelope, serializeEnvelope, type Envelope } from "../contracts/cloudevent.js";
import { sha256Hex } from "../contracts/ids.js";
import { DeadLetter, LETTER_RECEIVED, LetterReceived } from "../contracts/messages.js";
import { Problem } from "../contracts/problems.js";
import type { Clock } from "./clock.js";
import { errorFields, type Logger } from "./log.js";

type Operation =
  | { readonly op: "put"; readonly key: string; readonly value: string; readonly etag?: string; readonly createOnly?: boolean }
  | { readonly op: "delete"; readonly key: string };

/** A store with fenced transactions. Methods throw Problem `store_unavailable`. */
interface LetterStore {
  bulkGet(keys: readonly string[]): Promise<Map<string, { readonly value: string; readonly etag: string }>>;
  transact(operations: readonly Operation[]): Promise<"committed" | "conflict">;
}

export interface LetterBoxDeps {
  readonly store: LetterStore;
  /** Throws Problem `broker_unavailable`. */
  readonly publish: (envelope: Envelope) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly everyMs?: number;
  /** Before the second publication; doubled from one to the next, up to `longestPauseMs`. */
  readonly firstPauseMs?: number;
  readonly longestPauseMs?: number;
  readonly perIndex?: number;
}

/** Persisted contract. Letter id → when it is published next, and how often it was. */
const Index = z.object({ letters: z.record(z.string(), z.object({ dueAtMs: z.number(), published: z.number() })) });
type Index = z.infer<typeof Index>;
const Kept = z.object({ envelope: z.string() });

/** More than a letter's limit (letter-parcel.ts), whose JSON is escaped once more. */
const MAX_LETTER_ENVELOPE = 2 * MAX_COMMAND_BYTES;
/** Never fewer than before: what an index lists would be forgotten. */
const INDEXES = 16;
const TRIES = 20;
const DEFAULTS = { everyMs: 5_000, firstPauseMs: 10_000, longestPauseMs: 1_800_000, perIndex: 500 } as const;

const letterKey = (id: string): string => `letter:${id}`;
const indexKey = (number: number): string => `letter-index:${String(number)}`;

export class LetterBox {
  readonly #settings: Required<LetterBoxDeps>;
  readonly #locks = Array.from({ length: INDEXES }, () => new Mutex());
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;

  constructor(deps: LetterBoxDeps) { this.#settings = { ...DEFAULTS, ...deps }; }

  /** Keeps a letter (the data of `envelope`) and publishes it. Throws where it is neither kept nor published: then what died must be delivered again. */
  async post(envelope: Envelope): Promise<void> {
    const { deadLetterId } = DeadLetter.parse(JSON.parse(envelope.data));
    const isKept = await this.#keep(deadLetterId, envelope);
    try {
      await this.#settings.publish(envelope);
    } catch (error) {
      if (!isKept) throw error;
      this.#settings.logger.warn({ deadLetterId, ...errorFields(error) }, "a dead letter could not be published now; it is kept and published later");
    }
  }

  /** The console has it. What is not kept is fine. */
  async received(deadLetterId: string): Promise<void> {
    await this.#change(deadLetterId, (index) => {
      const { [deadLetterId]: found, ...letters } = index.letters;
      return found === undefined ? undefined : { index: { letters }, also: [{ op: "delete", key: letterKey(deadLetterId) }] };
    });
  }

  /** Publishes what is due; returns how many. One letter that fails does not hold up the others. */
  async look(): Promise<number> {
    const { store, clock, logger } = this.#settings;
    const found = await store.bulkGet(Array.from({ length: INDEXES }, (_, number) => indexKey(number)));
    const due = [...found.values()].flatMap(({ value }) => Object.entries(read(value).letters)).filter(([, { dueAtMs }]) => dueAtMs <= clock.nowMs());
    let published = 0;
    for (const [id, { published: before }] of due) {
      try {
        if (await this.#again(id, before)) published += 1;
      } catch (error) {
        logger.warn({ deadLetterId: id, published: before, ...errorFields(error) }, "a dead letter without receipt could not be published again");
      }
    }
    return published;
  }

  start(): void {
    this.#timer ??= setInterval(() => {
      this.#looking ??= this.look().then(() => undefined, (error: unknown) => { this.#settings.logger.warn(errorFields(error), "the letters without receipt could not be looked through"); }).finally(() => { this.#looking = undefined; });
    }, this.#settings.everyMs).unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  async #keep(id: string, envelope: Envelope): Promise<boolean> {
    const { clock, firstPauseMs, perIndex, logger } = this.#settings;
    const seen = { isFull: false };
    await this.#change(id, (index) => {
      if (index.letters[id] !== undefined) return undefined;
      seen.isFull = Object.keys(index.letters).length >= perIndex;
      if (seen.isFull) return undefined;
      return {
        index: { letters: { ...index.letters, [id]: { dueAtMs: clock.nowMs() + firstPauseMs, published: 1 } } },
        also: [{ op: "put", key: letterKey(id), value: JSON.stringify({ envelope: serializeEnvelope(envelope) }) }],
      };
    });
    if (seen.isFull) logger.warn({ deadLetterId: id, perIndex }, "too many dead letters wait for the console's receipt: this one is published once and not kept; see whether the console runs");
    return !seen.isFull;
  }

  async #again(id: string, published: number): Promise<boolean> {
    const { store, clock, firstPauseMs, longestPauseMs } = this.#settings;
    const dueAtMs = clock.nowMs() + Math.min(firstPauseMs * 2 ** Math.min(published, 20), longestPauseMs);
    const isMine = await this.#change(id, (index) => (index.letters[id]?.published === published ? { index: { letters: { ...index.letters, [id]: { dueAtMs, published: published + 1 } } }, also: [] } : undefined));
    const kept = isMine ? (await store.bulkGet([letterKey(id)])).get(letterKey(id)) : undefined;
    if (kept === undefined) return false;
    await this.#settings.publish(parseEnvelope(Kept.parse(JSON.parse(kept.value)).envelope, MAX_LETTER_ENVELOPE));
    return true;
  }

  /** Writes a changed index with what belongs to it; `change` gives undefined where nothing is to be done. False then. */
  #change(id: string, change: (index: Index) => { index: Index; also: readonly Operation[] } | undefined): Promise<boolean> {
    const number = Number.parseInt(sha256Hex(id).slice(0, 8), 16) % INDEXES;
    const work = async (): Promise<boolean> => {
      for (let tries = 0; tries < TRIES; tries += 1) {
        const stored = (await this.#settings.store.bulkGet([indexKey(number)])).get(indexKey(number));
        const wanted = change(stored === undefined ? { letters: {} } : read(stored.value));
        if (wanted === undefined) return false;
        const fence = stored === undefined ? { createOnly: true } : { etag: stored.etag };
        if (await this.#settings.store.transact([{ op: "put", key: indexKey(number), value: JSON.stringify(wanted.index), ...fence }, ...wanted.also]) === "committed") return true;
      }
      throw new Problem("store_unavailable", `the index ${indexKey(number)} of dead letters changed ${String(TRIES)} times under our hands`, { hint: "try again" });
    };
    return this.#locks[number]?.runExclusive(work) ?? work();
  }
}

/** The receipt in a delivery; undefined where it is something else. */
export function letterReceiptIn(text: string): LetterReceived | undefined {
  if (!text.includes(LETTER_RECEIVED)) return undefined;
  try {
    const envelope = parseEnvelope(text);
    return envelope.type === LETTER_RECEIVED ? LetterReceived.parse(JSON.parse(envelope.data)) : undefined;
  } catch {
    return undefined; // its own reader says what is wrong with it
  }
}

function read(value: string): Index { return Index.parse(JSON.parse(value)); }
