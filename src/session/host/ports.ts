/**
 * Owns: what the session host needs from outside, named for the need. Adapters are in src/dapr and src/platform and
 * are handed in by src/main.
 */
import type { ChannelName } from "../../contracts/channels.js";
import type { Envelope } from "../../contracts/cloudevent.js";
import type { DecisionClaims } from "../../contracts/decisions.js";
import type { JournalEntry } from "../../contracts/journal.js";
import type { GrantClaims, ResultClaims } from "../../contracts/tools.js";
import type { SessionState } from "../core/state.js";

/** Why an event was never taken, and the letter that says so. */
export interface Refusal { readonly code: string; readonly message: string; readonly deadLetterId: string; readonly tries: number }
export interface LedgerRow { readonly rev: number; readonly runId?: string; readonly verdict?: string; /** Why the verdict is a refusal. */ readonly message?: string; readonly refusal?: Refusal }

/** Everything that one turn writes: all or nothing. */
export interface TurnWrite {
  readonly actorId: string;
  readonly state: SessionState;
  /** Etag of the document as it was loaded; only on the first commit after a load. */
  readonly documentEtag?: string;
  readonly entry: JournalEntry;
  readonly ledger: readonly { readonly key: string; readonly row: LedgerRow }[];
  readonly blobs: readonly { readonly key: string; readonly text: string }[];
  /** The entry is a checkpoint: a journal may be folded from here. */
  readonly checkpoint?: true;
}

/** The session store. All methods throw Problem `store_unavailable`. */
export interface SessionStore {
  load(actorId: string): Promise<{ readonly state: SessionState; readonly etag: string } | undefined>;
  /** Entries of these revisions, in order; missing ones are left out. */
  readEntries(actorId: string, fromRev: number, toRev: number): Promise<JournalEntry[]>;
  /** Revision of the newest checkpoint; undefined where the journal begins with its first entry. */
  readCheckpoint(actorId: string): Promise<number | undefined>;
  readLedger(actorId: string, key: string): Promise<LedgerRow | undefined>;
  readBlob(key: string): Promise<string | undefined>;
  /** `conflict`: somebody else committed this revision, or a ledger row exists; nothing was written. */
  commit(write: TurnWrite): Promise<"committed" | "conflict">;
  /** Deletes these entries and the blobs they point to, as far as they are still there. Ledger rows go by their own time. */
  erase(actorId: string, fromRev: number, toRev: number): Promise<void>;
  /** Writes a ledger row alone, create-only: what it says of the event stands from then on. `conflict`: it has one. */
  refuse(actorId: string, key: string, row: LedgerRow): Promise<"committed" | "conflict">;
}

/** Publishes; resolves when the broker has the message. Throws Problem `broker_unavailable`. */
export interface Bus { publish(channel: ChannelName, envelope: Envelope): Promise<void> }

/** Durable wake-ups. */
export interface Reminders {
  /** Without a period it fires once. */
  set(actorId: string, name: string, options: { dueMs: number; periodMs?: number; data: string }): Promise<void>;
  remove(actorId: string, name: string): Promise<void>;
}

/** Which hosts are alive. A host that did not beat for `staleMs` is dead to the others. */
export interface Heartbeats { isAlive(host: string): Promise<boolean> }

export interface GrantSigner { sign(claims: GrantClaims): Promise<string> }
export interface DecisionVerifier { verify(jws: string, nowMs: number): Promise<DecisionClaims> }
export interface ResultVerifier { verify(jws: string, nowMs: number): Promise<ResultClaims> }
