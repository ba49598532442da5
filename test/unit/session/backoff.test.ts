/** Waits between tries: exponential, full jitter, capped, never sooner than the other side asked. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { backoffMs } from "../../../src/session/core/backoff.js";

describe("the wait before the next try", () => {
  it("has a ceiling that doubles from one second to one minute", () => {
    const ceilings = [1, 2, 3, 4, 5, 6, 7, 20].map((failures) => backoffMs(failures, 0.999_999_9, undefined) + 1);
    expect(ceilings).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
  });

  it("is anything from nothing to the ceiling, in proportion to chance", () => {
    expect([0, 0.25, 0.5, 0.75].map((random) => backoffMs(3, random, undefined))).toEqual([0, 1_000, 2_000, 3_000]);
  });

  it("is never shorter than what was asked for", () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: 30 }), fc.double({ min: 0, max: 0.999, noNaN: true }), fc.integer({ min: 0, max: 3_600_000 }), (failures, random, retryAfterMs) => {
      expect(backoffMs(failures, random, retryAfterMs)).toBe(Math.max(backoffMs(failures, random, undefined), retryAfterMs));
    }));
  });
});
