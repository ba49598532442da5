/** Owns: real time for the worker. */
import type { WorkerClock } from "./ports.js";

export const systemWorkerClock: WorkerClock = {
  nowMs: () => Date.now(),
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs);
    return () => { clearTimeout(timer); };
  },
};

/** A pause that ends early when `signal` aborts. Never rejects. */
export function pause(clock: WorkerClock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) {
      resolve();
      return;
    }
    const cancel = clock.after(delayMs, () => {
      signal?.removeEventListener("abort", stop);
      resolve();
    });
    const stop = (): void => {
      cancel();
      resolve();
    };
    signal?.addEventListener("abort", stop, { once: true });
  });
}
