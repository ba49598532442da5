/**
 * Owns: the proof, at start, that a state store keeps the two promises that every turn relies on: create-only is
 * honoured, and a failed condition rolls the whole transaction back. Redis does neither, so it is refused.
 */
import { randomUUID } from "node:crypto";
import { Problem } from "../contracts/problems.js";
import type { DaprState } from "./state.js";

/** Throws Problem `config_invalid` when the store cannot fence, unless `allowUnsafeStore`. */
export async function probeFencing(state: DaprState, storeName: string, allowUnsafeStore: boolean): Promise<void> {
  const key = `probe:${randomUUID()}`;
  const other = `${key}:other`;
  await state.transact([{ op: "put", key, value: "1", createOnly: true, ttlSeconds: 60 }]);
  const second = await state.transact([
    { op: "put", key: other, value: "2", ttlSeconds: 60 },
    { op: "put", key, value: "2", createOnly: true, ttlSeconds: 60 },
  ]);
  const left = await state.bulkGet([key, other]);
  await state.transact([{ op: "delete", key }, { op: "delete", key: other }]);
  const fences = second === "conflict" && left.get(key)?.value === "1" && !left.has(other);
  if (!fences && !allowUnsafeStore) {
    throw new Problem("config_invalid",
      `state store ${storeName} cannot fence a session: a create-only write over an existing key ${second === "conflict" ? "failed but did not roll back its transaction" : "was accepted"}`,
      { hint: "use PostgreSQL (state.postgresql v2) or SQLite; Redis cannot hold sessions. DOCKET_ALLOW_UNSAFE_STORE=true overrides, at the price of lost updates" });
  }
}
