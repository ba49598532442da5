/** Whether the console is there: silence is noticed in about three seconds, slowness is not taken for it, and what hung is asked anew when it is back. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Presence, PROBE_MS } from "../../../web/src/lib/presence.js";

let there: boolean;
let asked: number;
let presence: Presence;
const gaveUp = vi.fn();
const answerOf = (): Promise<void> => {
  asked += 1;
  // One that hangs says nothing: whoever asks gives up after a while.
  return there ? Promise.resolve() : new Promise((_resolve, reject) => { setTimeout(() => { reject(new Error("no answer")); }, PROBE_MS); });
};
beforeEach(() => {
  vi.useFakeTimers();
  there = true;
  asked = 0;
  gaveUp.mockReset();
  presence = new Presence(answerOf);
});
afterEach(() => { vi.useRealTimers(); });
const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

describe("a console that takes connections and answers none", () => {
  it("is lost after three seconds at most, since the read began", async () => {
    there = false;
    await pass(500);
    const beganAtMs = Date.now();
    presence.watch(gaveUp);
    await pass(2_000);
    expect(presence.lostSince.get()).toBeUndefined();
    await pass(1_000);
    expect(presence.lostSince.get()).toBe(beganAtMs);
    expect(gaveUp).not.toHaveBeenCalled();
  });

  it("is back as soon as it answers, and every read of before is given up once, to be asked anew", async () => {
    there = false;
    const others = vi.fn();
    presence.watch(gaveUp);
    await pass(700);
    presence.watch(others);
    await pass(10_000);
    expect(presence.lostSince.get()).toBeDefined();
    there = true;
    await pass(4_000);
    expect(presence.lostSince.get()).toBeUndefined();
    expect([gaveUp.mock.calls.length, others.mock.calls.length]).toEqual([1, 1]);
  });
});

describe("a console that is slow", () => {
  it("is not lost while anything is answered, and its slow reads are not given up", async () => {
    there = false; // nobody is asked: answers come
    presence.watch(gaveUp);
    for (let i = 0; i < 20; i += 1) { await pass(1_000); presence.answered(); }
    expect([presence.lostSince.get(), asked, gaveUp.mock.calls.length]).toEqual([undefined, 0, 0]);
  });

  it("is not lost where it answers the question, however long the read takes", async () => {
    presence.watch(gaveUp);
    await pass(14_000);
    expect(asked).toBeGreaterThan(3);
    expect([presence.lostSince.get(), gaveUp.mock.calls.length]).toEqual([undefined, 0]);
  });

  it("asks nothing once the read has ended", async () => {
    there = false;
    presence.watch(gaveUp)();
    await pass(20_000);
    expect([presence.lostSince.get(), asked]).toEqual([undefined, 0]);
  });
});

it("a console that refuses connections is lost at once, from the first refusal on", async () => {
  presence.lost();
  const sinceMs = presence.lostSince.get();
  await pass(1_000);
  presence.lost();
  expect(presence.lostSince.get()).toBe(sinceMs);
});
