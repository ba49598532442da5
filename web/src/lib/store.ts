/** Owns: values that several components share; use-store.ts brings them into these. */

export class Store<T> {
  readonly #listeners = new Set<() => void>();
  #value: T;

  constructor(value: T) { this.#value = value; }

  get(): T { return this.#value; }

  set(value: T): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listener of [...this.#listeners]) listener();
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => { this.#listeners.delete(listener); };
  }
}
