/** Owns: values that several components share. */
import { useEffect, useState } from "preact/hooks";

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

/** The store's value, now and whenever it changes. */
export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState(store.get());
  useEffect(() => {
    const follow = (): void => { setValue(() => store.get()); };
    follow();
    return store.subscribe(follow);
  }, [store]);
  return value;
}
