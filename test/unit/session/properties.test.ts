import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { atRest, ChaoticHost, type Move } from "./chaos.js";
import { dispatchesAreRightful, foldIsState, isBounded, isGuarded, isWithinBudget, nothingTwice, outcomes, pairs, refusalChangedNothing, statusIsTrue, transcriptIsWhole } from "./invariants.js";
import { faultsOf } from "../../../src/session/core/checkup.js";
import { transcriptOf } from "../../../src/session/core/transcript.js";

const number = fc.integer({ min: 0, max: 999 });
const moves: fc.Arbitrary<Move[]> = fc.array(fc.record({ kind: number, a: number, b: number, c: number }), { minLength: 1, maxLength: 250, size: "max" });
const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 40);

describe("whatever the host reports, in whatever order", () => {
  it("the state stays true, bounded, guarded and within budget, step by step", { timeout: 600_000 }, () => {
    fc.assert(fc.property(moves, (list) => {
      const host = new ChaoticHost();
      for (const move of list) {
        host.move(move);
        statusIsTrue(host.bench);
        expect(faultsOf(host.bench.open)).toEqual([]);
        isBounded(host.bench);
        isGuarded(host.bench);
        isWithinBudget(host.bench);
        refusalChangedNothing(host.bench);
      }
    }), { numRuns: RUNS });
  });

  it("the journal is the state (I7), accepts nothing twice (I2) and dispatches nothing without right or proof (I4, I5, I6)", { timeout: 600_000 }, () => {
    fc.assert(fc.property(moves, (list) => {
      const host = new ChaoticHost();
      list.forEach((move, index) => {
        host.move(move);
        if (index % 7 === 0 || index === list.length - 1) dispatchesAreRightful(host.bench);
      });
      foldIsState(host.bench);
      nothingTwice(host.bench);
    }), { numRuns: RUNS });
  });

  it("a journal that is compacted again and again, at any boundary, still folds to the state from each of its beginnings (I7)", { timeout: 600_000 }, () => {
    let compactions = 0;
    fc.assert(fc.property(fc.array(moves, { minLength: 3, maxLength: 5 }), number, (lists, at) => {
      const host = new ChaoticHost();
      host.bench.receive(0);
      for (const list of lists) {
        for (const move of list) host.move(move);
        host.drain();
        host.compact(at);
        host.drain();
      }
      foldIsState(host.bench);
      transcriptIsWhole(host.bench);
      compactions += host.bench.eventsOf("JournalCompacted").length;
    }), { numRuns: RUNS / 2 });
    expect(compactions, "few seeds lead to many, hardly any to none").toBeGreaterThan(0);
  });

  it("no call is shown to the model without its result, after any commit and from any start of the window", { timeout: 600_000 }, () => {
    fc.assert(fc.property(moves, fc.nat(), (list, cut) => {
      const host = new ChaoticHost();
      for (const move of list) host.move(move);
      transcriptIsWhole(host.bench);
      pairs(transcriptOf(host.bench.entries.slice(0, cut % (host.bench.entries.length + 1)), 0));
    }), { numRuns: RUNS });
  });

  it("a state that lost parts of itself is true again after its repair, stays so, and still brings every event to one outcome", { timeout: 600_000 }, () => {
    fc.assert(fc.property(moves, moves, number, (before, after, harm) => {
      const host = new ChaoticHost();
      for (const move of before) host.move(move);
      host.release();
      host.harm(harm);
      host.heal();
      expect(faultsOf(host.bench.open)).toEqual([]);
      expect(host.bench.open.quarantine).toBeUndefined();
      for (const move of after.slice(0, 40)) {
        host.move(move);
        statusIsTrue(host.bench);
        expect(faultsOf(host.bench.open)).toEqual([]);
      }
      host.drain();
      expect(atRest(host.bench), JSON.stringify(host.bench.state)).toBe(true);
      for (const [key, count] of outcomes(host.bench)) expect(count, key).toBe(1);
    }), { numRuns: RUNS });
  });

  it("every accepted event comes to exactly one outcome once all is quiet (I1), and the guard is gone", { timeout: 600_000 }, () => {
    fc.assert(fc.property(moves, (list) => {
      const host = new ChaoticHost();
      for (const move of list) host.move(move);
      host.drain();
      expect(atRest(host.bench), JSON.stringify(host.bench.state)).toBe(true);
      for (const [key, count] of outcomes(host.bench)) expect(count, key).toBe(1);
      expect(host.bench.open.guard.armed).toBe(false);
      foldIsState(host.bench);
      transcriptIsWhole(host.bench);
    }), { numRuns: RUNS });
  });
});
