/** Owns: the worker's call records in its own state store: `call:<callId>`, create-only and etag writes. */
import type { DaprState } from "./state.js";

export class DaprCallStore<R extends { readonly callId: string }> {
  constructor(private readonly state: DaprState, private readonly parse: (document: unknown) => R) {}

  async read(callId: string): Promise<{ record: R; etag: string } | undefined> {
    const item = await this.state.get(`call:${callId}`);
    return item === undefined ? undefined : { record: this.parse(JSON.parse(item.value)), etag: item.etag };
  }

  async create(record: R, options: { readonly ttlSeconds: number }): Promise<"created" | "exists"> {
    const written = await this.state.transact([{ op: "put", key: `call:${record.callId}`, value: JSON.stringify(record), createOnly: true, ttlSeconds: options.ttlSeconds }]);
    return written === "committed" ? "created" : "exists";
  }

  async replace(record: R, etag: string, options: { readonly ttlSeconds: number }): Promise<"replaced" | "conflict"> {
    const written = await this.state.transact([{ op: "put", key: `call:${record.callId}`, value: JSON.stringify(record), etag, ttlSeconds: options.ttlSeconds }]);
    return written === "committed" ? "replaced" : "conflict";
  }
}
