/**
 * Owns: one small JSON document that many processes change, by compare-and-swap. Used for rate buckets that all hosts
 * share. `change` may run several times; it must be pure.
 */
import { Problem } from "../contracts/problems.js";
import type { DaprState } from "./state.js";

const MAX_TRIES = 20;

/** Applies `change` to the document under `key`. `write: undefined` leaves it as it is. Throws Problem `store_unavailable`. */
export async function changeDocument<D, R>(state: DaprState, key: string, change: (document: D | undefined) => { readonly write: D | undefined; readonly result: R }): Promise<R> {
  for (let attempt = 0; attempt < MAX_TRIES; attempt += 1) {
    const item = await state.get(key);
    const { write, result } = change(item === undefined ? undefined : JSON.parse(item.value) as D);
    if (write === undefined) return result;
    const fence = item === undefined ? { createOnly: true } : { etag: item.etag };
    if (await state.transact([{ op: "put", key, value: JSON.stringify(write), ...fence }]) === "committed") return result;
  }
  throw new Problem("store_unavailable", `the shared document ${key} changed ${String(MAX_TRIES)} times under our hands`);
}
