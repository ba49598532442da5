/**
 * Owns: seeing that reminders which are registered now fire. The scheduler of 1.14 can lock itself up (docs/dapr-facts.md): it takes and shows
 * reminders, is healthy by its own word, and fires none. So each host sets one for itself again and again, which fires once.
 * Its tick may come to another host: that one leaves word in the store.
 *
 * A scheduler that takes none is no concern of this: guards wait for it by themselves (guard.ts).
 */
import { z } from "zod";
import { SCHEDULER_SILENT } from "../../contracts/operations.js";
import { sha256Hex } from "../../contracts/ids.js";
import { errorFields, type Logger } from "../../platform/log.js";
import type { Reminders } from "./ports.js";

const CanaryData = z.object({ purpose: z.literal("canary"), host: z.string(), serial: z.number().int() });
const EVERY_MS = 15_000;
const DUE_MS = 1_000;
/** Between setting a reminder and asking whether it has come: over before the next one is set. */
const PATIENCE_MS = 12_000;
/** A host that stands still, or moves, misses one or two. */
const MISSES = 3;

/** Word of a tick that came to another host. */
export interface Echoes {
  say(host: string, serial: number): Promise<void>;
  /** The latest serial that another host has heard; 0 where there is none. */
  heard(host: string): Promise<number>;
}

export interface CanaryDeps { readonly host: string; readonly reminders: Pick<Reminders, "set">; readonly echoes: Echoes; readonly logger: Logger }

export class Canary {
  #serial = 0;
  #heard = 0;
  #misses = 0;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(private readonly deps: CanaryDeps) {}

  start(): void { this.#next(EVERY_MS, () => this.#sing()); }

  stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    return Promise.resolve();
  }

  /** A reminder's data; false where it is none of a canary's. */
  async heard(data: string): Promise<boolean> {
    const canary = canaryOf(data);
    if (canary === undefined) return false;
    if (canary.host === this.deps.host) this.#heard = Math.max(this.#heard, canary.serial);
    else await this.deps.echoes.say(canary.host, canary.serial);
    return true;
  }

  async #sing(): Promise<void> {
    const { host, reminders } = this.deps;
    this.#serial += 1;
    const data = JSON.stringify({ purpose: "canary", host, serial: this.#serial } satisfies z.infer<typeof CanaryData>);
    try {
      await reminders.set(`canary-${sha256Hex(host).slice(0, 24)}`, `canary-${String(this.#serial)}`, { dueMs: DUE_MS, data });
    } catch {
      this.#misses = 0; // it takes none: the guards say so
      this.#next(EVERY_MS, () => this.#sing());
      return;
    }
    this.#next(PATIENCE_MS, () => this.#listen());
  }

  async #listen(): Promise<void> {
    const { host, echoes, logger } = this.deps;
    const isHeard = this.#heard >= this.#serial || await echoes.heard(host) >= this.#serial;
    if (isHeard && this.#misses >= MISSES) logger.info({ host }, "the scheduler fires reminders again");
    this.#misses = isHeard ? 0 : this.#misses + 1;
    if (this.#misses >= MISSES) {
      logger.error({ code: SCHEDULER_SILENT, missed: this.#misses }, "the scheduler takes reminders and fires none: it must be started again. Until then sessions are woken by their hosts and by the console");
    }
    this.#next(EVERY_MS - PATIENCE_MS, () => this.#sing());
  }

  #next(delayMs: number, run: () => Promise<void>): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      run().catch((error: unknown) => {
        this.deps.logger.debug(errorFields(error), "whether reminders fire could not be seen; the next look follows");
        this.#next(EVERY_MS, () => this.#sing());
      });
    }, delayMs).unref();
  }
}

function canaryOf(data: string): z.infer<typeof CanaryData> | undefined {
  try {
    return CanaryData.safeParse(JSON.parse(data)).data;
  } catch {
    return undefined;
  }
}
