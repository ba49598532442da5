/**
 * Owns: changes of the inbox that go together: what waits while a change is being written is planned as one read and one
 * transaction (N1 to N3 hold as for each alone). Removals have time, since a row that stays too long is only published once more,
 * so they wait a moment for an addition to go with. What does not fit in (a conflict, a full bucket) is done alone.
 */
import type { KeyValueOperation } from "../ports.js";

/** One change that can be planned with others. */
export interface Change<T> {
  /** Everything that must be read to plan it. */
  readonly keys: readonly string[];
  /** Its operations, or its result where there is nothing to do; undefined where it must be done alone. Sees what the changes before it have planned. */
  plan(): { readonly operations: readonly KeyValueOperation[]; readonly result: T } | undefined;
  alone(): Promise<T>;
}

export interface BatchDeps<S> {
  readonly read: (keys: readonly string[]) => Promise<S>;
  /** Begins a plan over what was read. */
  readonly begin: (found: S) => void;
  /** Ends the plan: the operations on what the changes share. */
  readonly shared: () => readonly KeyValueOperation[];
  readonly write: (operations: readonly KeyValueOperation[]) => Promise<"committed" | "conflict">;
}

interface Waiting { readonly run: Change<unknown>; readonly done: (result: unknown) => void; readonly failed: (error: unknown) => void }

const BATCH_SIZE = 64;

export class Batches<S> {
  readonly #urgent: Waiting[] = [];
  readonly #lazy: Waiting[] = [];
  #running = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly deps: BatchDeps<S>, private readonly lazyMs: number) {}

  /** `lazy`: may wait for company. Rejects as the change alone would. */
  add<T>(change: Change<T>, { lazy }: { readonly lazy: boolean }): Promise<T> {
    return new Promise<T>((done, failed) => {
      (lazy ? this.#lazy : this.#urgent).push({ run: change, done: done as (result: unknown) => void, failed });
      if (!lazy || this.#lazy.length >= BATCH_SIZE) this.#go();
      else this.#timer ??= setTimeout(() => { this.#go(); }, this.lazyMs);
    });
  }

  #go(): void {
    if (this.#running) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const urgent = this.#urgent.splice(0, BATCH_SIZE);
    const batch = [...urgent, ...this.#lazy.splice(0, BATCH_SIZE - urgent.length)];
    if (batch.length === 0) return;
    this.#running = true;
    void this.#run(batch).finally(() => {
      this.#running = false;
      if (this.#urgent.length > 0) this.#go();
      else if (this.#lazy.length > 0) this.#timer ??= setTimeout(() => { this.#go(); }, this.lazyMs);
    });
  }

  async #run(batch: readonly Waiting[]): Promise<void> {
    try {
      const [only] = batch;
      if (batch.length === 1 && only !== undefined) { settleAlone(only); return; }
      const found = await this.deps.read([...new Set(batch.flatMap(({ run }) => run.keys))]);
      this.deps.begin(found);
      const planned = batch.map((waiting) => ({ waiting, plan: waiting.run.plan() }));
      const operations = [...planned.flatMap(({ plan }) => plan?.operations ?? []), ...this.deps.shared()];
      const written = operations.length === 0 || (await this.deps.write(operations)) === "committed";
      for (const { waiting, plan } of planned) {
        if (plan !== undefined && (written || plan.operations.length === 0)) waiting.done(plan.result);
        else settleAlone(waiting);
      }
    } catch (error) {
      for (const { failed } of batch) failed(error);
    }
  }
}

function settleAlone({ run, done, failed }: Waiting): void {
  run.alone().then(done, failed);
}
