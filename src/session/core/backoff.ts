/** Owns: how long to wait before the next try: exponential, full jitter, never sooner than the other side asked. */
import { BACKOFF_BASE_MS, BACKOFF_CAP_MS } from "./limits.js";

/** `failures` so far (1 after the first), `random` in [0,1). */
export function backoffMs(failures: number, random: number, retryAfterMs: number | undefined): number {
  const ceiling = Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** (failures - 1));
  return Math.max(Math.floor(random * ceiling), retryAfterMs ?? 0);
}
