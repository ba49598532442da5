/**
 * Owns: the inbox (DESIGN 7.10): every event that was promised and has no receipt yet, in a store that cannot list
 * its keys. So a fixed ring of index documents ("buckets") lists the rows, sharded by hash of the row key.
 *
 * Invariants
 *   N1 a row and its bucket entry are written and moved in ONE transaction: a row is always found by `due`. Deleted is the row
 *      alone; its entry, which then leads nowhere, goes with the next change of the bucket, or when it is due.
 *   N2 a row is written create-only, and changed under its etag: a receipt that removed it is never undone.
 *   N3 a bucket holds `bucketRows` keys at most (I9); an inbox that is full refuses (503), it never forgets.
 *   N4 the ring never shrinks: `buckets` may be raised between restarts, never lowered.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Mutex } from "async-mutex";
import { Problem } from "../../contracts/problems.js";
import type { Clock } from "../../platform/clock.js";
import type { AddResult, DeadEvent, Inbox, InboxRow, KeyValue, KeyValueOperation, Remembered } from "../ports.js";
import { BucketDocument, bucketKeyOf, DeadDocument, deadKeyOf, homeBucketOf, identityKeyOf, IdentityDocument, readDocument, RowDocument, rowKeyOf } from "./documents.js";

export interface InboxOptions {
  readonly clock: Clock;
  /** How long a first publication may wait for its receipt. */
  readonly receiptWaitMs: number;
  readonly idempotencyMs: number;
  /** Index documents. Raise only (N4). */
  readonly buckets?: number;
  /** Rows per index document (N3). */
  readonly bucketRows?: number;
}

const TRIES = 20;
/** How long this process knows by itself that a row is gone. Must be over before the same event can be added anew. */
const GONE_MS = 60_000;
/** How long it is remembered here that an event is dead; its sender looks within minutes. */
const DEAD_TTL_SECONDS = 7 * 24 * 3_600;

type Stored = Awaited<ReturnType<KeyValue["bulkGet"]>>;
interface Bucket { readonly number: number; readonly rows: Record<string, number>; readonly etag: string | undefined }

/** An Inbox over a key-value store with fenced transactions. */
export function createInbox(store: KeyValue, options: InboxOptions): Inbox {
  return new BucketInbox(store, options);
}

class BucketInbox implements Inbox {
  readonly #buckets: number;
  readonly #bucketRows: number;
  /** One writer per bucket in this process: between processes the etags decide. */
  readonly #locks: Mutex[];
  /** Rows that were deleted here, and until when that is worth knowing, the oldest first. */
  readonly #gone = new Map<string, number>();

  constructor(private readonly store: KeyValue, private readonly options: InboxOptions) {
    this.#buckets = options.buckets ?? 64;
    this.#bucketRows = options.bucketRows ?? 1_000;
    this.#locks = Array.from({ length: this.#buckets }, () => new Mutex());
  }

