/**
 * Owns: how often a delivery may fail for a reason that nobody foresaw (a bug, a record that cannot be read) before it counts
 * as poison: one such message must not hold up its channel for ever (I14). Failures of the way never come here. Counted in
 * memory: a host that dies counts anew.
 */
const MAX_TRIES = 5;
const MAX_REMEMBERED = 1000;

export class Patience {
  readonly #tries = new Map<string, number>();

  /** Notes a failure. True when this was one too many; it is then forgotten. */
  isOver(delivery: string): { readonly over: boolean; readonly tries: number } {
    const tries = (this.#tries.get(delivery) ?? 0) + 1;
    this.#tries.delete(delivery);
    if (tries >= MAX_TRIES) return { over: true, tries };
    if (this.#tries.size >= MAX_REMEMBERED) {
      for (const oldest of this.#tries.keys()) { this.#tries.delete(oldest); break; }
    }
    this.#tries.set(delivery, tries);
    return { over: false, tries };
  }
}
