/**
 * Owns: what every SessionStore must do, whatever it is made of (DESIGN 3): one transaction per turn, the revision and the
 * ledger rows create-only, the document fenced by its etag where one is given, nothing half-written.
 */
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { JournalEntry, SessionEvent } from "../../src/contracts/journal.js";
import { entryDigest } from "../../src/session/core/digest.js";
import { evolveAll } from "../../src/session/core/evolve.js";
import { NEW_SESSION, type SessionState } from "../../src/session/core/state.js";
import type { LedgerRow, SessionStore, TurnWrite } from "../../src/session/host/ports.js";

/** Two connections to one store; they may be the same object where the store is in memory. */
export interface OpenStores { readonly first: SessionStore; readonly second: SessionStore; readonly close?: () => Promise<void> }

const ODD_TEXT = "Zoë \u{1F600} \"quoted\" \\ \n\t \u2028 9007199254740993 {\"nested\":\"json\"} '; drop table state; --";

/** A session whose turns are made by hand. */
class Session {
  state: SessionState = NEW_SESSION;
  constructor(readonly actorId = `contract-${randomUUID()}`) {}

  /** The next turn after `state`; `mark` tells two turns of one revision apart. */
  turn(options: { mark?: string; ledger?: readonly { key: string; row: LedgerRow }[]; blobs?: TurnWrite["blobs"]; etag?: string } = {}): TurnWrite {
    const rev = this.state.rev + 1;
    const mark = options.mark ?? "plain";
    const events: SessionEvent[] = rev === 1
      ? [{ type: "SessionOpened", tenant: "default", sessionId: ODD_TEXT, actorId: this.actorId, agent: mark, agentVersion: "1" }]
      : [{ type: "CancelRequested", key: `cancel-${String(rev)}`, runId: "run_1", reason: mark }];
    const digest = entryDigest(this.state.status === "NEW" ? "" : this.state.journalDigest, events);
    const entry: JournalEntry = { v: 1, actorId: this.actorId, rev, commitId: randomUUID(), atMs: 1_700_000_000_000 + rev, command: mark, host: "host-1", digest, events };
    return {
      actorId: this.actorId, state: evolveAll(this.state, events, entry), entry, ledger: options.ledger ?? [], blobs: options.blobs ?? [],
      ...(options.etag === undefined ? {} : { documentEtag: options.etag }),
    };
  }

  /** Commits turns one after the other. */
  async grow(store: SessionStore, turns: number): Promise<TurnWrite[]> {
    const written: TurnWrite[] = [];
    for (let n = 0; n < turns; n += 1) {
      const turn = this.turn();
      expect(await store.commit(turn)).toBe("committed");
      this.state = turn.state;
      written.push(turn);
    }
    return written;
  }
}

