/** Owns: a clock that the test turns. Timers run in order; between them promises get their turn. */
import type { WorkerClock } from "../../../src/tools/ports.js";

/** Lets everything that is ready run. */
export async function flush(rounds = 30): Promise<void> {
  for (let i = 0; i < rounds; i += 1) await new Promise((resolve) => setImmediate(resolve));
}

export class TestClock implements WorkerClock {
  #nowMs: number;
  #timers: { atMs: number; run: () => void; seq: number }[] = [];
  #seq = 0;

  constructor(startMs = Date.parse("2026-01-01T00:00:00Z")) { this.#nowMs = startMs; }

  nowMs(): number { return this.#nowMs; }

  after(delayMs: number, run: () => void): () => void {
    const timer = { atMs: this.#nowMs + delayMs, run, seq: (this.#seq += 1) };
    this.#timers.push(timer);
    return () => { this.#timers = this.#timers.filter((other) => other !== timer); };
  }

  async advance(ms: number): Promise<void> {
    const until = this.#nowMs + ms;
    for (;;) {
      await flush(5);
      const next = this.#timers.filter((timer) => timer.atMs <= until).sort((a, b) => a.atMs - b.atMs || a.seq - b.seq)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#nowMs = next.atMs;
      next.run();
    }
    this.#nowMs = until;
    await flush(5);
  }

  /** Timers that wait: none should be left when all is quiet. */
  pending(): number { return this.#timers.length; }
}
