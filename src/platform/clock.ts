/** Owns: time as a port, so that tests turn the clock (STYLE: time-travel tests). */
export interface Clock { nowMs(): number }

/** Wall clock. */
export const systemClock: Clock = { nowMs: () => Date.now() };