export function describeSessionStoreContract(name: string, open: () => Promise<OpenStores>): void {
  describe(`SessionStore contract: ${name}`, () => {
    const withStores = (test: (first: SessionStore, second: SessionStore) => Promise<void>) => async (): Promise<void> => {
      const { first, second, close } = await open();
      try { await test(first, second); } finally { await close?.(); }
    };

    it("knows nothing of what was never written", withStores(async (first) => {
      const { actorId } = new Session();
      expect(await first.load(actorId)).toBeUndefined();
      expect(await first.readEntries(actorId, 1, 5)).toEqual([]);
      expect(await first.readLedger(actorId, "key")).toBeUndefined();
      expect(await first.readBlob(`blob:${actorId}:1-x`)).toBeUndefined();
    }));

    it("gives back a turn's document, entry, ledger row and blob exactly, also to another connection", withStores(async (first, second) => {
      const session = new Session();
      const blob = { key: `blob:${session.actorId}:1-abc`, text: `${ODD_TEXT}${"ä".repeat(200_000)}` };
      const turn = session.turn({ mark: ODD_TEXT, ledger: [{ key: "e1", row: { rev: 1, runId: "run_1" } }, { key: "d1", row: { rev: 1, verdict: "approved" } }], blobs: [blob] });
      expect(await first.commit(turn)).toBe("committed");
      expect((await second.load(session.actorId))?.state).toEqual(turn.state);
      expect(await second.readEntries(session.actorId, 1, 1)).toEqual([turn.entry]);
      expect(await second.readLedger(session.actorId, "e1")).toEqual({ rev: 1, runId: "run_1" });
      expect(await second.readLedger(session.actorId, "d1")).toEqual({ rev: 1, verdict: "approved" });
      expect(await second.readBlob(blob.key)).toBe(blob.text);
    }));

    it("lets nobody commit a revision again, and writes nothing of the loser", withStores(async (first, second) => {
      const session = new Session();
      const winner = session.turn({ mark: "winner", ledger: [{ key: "winner", row: { rev: 1 } }] });
      const loser = session.turn({ mark: "loser", ledger: [{ key: "loser", row: { rev: 1 } }], blobs: [{ key: `blob:${session.actorId}:loser`, text: "x" }] });
      expect(await first.commit(winner)).toBe("committed");
      expect(await second.commit(loser)).toBe("conflict");
      expect((await second.load(session.actorId))?.state).toEqual(winner.state);
      expect(await first.readEntries(session.actorId, 1, 2)).toEqual([winner.entry]);
      expect(await first.readLedger(session.actorId, "loser")).toBeUndefined();
      expect(await first.readBlob(`blob:${session.actorId}:loser`)).toBeUndefined();
    }));

    it("is not moved by the winner itself coming again (a lost reply)", withStores(async (first, second) => {
      const session = new Session();
      const turn = session.turn();
      expect(await first.commit(turn)).toBe("committed");
      expect(await second.commit(turn)).toBe("conflict");
      expect((await second.readEntries(session.actorId, 1, 1))[0]?.commitId).toBe(turn.entry.commitId);
    }));

    it.each(["first", "later"])("lets one of thirty concurrent writers of a revision win (%s revision)", async (which) => {
      const { first, second, close } = await open();
      const session = new Session();
      if (which === "later") await session.grow(first, 3);
      const turns = Array.from({ length: 30 }, (_, n) => session.turn({ mark: `writer-${String(n)}`, ledger: [{ key: `writer-${String(n)}`, row: { rev: n } }] }));
      const verdicts = await Promise.all(turns.map((turn, n) => (n % 2 === 0 ? first : second).commit(turn)));
      expect(verdicts.filter((verdict) => verdict === "committed")).toHaveLength(1);
      const winner = turns[verdicts.indexOf("committed")]!;
      expect((await first.load(session.actorId))?.state).toEqual(winner.state);
      expect(await second.readEntries(session.actorId, session.state.rev + 1, session.state.rev + 2)).toEqual([winner.entry]);
      const rows = await Promise.all(turns.map((_, n) => second.readLedger(session.actorId, `writer-${String(n)}`)));
      expect(rows.filter((row) => row !== undefined)).toHaveLength(1);
      await close?.();
    });

    it("lets a row that was written alone stand against every later turn, and a turn's row against it", withStores(async (first, second) => {
      const session = new Session();
      await session.grow(first, 1);
      const row: LedgerRow = { rev: 0, verdict: "mailbox_full", refusal: { code: "mailbox_full", message: ODD_TEXT, deadLetterId: "dl_1", tries: 1 } };
      expect((await Promise.all([first.refuse(session.actorId, "e1", row), second.refuse(session.actorId, "e1", row)])).sort()).toEqual(["committed", "conflict"]);
      expect(await second.readLedger(session.actorId, "e1")).toEqual(row);
      expect(await second.commit(session.turn({ ledger: [{ key: "e1", row: { rev: 2, runId: "run_1" } }] }))).toBe("conflict");
      expect(await first.commit(session.turn({ ledger: [{ key: "e2", row: { rev: 2, runId: "run_2" } }] }))).toBe("committed");
      expect(await second.refuse(session.actorId, "e2", row)).toBe("conflict");
      expect(await first.readLedger(session.actorId, "e2")).toEqual({ rev: 2, runId: "run_2" });
    }));

    it("takes no event twice: a ledger row that exists refuses the whole turn, wherever it stands in it", withStores(async (first, second) => {
      const session = new Session();
      const seen = session.turn({ ledger: [{ key: "seen", row: { rev: 1, runId: "run_1" } }] });
      expect(await first.commit(seen)).toBe("committed");
      session.state = seen.state;
      for (const ledger of [["seen", "new"], ["new", "seen"]]) {
        const again = session.turn({ ledger: ledger.map((key) => ({ key, row: { rev: 2 } })), blobs: [{ key: `blob:${session.actorId}:2`, text: "x" }] });
        expect(await second.commit(again)).toBe("conflict");
        expect(await first.readLedger(session.actorId, "seen")).toEqual({ rev: 1, runId: "run_1" });
        expect(await first.readLedger(session.actorId, "new")).toBeUndefined();
        expect(await first.readEntries(session.actorId, 2, 2)).toEqual([]);
        expect(await first.readBlob(`blob:${session.actorId}:2`)).toBeUndefined();
        expect((await first.load(session.actorId))?.state.rev).toBe(1);
      }
    }));

    it("commits over the document that was loaded, and gives it another etag each time", withStores(async (first, second) => {
      const session = new Session();
      await session.grow(first, 1);
      const loaded = await second.load(session.actorId);
      const turn = session.turn({ etag: loaded!.etag });
      expect(await second.commit(turn)).toBe("committed");
      const after = await first.load(session.actorId);
      expect(after?.state).toEqual(turn.state);
      expect(after?.etag).not.toBe(loaded?.etag);
    }));

    it("refuses a turn on an older document, and writes nothing of it", withStores(async (first, second) => {
      const session = new Session();
      await session.grow(first, 1);
      const old = await second.load(session.actorId);
      await session.grow(first, 1);
      const turn = session.turn({ etag: old!.etag, ledger: [{ key: "stale", row: { rev: 3 } }] });
      expect(await second.commit(turn)).toBe("conflict");
      expect(await first.readEntries(session.actorId, 1, 9)).toHaveLength(2);
      expect(await first.readLedger(session.actorId, "stale")).toBeUndefined();
      expect((await first.load(session.actorId))?.state).toEqual(session.state);
    }));

    it("refuses a turn on a document that is not there", withStores(async (first) => {
      const session = new Session();
      expect(await first.commit(session.turn({ etag: "1" }))).toBe("conflict");
      expect(await first.load(session.actorId)).toBeUndefined();
      expect(await first.readEntries(session.actorId, 1, 1)).toEqual([]);
    }));

    it("reads any stretch of the journal in order and leaves out what is not there", withStores(async (first, second) => {
      const session = new Session();
      const written = (await session.grow(first, 12)).map((turn) => turn.entry);
      expect(await second.readEntries(session.actorId, 1, 12)).toEqual(written);
      expect(await second.readEntries(session.actorId, 9, 40)).toEqual(written.slice(8));
      expect(await second.readEntries(session.actorId, 5, 4)).toEqual([]);
    }));

    it("knows the newest checkpoint of a journal, with the entry or not at all, whatever is erased before it", withStores(async (first, second) => {
      const session = new Session();
      await session.grow(first, 3);
      expect(await second.readCheckpoint(session.actorId)).toBeUndefined();
      for (const rev of [4, 5]) {
        const turn = { ...session.turn({ blobs: [{ key: `blob:${session.actorId}:${String(rev)}`, text: "b" }] }), checkpoint: true as const };
        const loser = { ...session.turn({ mark: "loser" }), checkpoint: true as const };
        expect(await first.commit(turn)).toBe("committed");
        expect(await second.commit(loser)).toBe("conflict");
        session.state = turn.state;
        expect(await second.readCheckpoint(session.actorId)).toBe(rev);
      }
      await first.erase(session.actorId, 2, 4);
      await session.grow(first, 2);
      expect(await second.readCheckpoint(session.actorId)).toBe(5);
      expect((await second.readEntries(session.actorId, 1, 9)).map(({ rev }) => rev)).toEqual([1, 5, 6, 7]);
      expect(await second.commit({ ...session.turn(), entry: { ...session.turn().entry, rev: 1 } })).toBe("conflict");
      expect(await first.readCheckpoint(new Session().actorId)).toBeUndefined();
    }));

    it("erases a stretch of the journal with its blobs, however often, and leaves everything else", withStores(async (first, second) => {
      const session = new Session();
      const written = await session.grow(first, 3);
      const blob = { key: `blob:${session.actorId}:4-abc`, text: "long" };
      const plain = session.turn({ ledger: [{ key: "e4", row: { rev: 4 } }], blobs: [blob] });
      const result = { type: "ToolResultRecorded", callId: "c", providerCallId: "p", tool: "t", status: "succeeded", content: { text: "l", truncated: true, blob: { key: blob.key, bytes: 4, digest: "d" } } } as const;
      const turn = { ...plain, entry: { ...plain.entry, events: [result] } };
      expect(await first.commit(turn)).toBe("committed");
      const kept = written[2]!.entry;
      await second.erase(session.actorId, 1, 2);
      await second.erase(session.actorId, 1, 2);
      expect(await first.readEntries(session.actorId, 1, 3)).toEqual([kept]);
      expect(await first.readBlob(blob.key)).toBe("long");
      await second.erase(session.actorId, 1, 250);
      expect(await first.readEntries(session.actorId, 1, 9)).toEqual([]);
      expect(await first.readBlob(blob.key)).toBeUndefined();
      expect((await first.load(session.actorId))?.state).toEqual(turn.state);
      expect(await first.readLedger(session.actorId, "e4")).toEqual({ rev: 4 });
    }));

    it("keeps sessions apart", withStores(async (first) => {
      const [one, other] = [new Session(), new Session()];
      const row = { key: "same", row: { rev: 1 } };
      expect(await first.commit(one.turn({ ledger: [row] }))).toBe("committed");
      expect(await first.load(other.actorId)).toBeUndefined();
      expect(await first.readLedger(other.actorId, "same")).toBeUndefined();
      expect(await first.commit(other.turn({ ledger: [row] }))).toBe("committed");
    }));

    it("refuses a document that has lost its bound (I9), and writes nothing", withStores(async (first) => {
      const session = new Session();
      await session.grow(first, 1);
      const turn = session.turn();
      const huge = { ...turn, state: { ...turn.state, agentVersion: "x".repeat(70_000) } as SessionState };
      await expect(first.commit(huge)).rejects.toMatchObject({ code: "session_too_large", retryable: false });
      expect(await first.readEntries(session.actorId, 2, 2)).toEqual([]);
      expect(await first.commit(turn)).toBe("committed");
    }));
  });
}
