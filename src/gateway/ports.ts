/**
 * Owns: what the edge needs of the outside, as ports. Adapters over the sidecar are in src/dapr and are handed in by
 * src/main; the inbox over a key-value store is in inbox/.
 */
import type { EventOutcome, JournalPage, SessionView } from "../contracts/api.js";
import type { Envelope } from "../contracts/cloudevent.js";
import type { DeadLetter } from "../contracts/messages.js";
import type { Problem } from "../contracts/problems.js";

/** Publishes to the tasks channel. Returning means that the broker has it. */
export interface TaskPublisher {
  /** Throws Problem `broker_unavailable`. */
  publish(envelope: Envelope): Promise<void>;
}

/** Records what can never be used. Throws when it is not recorded; the delivery is then repeated. */
export interface DeadLetters {
  record(letter: DeadLetter): Promise<void>;
}

/** Reads sessions through their actors: the truth. Every method throws Problem `actor_unavailable`. */
export interface Sessions {
  readSession(actorId: string): Promise<SessionView | undefined>;
  /** Entries with rev > afterRev, in order, `limit` at most; undefined where there is no such session. */
  readJournal(actorId: string, afterRev: number, limit: number): Promise<JournalPage | undefined>;
  readOutcome(actorId: string, key: string): Promise<EventOutcome>;
}

/** Which agent takes the event, in which session, or the Problem that says why none does (`routeEvent` with the agents bound). */
export type Router = (envelope: Envelope) =>
  | { readonly ok: true; readonly agent: { readonly name: string }; readonly sessionId: string }
  | { readonly ok: false; readonly problem: Problem };

export type KeyValueOperation =
  | { readonly op: "put"; readonly key: string; readonly value: string; readonly etag?: string; readonly createOnly?: boolean; readonly ttlSeconds?: number }
  | { readonly op: "delete"; readonly key: string };

/** A store with fenced transactions. Values are JSON texts. Every method throws Problem `store_unavailable`. */
export interface KeyValue {
  get(key: string): Promise<{ readonly value: string; readonly etag: string } | undefined>;
  bulkGet(keys: readonly string[]): Promise<Map<string, { readonly value: string; readonly etag: string }>>;
  /** All or nothing. `conflict`: a condition failed and nothing was written. */
  transact(operations: readonly KeyValueOperation[]): Promise<"committed" | "conflict">;
}

/** An event that was promised (202) and has no receipt yet. */
export interface InboxRow {
  readonly key: string;
  readonly envelopeText: string;
  readonly acceptedAtMs: number;
  readonly publishedAtMs: number;
  readonly attempts: number;
}

/** What is remembered of an accepted event for as long as its idempotency key lives. */
export interface Remembered {
  /** Digest of what was sent; the same key with another digest is refused. */
  readonly digest: string;
  /** The answer that was given, as JSON text. */
  readonly answer: string;
}

/** Where `add` finds the event's idempotency key known, it writes nothing and gives back what is remembered. */
export type AddResult = { readonly status: "added" } | { readonly status: "exists"; readonly remembered: Remembered };

/** The outcome of an event that no session took. */
export interface DeadEvent { readonly code: string; readonly deadLetterId: string }

export interface Inbox {
  add(row: InboxRow, identity: { readonly key: string } & Remembered): Promise<AddResult>;
  /** Whether an event has no receipt yet. */
  holds(key: string): Promise<boolean>;
  /** Drops a row on its receipt. Dropping what is not there is fine. */
  remove(key: string): Promise<void>;
  /** Drops a row whose event was dead-lettered, and remembers that in its place. Where there is no row nothing is remembered. */
  bury(key: string, dead: DeadEvent): Promise<void>;
  /** What is known here of an event: it waits for its receipt, or it is dead. Undefined once its session has it. */
  find(key: string): Promise<"waiting" | DeadEvent | undefined>;
  /** Rows whose next publication is due, the oldest due first. */
  due(nowMs: number, limit: number): Promise<InboxRow[]>;
  /** Claims one more publication. False where the row is gone or another replica claimed it. */
  postpone(row: InboxRow, next: { readonly publishedAtMs: number; readonly dueAtMs: number }): Promise<boolean>;
}
