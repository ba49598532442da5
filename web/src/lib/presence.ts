/**
 * Owns: whether the console is there. One that takes connections and answers none (stopped, stuck, cut off) is noticed like one that refuses them: where a read has waited
 * for QUIET_MS while nothing at all was answered, somebody is sent to ask whether it is there, and without an answer to that either it is lost. Asked again and again, it says
 * itself when it is back; reads that were begun before that are given up then, so that they are asked anew.
 *
 * A slow answer is no silence: as long as anything is answered, reads may take their time.
 */
import { Store } from "./store.js";

const QUIET_MS = 1_500;
/** For the question whether it is there, and between two of them. */
export const PROBE_MS = 1_000;

export class Presence {
  /** Since when the console has not answered; undefined while it does. */
  readonly lostSince = new Store<number | undefined>(undefined);
  #answeredAtMs = 0;
  #backAtMs = 0;
  #asking: Promise<boolean> | undefined;

  /** `ask` resolves where the console answers within PROBE_MS, whatever it says, and rejects where it does not. */
  constructor(private readonly ask: () => Promise<unknown>) {}

  answered(): void {
    this.#answeredAtMs = Date.now();
    if (this.lostSince.get() !== undefined) this.#backAtMs = this.#answeredAtMs;
    this.lostSince.set(undefined);
  }

  lost(sinceMs = Date.now()): void { if (this.lostSince.get() === undefined) this.lostSince.set(sinceMs); }

  /** Watches a read until what is returned is called. `giveUp`: the console was lost and is back, and this read is of before. */
  watch(giveUp: () => void): () => void {
    const beganAtMs = Date.now();
    let ended = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async (): Promise<void> => {
      if (this.#backAtMs > beganAtMs) { giveUp(); return; }
      const lastSignMs = Math.max(beganAtMs, this.#answeredAtMs);
      const leftMs = lastSignMs + QUIET_MS - Date.now();
      if (leftMs > 0) { timer = setTimeout(() => { void look(); }, leftMs); return; }
      const isThere = await this.#isThere();
      if (ended) return;
      if (!isThere && this.#answeredAtMs <= lastSignMs) this.lost(lastSignMs);
      timer = setTimeout(() => { void look(); }, isThere ? 0 : PROBE_MS);
    };
    timer = setTimeout(() => { void look(); }, QUIET_MS);
    return () => { ended = true; clearTimeout(timer); };
  }

  /** One question for all reads that wait. */
  #isThere(): Promise<boolean> {
    this.#asking ??= this.ask().then(() => { this.answered(); return true; }, () => false).finally(() => { this.#asking = undefined; });
    return this.#asking;
  }
}
