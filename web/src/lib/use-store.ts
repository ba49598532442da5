/** Owns: a shared value as a component sees it. */
import { useLayoutEffect, useState } from "preact/hooks";
import type { Store } from "./store.js";

/** The store's value, now and whenever it changes. */
export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState(store.get());
  useLayoutEffect(() => {
    const follow = (): void => { setValue(() => store.get()); };
    follow();
    return store.subscribe(follow);
  }, [store]);
  return value;
}
