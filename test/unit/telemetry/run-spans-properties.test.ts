/** Whatever a host reports, in whatever order: the spans of each run are a tree, said once, and no stretch of work is open while only people are awaited. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JournalEntry } from "../../../src/contracts/journal.js";
import type { SpanFact } from "../../../src/platform/telemetry/trace.js";
import { evolveAll } from "../../../src/session/core/evolve.js";
import { NEW_SESSION, type SessionState } from "../../../src/session/core/state.js";
import { runSpans, type RunFacts } from "../../../src/session/host/run-spans.js";
import { ChaoticHost, type Move } from "../session/chaos.js";

const number = fc.integer({ min: 0, max: 999 });
const moves: fc.Arbitrary<Move[]> = fc.array(fc.record({ kind: number, a: number, b: number, c: number }), { minLength: 1, maxLength: 120, size: "max" });
const FACTS: Omit<RunFacts, "runId"> = { traceId: "t", parentId: "root", tenant: "default", sessionId: "s", agent: "clerk", agentVersion: "1", provider: "p", model: "m", content: false };
/** Found by this property: a late answer says that a call of unknown outcome failed, and it is to be tried again, while people are awaited. */
const A_LATE_FAILURE: Move[] = [
  { kind: 0, a: 0, b: 2, c: 0 }, { kind: 428, a: 700, b: 257, c: 340 }, { kind: 340, a: 821, b: 0, c: 0 },
  { kind: 833, a: 0, b: 116, c: 0 }, { kind: 111, a: 0, b: 0, c: 0 }, { kind: 452, a: 17, b: 0, c: 0 },
];
/** So was this: the model's next try is due, and a person is asked for its budget first. */
const NO_BUDGET_FOR_THE_NEXT_TRY: Move[] = [
  { kind: 0, a: 0, b: 2, c: 0 }, { kind: 890, a: 0, b: 0, c: 0 }, { kind: 377, a: 183, b: 0, c: 0 }, { kind: 28, a: 331, b: 349, c: 410 },
  { kind: 481, a: 16, b: 0, c: 0 }, { kind: 440, a: 0, b: 0, c: 0 }, { kind: 0, a: 0, b: 0, c: 0 },
];
/** Nothing but questions to people is left of its run. */
function waits(state: SessionState): boolean {
  return (state.status === "AWAITING_APPROVAL" || state.status === "ESCALATED") && state.run.calls.every(({ life }) => life.phase !== "dispatched" && life.phase !== "waiting_retry");
}

interface Traced { readonly over: boolean; readonly entries: readonly JournalEntry[]; readonly spans: readonly SpanFact[]; readonly waitsAt: ReadonlySet<number> }

/** Each run of the journal, folded entry by entry, as hosts do. */
function traced(journal: readonly JournalEntry[]): Traced[] {
  return journal.flatMap((first, at) => first.events.flatMap((event): Traced[] => {
    if (event.type !== "RunStarted") return [];
    const { runId } = event;
    const end = journal.findIndex((entry) => entry.events.some((other) => other.type === "RunEnded" && other.runId === runId));
    const entries = journal.slice(at, end < 0 ? undefined : end + 1);
    const waitsAt = new Set<number>();
    const spans = entries.flatMap((entry, index) => {
      const { ended } = runSpans({ ...FACTS, runId }, entries.slice(0, index + 1));
      if (ended.some(({ attributes }) => attributes["docket.ended_by"] === "waits_for_people")) waitsAt.add(entry.rev);
      return ended;
    });
    return [{ over: end >= 0, entries, spans, waitsAt }];
  }));
}

describe("the spans of a run", () => {
  it("are a tree, each said once, with one end", { timeout: 600_000 }, () => {
    fc.assert(fc.property(moves, (list) => {
      const host = new ChaoticHost();
      for (const move of list) host.move(move);
      for (const { entries, spans, over } of traced(host.bench.entries)) {
        const stretches = new Set(spans.filter(({ name }) => name.startsWith("invoke_agent")).map(({ spanId }) => spanId));
        expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
        for (const { name, parentId, startMs, endMs } of spans) {
          expect(endMs, name).toBeGreaterThanOrEqual(startMs);
          if (name.startsWith("invoke_agent")) expect(parentId).toBe("root");
          else if (over) expect(stretches, name).toContain(parentId);
        }
        expect(spans.filter(({ attributes }) => attributes["docket.ended_by"] === "end")).toHaveLength(over ? 1 : 0);
        expect(spans.filter(({ name }) => name.startsWith("chat"))).toHaveLength(entries.flatMap(({ events }) => events).filter(({ type }) => type === "ModelAnswered" || type === "ModelCallFailed").length);
      }
    }), { numRuns: 30 });
  });

  it("have a stretch that ends exactly where the session begins to wait for people", { timeout: 600_000 }, () => {
    let seen = 0;
    fc.assert(fc.property(moves, (list) => {
      const host = new ChaoticHost();
      for (const move of list) host.move(move);
      const journal = host.bench.entries;
      const parkedAt = new Set<number>();
      let state: SessionState = NEW_SESSION;
      for (const entry of journal) {
        const before = state;
        state = evolveAll(state, entry.events, entry);
        if (waits(state) && !waits(before)) parkedAt.add(entry.rev);
      }
      const found = traced(journal).flatMap(({ waitsAt }) => [...waitsAt]);
      expect(found.sort((a, b) => a - b)).toEqual([...parkedAt].sort((a, b) => a - b));
      seen += found.length;
    }), { numRuns: 60, examples: [[A_LATE_FAILURE], [NO_BUDGET_FOR_THE_NEXT_TRY]] });
    expect(seen).toBeGreaterThan(0);
  });
});