  async add(row: InboxRow, identity: { readonly key: string } & Remembered): Promise<AddResult> {
    return this.#locked(row.key, async (home) => {
      let offset = 0;
      let cleaned = false;
      for (let tries = 0; tries < TRIES && offset < this.#buckets; tries += 1) {
        if (tries > 0) await pause(tries);
        const bucketNumber = (home + offset) % this.#buckets;
        const found = await this.store.bulkGet([bucketKeyOf(bucketNumber), identityKeyOf(identity.key), rowKeyOf(row.key)]);
        const remembered = this.#remembered(found, identity.key, row.key);
        if (remembered !== undefined) return { status: "exists", remembered };
        this.#gone.delete(row.key);
        const bucket = bucketIn(found, bucketNumber);
        const rows = this.#withoutGone(bucket?.rows ?? {});
        if (bucket !== undefined && Object.keys(rows).length < this.#bucketRows) {
          if ((await this.store.transact(this.#addition(row, identity, { ...bucket, rows }, found))) === "committed") return { status: "added" };
          continue;
        }
        // Full, or not readable. A full one is cleaned once before the next is tried.
        if (bucket !== undefined && !cleaned) {
          await this.#rowsOf([bucket], Object.keys(bucket.rows));
          cleaned = true;
        } else {
          offset += 1;
          cleaned = false;
        }
        tries = -1;
      }
      if (offset >= this.#buckets) throw new Problem("store_unavailable", `the inbox is full: ${String(this.#buckets * this.#bucketRows)} events wait for a receipt`, { hint: "check that the sessions app runs and takes its events" });
      throw contended("adding an event");
    });
  }

  async holds(key: string): Promise<boolean> {
    return await this.store.get(rowKeyOf(key)) !== undefined;
  }

  async remove(key: string): Promise<void> {
    if (this.#isGone(key)) return;
    await this.store.transact([{ op: "delete", key: rowKeyOf(key) }]);
    this.#noteGone(key);
  }

  async bury(key: string, { code, deadLetterId }: DeadEvent): Promise<void> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      if (tries > 0) await pause(tries);
      const found = await this.store.bulkGet([rowKeyOf(key), deadKeyOf(key)]);
      if (!found.has(rowKeyOf(key))) return;
      const before = found.get(deadKeyOf(key));
      const dead: KeyValueOperation = { op: "put", key: deadKeyOf(key), value: JSON.stringify({ code, deadLetterId }), ttlSeconds: DEAD_TTL_SECONDS, ...(before === undefined ? { createOnly: true } : { etag: before.etag }) };
      if ((await this.store.transact([{ op: "delete", key: rowKeyOf(key) }, dead])) === "committed") return;
    }
    throw contended("burying an event");
  }

  async find(key: string): Promise<"waiting" | DeadEvent | undefined> {
    const found = await this.store.bulkGet([rowKeyOf(key), deadKeyOf(key)]);
    const dead = found.get(deadKeyOf(key));
    if (dead !== undefined) return readDocument(DeadDocument, dead.value);
    return found.has(rowKeyOf(key)) ? "waiting" : undefined;
  }

  async postpone(row: InboxRow, next: { readonly publishedAtMs: number; readonly dueAtMs: number }): Promise<boolean> {
    return this.#change(row.key, "postponing an event", (current, bucket) => {
      if (current.document.attempts !== row.attempts) return undefined;
      const document: RowDocument = { ...current.document, attempts: row.attempts + 1, publishedAtMs: next.publishedAtMs };
      return [{ op: "put", key: rowKeyOf(row.key), value: JSON.stringify(document), etag: current.etag }, putBucket(bucket, { ...bucket.rows, [row.key]: next.dueAtMs })];
    });
  }

  async due(nowMs: number, limit: number): Promise<InboxRow[]> {
    const numbers = Array.from({ length: this.#buckets }, (_, number) => number);
    const found = await this.store.bulkGet(numbers.map(bucketKeyOf));
    const buckets = numbers.flatMap((number) => bucketIn(found, number) ?? []);
    const wanted = buckets.flatMap(({ rows }) => Object.entries(rows)).filter(([, dueAtMs]) => dueAtMs <= nowMs).sort((a, b) => a[1] - b[1]).map(([key]) => key);
    const rows: InboxRow[] = [];
    for (let from = 0; from < wanted.length && rows.length < limit; from += limit) {
      rows.push(...await this.#rowsOf(buckets, wanted.slice(from, from + limit)));
    }
    return rows.slice(0, limit);
  }

  /**
   * The rows of entries, in their order. Entries that lead nowhere are taken out of their buckets: those were read before the
   * rows, so that a row which was added since has changed its bucket's etag.
   */
  async #rowsOf(buckets: readonly Bucket[], keys: readonly string[]): Promise<InboxRow[]> {
    const found = await this.store.bulkGet(keys.map(rowKeyOf));
    const gone = new Set(keys.filter((key) => !found.has(rowKeyOf(key))));
    for (const bucket of buckets) {
      const rest = Object.entries(bucket.rows).filter(([key]) => !gone.has(key));
      if (rest.length < Object.keys(bucket.rows).length) await this.store.transact([putBucket(bucket, Object.fromEntries(rest))]);
    }
    return keys.flatMap((key) => {
      const stored = found.get(rowKeyOf(key));
      const document = stored === undefined ? undefined : readDocument(RowDocument, stored.value);
      return document === undefined ? [] : [rowOf(document)];
    });
  }

  /** Changes a row with its bucket; `operations` gives undefined where nothing is to be done. False where there was nothing to change. */
  #change(key: string, what: string, operations: (row: { document: RowDocument; etag: string }, bucket: Bucket) => KeyValueOperation[] | undefined): Promise<boolean> {
    return this.#locked(key, async (home) => {
      for (let tries = 0; tries < TRIES; tries += 1) {
        if (tries > 0) await pause(tries);
        let found = await this.store.bulkGet([rowKeyOf(key), bucketKeyOf(home)]);
        const stored = found.get(rowKeyOf(key));
        if (stored === undefined) return false;
        const document = readDocument(RowDocument, stored.value);
        if (document === undefined) throw new Problem("store_unavailable", `${what}: the inbox row ${key} is not readable`);
        if (document.bucket !== home) found = await this.store.bulkGet([bucketKeyOf(document.bucket)]);
        const bucket = bucketIn(found, document.bucket);
        if (bucket === undefined) throw new Problem("store_unavailable", `${what}: the inbox index ${String(document.bucket)} is not readable`);
        const wanted = operations({ document, etag: stored.etag }, bucket);
        if (wanted === undefined) return false;
        if ((await this.store.transact(wanted)) === "committed") return true;
      }
      throw contended(what);
    });
  }

  #addition(row: InboxRow, identity: { readonly key: string } & Remembered, bucket: Bucket, found: Stored): KeyValueOperation[] {
    const { digest, answer } = identity;
    const document: RowDocument = { ...row, bucket: bucket.number, digest, answer };
    const identityValue = JSON.stringify({ digest, answer, expiresAtMs: row.acceptedAtMs + this.options.idempotencyMs });
    const expired = found.get(identityKeyOf(identity.key));
    return [
      { op: "put", key: rowKeyOf(row.key), value: JSON.stringify(document), createOnly: true },
      putBucket(bucket, { ...bucket.rows, [row.key]: row.acceptedAtMs + this.options.receiptWaitMs }),
      { op: "put", key: identityKeyOf(identity.key), value: identityValue, ttlSeconds: Math.ceil(this.options.idempotencyMs / 1000), ...(expired === undefined ? { createOnly: true } : { etag: expired.etag }) },
    ];
  }

  #withoutGone(rows: Bucket["rows"]): Bucket["rows"] {
    return Object.fromEntries(Object.entries(rows).filter(([key]) => !this.#isGone(key)));
  }

  #isGone(key: string): boolean { return (this.#gone.get(key) ?? 0) > this.options.clock.nowMs(); }

  #noteGone(key: string): void {
    const nowMs = this.options.clock.nowMs();
    for (const [oldest, untilMs] of this.#gone) {
      if (untilMs > nowMs) break;
      this.#gone.delete(oldest);
    }
    this.#gone.set(key, nowMs + Math.min(GONE_MS, this.options.idempotencyMs / 2));
  }

  #remembered(found: Stored, identityKey: string, rowKey: string): Remembered | undefined {
    const identity = found.get(identityKeyOf(identityKey));
    const known = identity === undefined ? undefined : readDocument(IdentityDocument, identity.value);
    if (known !== undefined && known.expiresAtMs > this.options.clock.nowMs()) return known;
    // The key was forgotten and the event is still without receipt: it is the same event.
    const row = found.get(rowKeyOf(rowKey));
    return row === undefined ? undefined : readDocument(RowDocument, row.value);
  }

  #locked<T>(key: string, work: (home: number) => Promise<T>): Promise<T> {
    const home = homeBucketOf(key, this.#buckets);
    const lock = this.#locks[home];
    return lock === undefined ? work(home) : lock.runExclusive(() => work(home));
  }
}

