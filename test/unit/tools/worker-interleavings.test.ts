/**
 * I6 as a property: three workers share a store; fast-check picks the order of every store operation, when deliveries come,
 * when workers die, when time jumps (also while a tool runs: a paused process), and which replies are lost.
 * A tool with `effects: once` has at most one effect, and nothing that is published says otherwise.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ToolFailure } from "../../../src/agent/tool-failure.js";
import type { CallStore } from "../../../src/tools/ports.js";
import { flush, TestClock } from "../../support/tools/clock.js";
import { countingTool, eventOf, harness, requestFor, type Harness } from "../../support/tools/harness.js";
import { MemoryCallStore, type PlannedFailure } from "../../support/tools/memory-call-store.js";

type Which = 0 | 1 | 2;
type Step =
  | { type: "deliver"; worker: Which; try: 1 | 2 }
  | { type: "crash"; worker: Which }
  | { type: "pass"; ms: number }
  | { type: "lose"; failure: PlannedFailure }
  | { type: "go"; operations: number };

const worker = fc.constantFrom<Which>(0, 1, 2);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ type: fc.constant("deliver" as const), worker, try: fc.constantFrom<1 | 2>(1, 1, 1, 2) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("crash" as const), worker }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("pass" as const), ms: fc.constantFrom(5_000, 21_000, 61_000) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("lose" as const), failure: fc.record({ operation: fc.constantFrom("read" as const, "create" as const, "replace" as const), when: fc.constantFrom("before" as const, "after" as const) }) }) },
  { weight: 6, arbitrary: fc.record({ type: fc.constant("go" as const), operations: fc.integer({ min: 1, max: 6 }) }) },
);

const never = <T>(): Promise<T> => new Promise<T>(() => undefined);

/** A process that can die: afterwards nothing it asks for ever comes back, and nothing it does happens. */
class Process {
  dead = false;
  constructor(private readonly inner: CallStore) {}
  readonly store: CallStore = {
    read: (callId) => (this.dead ? never() : this.inner.read(callId).then((found) => this.#unlessDead(found))),
    create: (record, options) => (this.dead ? never() : this.inner.create(record, options).then((answer) => this.#unlessDead(answer))),
    replace: (record, etag, options) => (this.dead ? never() : this.inner.replace(record, etag, options).then((answer) => this.#unlessDead(answer))),
  };
  #unlessDead<T>(value: T): T | Promise<T> { return this.dead ? never<T>() : value; }
}

/** A function, so that the answer is not narrowed away across an await. */
const isDead = (process: Process): boolean => process.dead;

interface World { effects: number; outcomes: string[]; answered: boolean }

async function play(scheduler: fc.Scheduler, steps: readonly Step[], kind: { reconcile: boolean; failsFirst: boolean }): Promise<World> {
  const clock = new TestClock();
  let quiet = false;
  const store = new MemoryCallStore(() => clock.nowMs(), async () => { if (!quiet) await scheduler.schedule(Promise.resolve(), "store"); });
  let effects = 0;
  let begun = 0;
  const make = (process: Process): Harness => harness([countingTool({
    timeoutMs: 600_000,
    run: async () => {
      if (!quiet) await scheduler.schedule(Promise.resolve(), "before the effect");
      if (isDead(process)) return never();
      begun += 1;
      if (kind.failsFirst && begun === 1) throw ToolFailure.transient("503");
      effects += 1;
      if (!quiet) await scheduler.schedule(Promise.resolve(), "after the effect");
      return isDead(process) ? never() : "ok";
    },
    ...(kind.reconcile ? { reconcile: async () => (effects > 0 ? { happened: true, output: "ok" } : { happened: false }) } : {}),
  }).tool], { clock, store, reach: process.store });
  const processes = [new Process(store), new Process(store), new Process(store)];
  const worlds = processes.map(make);
  const workers = worlds.map((world, i) => world.worker(`w${String(i)}`));
  const request = (number: number): string => eventOf(requestFor(clock, { request: { try: number, deadlineAtMs: clock.nowMs() + 600_000 } }));

  for (const next of steps) {
    if (next.type === "deliver" && processes[next.worker]?.dead === false) void workers[next.worker]!.handleRequest(request(next.try));
    else if (next.type === "crash") processes[next.worker]!.dead = true;
    else if (next.type === "pass") {
      // Where a process may be paused (no reconcile), time jumps under running tools; else their renewals come through.
      if (kind.reconcile) await settle(scheduler);
      await clock.advance(next.ms);
    } else if (next.type === "lose") store.failures.push(next.failure);
    else if (next.type === "go") for (let i = 0; i < next.operations; i += 1) { if (scheduler.count() > 0) await scheduler.waitNext(1); await flush(1); }
    await flush(1);
  }
  // Then the dust settles, and the session asks once more.
  store.failures.length = 0;
  quiet = true;
  await settle(scheduler);
  await clock.advance(1_500_000);
  await settle(scheduler);
  const last = make(new Process(store));
  await last.worker("w9").handleRequest(request(2));
  await flush();
  const results = [...worlds, last].flatMap((world) => world.results);
  // A try whose claim was written without a clear answer never started; when a later one was claimed, it is told so, and that is true.
  const neverStarted = results.filter((result) => result.outcome === "failed" && result.try === 1 && result.failure?.message === "try 2 has taken its place");
  return { effects, outcomes: results.filter((result) => !neverStarted.includes(result)).map((result) => result.outcome), answered: last.results.length > 0 };
}

async function settle(scheduler: fc.Scheduler): Promise<void> {
  for (let i = 0; i < 500; i += 1) {
    await flush(2);
    if (scheduler.count() === 0) return;
    await scheduler.waitNext(1);
  }
}

describe.each([[false, false], [false, true], [true, false], [true, true]])("a tool with effects once, reconcile: %s, fails at first: %s", (reconcile, failsFirst) => {
  it("has at most one effect in every interleaving, and the session always gets a true answer", { timeout: 120_000 }, async () => {
    await fc.assert(fc.asyncProperty(fc.scheduler(), fc.array(step, { minLength: 2, maxLength: 25 }), async (scheduler, steps) => {
      const world = await play(scheduler, steps, { reconcile, failsFirst });
      expect(world.effects).toBeLessThanOrEqual(1);
      expect(world.answered).toBe(true);
      if (world.effects === 0) expect(world.outcomes).not.toContain("succeeded");
      for (const outcome of world.outcomes) expect(["succeeded", "outcome_unknown", ...(failsFirst ? ["failed"] : [])]).toContain(outcome);
    }), { numRuns: 300 });
  });
});
