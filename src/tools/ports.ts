/**
 * Owns: what the worker needs from outside. Adapters live in src/dapr and src/platform and are handed in by src/main.
 */
import type { DeadLetter } from "../contracts/messages.js";
import type { GrantClaims, ResultClaims, ToolClaim, ToolResult } from "../contracts/tools.js";
import type { CallRecord } from "./record.js";

/**
 * The worker's own store: one record per call. Writes are fenced: two workers can never both create a record, nor
 * both replace the same version of it (I6). Throws where it cannot say whether it wrote.
 */
export interface CallStore {
  read(callId: string): Promise<{ readonly record: CallRecord; readonly etag: string } | undefined>;
  /** Create-only. */
  create(record: CallRecord, options: { readonly ttlSeconds: number }): Promise<"created" | "exists">;
  /** Only over the version with this etag. */
  replace(record: CallRecord, etag: string, options: { readonly ttlSeconds: number }): Promise<"replaced" | "conflict">;
}

/** The tool-results channel. Each call is one publication with an event id of its own. Throws where the broker did not take it. */
export interface Results {
  claimed(claim: ToolClaim): Promise<void>;
  completed(result: ToolResult, traceparent?: string): Promise<void>;
}

/** Checks the signature over a grant and gives its claims. Throws Problem `bad_signature`. */
export interface GrantVerifier { verify(jws: string): Promise<GrantClaims> }

/** Signs a result's claims as the worker. */
export interface ResultSigner { sign(claims: ResultClaims): Promise<string> }

/** The dead-letter channel. Throws where the broker did not take it. */
export interface DeadLetters { record(letter: DeadLetter): Promise<void> }

/** Secrets for tools, by name. */
export interface Secrets { find(name: string): string | undefined }

/** Time as a port. `after` gives its own cancellation. */
export interface WorkerClock {
  nowMs(): number;
  after(delayMs: number, run: () => void): () => void;
}

/** One line of log; never payloads or secrets (I13). */
export type Log = (level: "debug" | "info" | "warn" | "error", message: string, fields?: Record<string, unknown>) => void;
