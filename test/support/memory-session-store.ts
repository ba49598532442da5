/**
 * Owns: the session store in memory, as strict as the real one (create-only journal keys and ledger rows, etags, all or
 * nothing, texts instead of objects), with failures on demand. `describeSessionStoreContract` keeps it honest.
 */
import { setImmediate as yieldToOthers } from "node:timers/promises";
import { blobKeysOf, readEntry, type JournalEntry } from "../../src/contracts/journal.js";
import { Problem } from "../../src/contracts/problems.js";
import { MAX_DOCUMENT_BYTES } from "../../src/dapr/session-store.js";
import { upcastDocument } from "../../src/contracts/stored-version.js";
import type { SessionState } from "../../src/session/core/state.js";
import type { LedgerRow, SessionStore, TurnWrite } from "../../src/session/host/ports.js";

/** `before`: nothing was written. `after`: it was, and only the reply was lost. `conflict`: another writer is played, once. */
export type CommitFault = "before" | "after" | "conflict";

export class MemorySessionStore implements SessionStore {
  readonly #documents = new Map<string, { text: string; etag: string }>();
  readonly #journal = new Map<string, string>();
  readonly #ledger = new Map<string, string>();
  readonly #blobs = new Map<string, string>();
  readonly #checkpoints = new Map<string, number>();
  #etags = 0;
  readonly #faults: CommitFault[] = [];
  /** Every call fails while true. */
  down = false;
  /** Every commit waits for this while it is set. */
  slow: Promise<void> | undefined;
  /** Runs between a turn's reading and its write, to play another host. Once. */
  beforeCommit: ((write: TurnWrite) => Promise<void>) | undefined;
  /** What was asked for, in order: `load`, `entries`, `ledger`, `blob`, `commit`, `refuse`. */
  readonly calls: string[] = [];

  /** The next commits fail thus, one each. */
  failNext(...faults: CommitFault[]): void { this.#faults.push(...faults); }

  async load(actorId: string): Promise<{ state: SessionState; etag: string } | undefined> {
    await this.#called("load");
    const row = this.#documents.get(actorId);
    return row === undefined ? undefined : { state: upcastDocument(JSON.parse(row.text)) as unknown as SessionState, etag: row.etag };
  }

  async readEntries(actorId: string, fromRev: number, toRev: number): Promise<JournalEntry[]> {
    await this.#called("entries");
    const entries: JournalEntry[] = [];
    for (let rev = fromRev; rev <= toRev; rev += 1) {
      const text = this.#journal.get(`${actorId}:${String(rev)}`);
      if (text !== undefined) entries.push(readEntry(text));
    }
    return entries;
  }

  async readCheckpoint(actorId: string): Promise<number | undefined> {
    await this.#called("checkpoint");
    return this.#checkpoints.get(actorId);
  }

  async readLedger(actorId: string, key: string): Promise<LedgerRow | undefined> {
    await this.#called("ledger");
    const text = this.#ledger.get(`${actorId}:${key}`);
    return text === undefined ? undefined : JSON.parse(text) as LedgerRow;
  }

  async readBlob(key: string): Promise<string | undefined> {
    await this.#called("blob");
    return this.#blobs.get(key);
  }

  async commit(write: TurnWrite): Promise<"committed" | "conflict"> {
    await this.#called("commit");
    await this.slow;
    const play = this.beforeCommit;
    this.beforeCommit = undefined;
    await play?.(write);
    const fault = this.#faults.shift();
    if (fault === "before") throw new Problem("store_unavailable", "the store failed before the write (test)");
    if (fault === "conflict") return "conflict";
    const verdict = this.#transact(write);
    if (fault === "after") throw new Problem("store_unavailable", "the store's reply was lost (test)");
    return verdict;
  }

  async erase(actorId: string, fromRev: number, toRev: number): Promise<void> {
    await this.#called("erase");
    for (const entry of await this.readEntries(actorId, fromRev, toRev)) {
      for (const key of blobKeysOf(entry)) this.#blobs.delete(key);
      this.#journal.delete(`${actorId}:${String(entry.rev)}`);
    }
  }

  async refuse(actorId: string, key: string, row: LedgerRow): Promise<"committed" | "conflict"> {
    await this.#called("refuse");
    if (this.#ledger.has(`${actorId}:${key}`)) return "conflict";
    this.#ledger.set(`${actorId}:${key}`, JSON.stringify(row));
    return "committed";
  }

  /** Loses a blob, as a careless clean-up would. */
  loseBlob(key: string): void { this.#blobs.delete(key); }
  /** Loses, or changes, what a careless restore would. */
  damageEntry(actorId: string, rev: number, change?: (entry: JournalEntry) => JournalEntry): void {
    const key = `${actorId}:${String(rev)}`;
    const text = this.#journal.get(key);
    if (text === undefined) throw new Error(`there is no entry ${key}`);
    if (change === undefined) this.#journal.delete(key);
    else this.#journal.set(key, JSON.stringify(change(readEntry(text))));
  }
  damageDocument(actorId: string, state: SessionState | undefined): void {
    this.#etags += 1;
    if (state === undefined) this.#documents.delete(actorId);
    else this.#documents.set(actorId, { text: JSON.stringify(state), etag: String(this.#etags) });
  }
  /** All entries of a session. */
  journalOf(actorId: string): JournalEntry[] {
    return [...this.#journal].filter(([key]) => key.startsWith(`${actorId}:`)).map(([, text]) => readEntry(text)).sort((a, b) => a.rev - b.rev);
  }
  stateOf(actorId: string): SessionState | undefined {
    const row = this.#documents.get(actorId);
    return row === undefined ? undefined : JSON.parse(row.text) as SessionState;
  }
  get ledgerKeys(): string[] { return [...this.#ledger.keys()]; }
  get blobKeys(): string[] { return [...this.#blobs.keys()]; }
  count(call: string): number { return this.calls.filter((one) => one === call).length; }

  #transact(write: TurnWrite): "committed" | "conflict" {
    const { actorId, entry } = write;
    const document = JSON.stringify(write.state);
    if (Buffer.byteLength(document) > MAX_DOCUMENT_BYTES) throw new Problem("session_too_large", `the document of session ${actorId} has ${String(Buffer.byteLength(document))} bytes; the limit is ${String(MAX_DOCUMENT_BYTES)}`);
    const journalKey = `${actorId}:${String(entry.rev)}`;
    const ledger = write.ledger.map(({ key, row }) => [`${actorId}:${key}`, JSON.stringify(row)] as const);
    const stale = write.documentEtag !== undefined && this.#documents.get(actorId)?.etag !== write.documentEtag;
    if (stale || this.#journal.has(journalKey) || ledger.some(([key]) => this.#ledger.has(key))) return "conflict";
    this.#etags += 1;
    this.#documents.set(actorId, { text: document, etag: String(this.#etags) });
    this.#journal.set(journalKey, JSON.stringify(entry));
    for (const [key, text] of ledger) this.#ledger.set(key, text);
    for (const { key, text } of write.blobs) this.#blobs.set(key, text);
    if (write.checkpoint === true) this.#checkpoints.set(actorId, entry.rev);
    return "committed";
  }

  /** A store is never reached within one microtask: others get their turn. */
  async #called(call: string): Promise<void> {
    this.calls.push(call);
    await yieldToOthers();
    if (this.down) throw new Problem("store_unavailable", "the store is down (test)");
  }
}
