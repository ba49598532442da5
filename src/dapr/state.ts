/**
 * Owns: the state API of one store: reads, bulk reads, and transactions with create-only and etag writes. This is
 * the fence of DESIGN 3, so a transaction's reply is never guessed: `conflict` only where the store says so.
 *
 * Redis neither rolls back nor honours create-only (DESIGN 3): `probeFencing` (fencing.ts) finds such a store at start.
 */
import { Problem } from "../contracts/problems.js";
import { describeReply, type Sidecar } from "./sidecar.js";

export interface StateItem { readonly value: string; readonly etag: string }

export type StateOperation =
  | { readonly op: "put"; readonly key: string; /** JSON text */ readonly value: string; readonly etag?: string; readonly createOnly?: boolean; readonly ttlSeconds?: number }
  | { readonly op: "delete"; readonly key: string };

export class DaprState {
  constructor(private readonly sidecar: Sidecar, private readonly store: string) {}

  /** Value as JSON text; undefined where there is none. Throws Problem `store_unavailable`. */
  async get(key: string): Promise<StateItem | undefined> {
    const reply = await this.sidecar.call("GET", `/v1.0/state/${this.store}/${encodeURIComponent(key)}?consistency=strong`, { unavailable: "store_unavailable" });
    if (reply.status === 204 || (reply.status === 200 && reply.text === "")) return undefined;
    if (reply.status !== 200) throw this.#failed(`reading ${key}`, describeReply(reply));
    return { value: reply.text, etag: reply.etag ?? "" };
  }

  /** The keys that exist. Throws Problem `store_unavailable` when any of them could not be read. */
  async bulkGet(keys: readonly string[]): Promise<Map<string, StateItem>> {
    const found = new Map<string, StateItem>();
    if (keys.length === 0) return found;
    const reply = await this.sidecar.call("POST", `/v1.0/state/${this.store}/bulk`, { body: JSON.stringify({ keys, parallelism: 10 }), unavailable: "store_unavailable" });
    if (reply.status === 204) return found;
    if (reply.status !== 200) throw this.#failed(`reading ${String(keys.length)} keys`, describeReply(reply));
    const items = JSON.parse(reply.text) as { key: string; data?: unknown; etag?: string; error?: string }[];
    for (const item of items) {
      if (item.error !== undefined && item.error !== "") throw this.#failed(`reading ${item.key}`, item.error);
      if (item.data !== undefined && item.data !== null) found.set(item.key, { value: JSON.stringify(item.data), etag: item.etag ?? "" });
    }
    return found;
  }

  /**
   * All or nothing. `conflict`: an etag or create-only condition failed, and nothing was written.
   * Throws Problem `store_unavailable` when it is not known whether it was written: read before you go on.
   */
  async transact(operations: readonly StateOperation[]): Promise<"committed" | "conflict"> {
    const body = `{"operations":[${operations.map(operationText).join(",")}]}`;
    const reply = await this.sidecar.call("POST", `/v1.0/state/${this.store}/transaction`, { body, unavailable: "store_unavailable" });
    if (reply.status === 204 || reply.status === 200) return "committed";
    if (isConflict(reply.text)) return "conflict";
    throw this.#failed(`a transaction of ${String(operations.length)} operations`, describeReply(reply));
  }

  #failed(what: string, detail: string): Problem {
    return new Problem("store_unavailable", `${what} in state store ${this.store} failed: ${detail}`, { hint: "check the store and its component (docket doctor)" });
  }
}

function operationText(operation: StateOperation): string {
  if (operation.op === "delete") return JSON.stringify({ operation: "delete", request: { key: operation.key } });
  const fenced = operation.createOnly === true || operation.etag !== undefined;
  const request = JSON.stringify({
    key: operation.key,
    ...(operation.etag === undefined ? {} : { etag: operation.etag }),
    ...(fenced ? { options: { concurrency: "first-write" } } : {}),
    ...(operation.ttlSeconds === undefined ? {} : { metadata: { ttlInSeconds: String(operation.ttlSeconds) } }),
  });
  // The value is JSON text already: it is pasted in, so that a turn serialises its document once.
  return `{"operation":"upsert","request":${request.slice(0, -1)},"value":${operation.value}}}`;
}

/** Words of the PostgreSQL v2 and SQLite components for a failed condition (pinned by test/integration/state). */
function isConflict(text: string): boolean {
  return /etag|no (item|row)s? (was|were)? ?(affected|updated)|unique constraint|duplicate key|row was not (inserted|updated)|already exists/i.test(text);
}
