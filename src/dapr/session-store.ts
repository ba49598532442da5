/**
 * Owns: the session's keys in the state store (DESIGN 3): `session:<id>`, `journal:<id>:<rev 12 digits>`,
 * `seen:<id>:<key>`, `blob:…`, `checkpoint:<id>` (where a shortened journal begins). One transaction per turn. Structural adapter of the session host's `SessionStore`.
 *
 * The document is upserted, the journal key of its revision create-only: two writers can never both commit it.
 */
import { z } from "zod";
import { blobKeysOf, readEntry, type JournalEntry } from "../contracts/journal.js";
import { Problem } from "../contracts/problems.js";
import { faultPoint } from "../platform/faults.js";
import type { DaprState, StateOperation } from "./state.js";

/** Ledger rows outlive every redelivery: the horizon of the router plus a week. */
const LEDGER_TTL_SECONDS = 37 * 24 * 3600;

const ERASE_PAGE = 100;
export const MAX_DOCUMENT_BYTES = 64 * 1024;

const Refusal = z.object({ code: z.string(), message: z.string(), deadLetterId: z.string(), tries: z.number().int() });
const StoredCheckpoint = z.object({ rev: z.number().int() });
const StoredLedgerRow = z.object({ rev: z.number().int(), runId: z.string().optional(), verdict: z.string().optional(), message: z.string().optional(), refusal: Refusal.optional() });
interface LedgerRow { readonly rev: number; readonly runId?: string; readonly verdict?: string; readonly message?: string; readonly refusal?: z.infer<typeof Refusal> }

export interface StoredTurn<State> {
  readonly actorId: string;
  readonly state: State;
  readonly documentEtag?: string;
  readonly entry: JournalEntry;
  readonly ledger: readonly { readonly key: string; readonly row: LedgerRow }[];
  readonly blobs: readonly { readonly key: string; readonly text: string }[];
  readonly checkpoint?: true;
}

export class DaprSessionStore<State> {
  constructor(private readonly state: DaprState, private readonly parse: (document: unknown) => State) {}

  async load(actorId: string): Promise<{ state: State; etag: string } | undefined> {
    const item = await this.state.get(`session:${actorId}`);
    return item === undefined ? undefined : { state: this.parse(JSON.parse(item.value)), etag: item.etag };
  }

  async readEntries(actorId: string, fromRev: number, toRev: number): Promise<JournalEntry[]> {
    const keys: string[] = [];
    for (let rev = fromRev; rev <= toRev; rev += 1) keys.push(journalKey(actorId, rev));
    const found = await this.state.bulkGet(keys);
    return keys.flatMap((key) => {
      const item = found.get(key);
      return item === undefined ? [] : [readEntry(item.value)];
    });
  }

  async readCheckpoint(actorId: string): Promise<number | undefined> {
    const item = await this.state.get(checkpointKey(actorId));
    return item === undefined ? undefined : StoredCheckpoint.parse(JSON.parse(item.value)).rev;
  }

  async readLedger(actorId: string, key: string): Promise<LedgerRow | undefined> {
    const item = await this.state.get(ledgerKey(actorId, key));
    if (item === undefined) return undefined;
    const { rev, runId, verdict, message, refusal } = StoredLedgerRow.parse(JSON.parse(item.value));
    return { rev, ...(runId === undefined ? {} : { runId }), ...(verdict === undefined ? {} : { verdict }), ...(message === undefined ? {} : { message }), ...(refusal === undefined ? {} : { refusal }) };
  }

  async readBlob(key: string): Promise<string | undefined> {
    const item = await this.state.get(key);
    return item === undefined ? undefined : z.string().parse(JSON.parse(item.value));
  }

  async commit(turn: StoredTurn<State>): Promise<"committed" | "conflict"> {
    const document = JSON.stringify(turn.state);
    if (Buffer.byteLength(document) > MAX_DOCUMENT_BYTES) {
      throw new Problem("session_too_large", `the document of session ${turn.actorId} has ${String(Buffer.byteLength(document))} bytes; the limit is ${String(MAX_DOCUMENT_BYTES)}`, { hint: "a list in the session's state has lost its bound (I9): please report it" });
    }
    const operations: StateOperation[] = [
      { op: "put", key: journalKey(turn.actorId, turn.entry.rev), value: JSON.stringify(turn.entry), createOnly: true },
      { op: "put", key: `session:${turn.actorId}`, value: document, ...(turn.documentEtag === undefined ? {} : { etag: turn.documentEtag }) },
      ...turn.ledger.map(({ key, row }) => ledgerPut(turn.actorId, key, row)),
      ...turn.blobs.map(({ key, text }): StateOperation => ({ op: "put", key, value: JSON.stringify(text) })),
      ...(turn.checkpoint === undefined ? [] : [{ op: "put" as const, key: checkpointKey(turn.actorId), value: JSON.stringify({ rev: turn.entry.rev }) }]),
    ];
    faultPoint("before-commit");
    const outcome = await this.state.transact(operations);
    faultPoint("after-commit");
    return outcome;
  }

  async refuse(actorId: string, key: string, row: LedgerRow): Promise<"committed" | "conflict"> {
    return await this.state.transact([ledgerPut(actorId, key, row)]);
  }

  async erase(actorId: string, fromRev: number, toRev: number): Promise<void> {
    for (let rev = fromRev; rev <= toRev; rev += ERASE_PAGE) {
      const entries = await this.readEntries(actorId, rev, Math.min(toRev, rev + ERASE_PAGE - 1));
      const keys = entries.flatMap((entry) => [journalKey(actorId, entry.rev), ...blobKeysOf(entry)]);
      if (keys.length > 0) await this.state.transact(keys.map((key) => ({ op: "delete", key })));
    }
  }
}

function ledgerPut(actorId: string, key: string, row: LedgerRow): StateOperation {
  return { op: "put", key: ledgerKey(actorId, key), value: JSON.stringify(row), createOnly: true, ttlSeconds: LEDGER_TTL_SECONDS };
}

function checkpointKey(actorId: string): string { return `checkpoint:${actorId}`; }

function ledgerKey(actorId: string, key: string): string { return `seen:${actorId}:${key}`; }

function journalKey(actorId: string, rev: number): string { return `journal:${actorId}:${String(rev).padStart(12, "0")}`; }