/** The bucket as stored; empty where it was never written, undefined where it is not readable (then it counts as full). */
function bucketIn(found: Stored, number: number): Bucket | undefined {
  const stored = found.get(bucketKeyOf(number));
  if (stored === undefined) return { number, rows: {}, etag: undefined };
  const document = readDocument(BucketDocument, stored.value);
  return document === undefined ? undefined : { number, rows: document.rows, etag: stored.etag };
}

function putBucket(bucket: Bucket, rows: Record<string, number>): KeyValueOperation {
  const value = JSON.stringify({ rows } satisfies BucketDocument);
  return { op: "put", key: bucketKeyOf(bucket.number), value, ...(bucket.etag === undefined ? { createOnly: true } : { etag: bucket.etag }) };
}

function rowOf(document: RowDocument): InboxRow {
  const { key, envelopeText, acceptedAtMs, publishedAtMs, attempts } = document;
  return { key, envelopeText, acceptedAtMs, publishedAtMs, attempts };
}

/** Grows with the tries and is random, so that replicas at one bucket part. */
async function pause(tries: number): Promise<void> {
  await sleep(Math.random() * Math.min(10 * (tries + 1), 100));
}

function contended(what: string): Problem {
  return new Problem("store_unavailable", `${what} met another writer ${String(TRIES)} times`, { hint: "try again" });
}
