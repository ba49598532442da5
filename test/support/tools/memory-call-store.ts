/** Owns: the worker's store in memory, as strict as the real one, with failures on demand. */
import type { CallStore } from "../../../src/tools/ports.js";
import { CallRecord } from "../../../src/tools/record.js";

type Operation = "read" | "create" | "replace";
/** `before`: nothing was written. `after`: it was, and only the reply was lost. */
export interface PlannedFailure { readonly operation: Operation; readonly when: "before" | "after" }

export class MemoryCallStore implements CallStore {
  readonly #rows = new Map<string, { text: string; etag: string; untilMs: number }>();
  #version = 0;
  readonly failures: PlannedFailure[] = [];
  /** Every write that took place, in order. */
  readonly history: { operation: Operation; record: CallRecord }[] = [];
  down = false;
  /** Called when a planned failure strikes, once: plan the next one here. */
  onFailure: (() => void) | undefined;

  constructor(private readonly nowMs: () => number = () => Date.now(), private readonly yieldTurn: () => Promise<void> = () => Promise.resolve()) {}

  async read(callId: string): Promise<{ record: CallRecord; etag: string } | undefined> {
    return this.#guarded("read", () => {
      const row = this.#live(callId);
      return row === undefined ? undefined : { record: CallRecord.parse(JSON.parse(row.text)), etag: row.etag };
    });
  }

  async create(record: CallRecord, options: { ttlSeconds: number }): Promise<"created" | "exists"> {
    return this.#guarded("create", () => {
      if (this.#live(record.callId) !== undefined) return "exists";
      this.#put("create", record, options.ttlSeconds);
      return "created";
    });
  }

  async replace(record: CallRecord, etag: string, options: { ttlSeconds: number }): Promise<"replaced" | "conflict"> {
    return this.#guarded("replace", () => {
      if (this.#live(record.callId)?.etag !== etag) return "conflict";
      this.#put("replace", record, options.ttlSeconds);
      return "replaced";
    });
  }

  ttlLeftMs(callId: string): number { return (this.#live(callId)?.untilMs ?? 0) - this.nowMs(); }

  #put(operation: Operation, record: CallRecord, ttlSeconds: number): void {
    this.#version += 1;
    this.#rows.set(record.callId, { text: JSON.stringify(record), etag: String(this.#version), untilMs: this.nowMs() + ttlSeconds * 1000 });
    this.history.push({ operation, record: structuredClone(record) });
  }

  #live(callId: string): { text: string; etag: string; untilMs: number } | undefined {
    const row = this.#rows.get(callId);
    return row !== undefined && row.untilMs > this.nowMs() ? row : undefined;
  }

  async #guarded<T>(operation: Operation, work: () => T): Promise<T> {
    await this.yieldTurn();
    if (this.down) throw new Error("the store is down");
    const index = this.failures.findIndex((failure) => failure.operation === operation);
    const failure = index === -1 ? undefined : this.failures.splice(index, 1)[0];
    if (failure !== undefined) {
      const { onFailure } = this;
      this.onFailure = undefined;
      onFailure?.();
    }
    if (failure?.when === "before") throw new Error("the store failed before the write");
    const result = work();
    if (failure?.when === "after") throw new Error("the store's reply was lost");
    await this.yieldTurn();
    return result;
  }
}
