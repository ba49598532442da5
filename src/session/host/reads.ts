/**
 * Owns: what readers may ask of a session. Reads take no lock and change nothing; the document is read anew each
 * time, so that a reader on a host that lost the session does not see an old one.
 */
import type { DecisionOutcome, EventOutcome, JournalPage, SessionView } from "../../contracts/api.js";
import { readableFromRev, summaryOf } from "../core/summary.js";
import { decisionKeyOf } from "./ledger.js";
import type { LedgerRow, SessionStore } from "./ports.js";
import type { OpenSession } from "../core/state.js";
import type { Turns } from "./turn.js";

const MAX_PAGE = 200;
/** How far past its acceptance the end of an old run is looked for. */
const OUTCOME_SCAN = 400;

export class Reads {
  constructor(private readonly turns: Turns, private readonly store: SessionStore) {}

  async session(actorId: string): Promise<SessionView | undefined> {
    const state = await this.turns.read(actorId);
    if (state.status === "NEW") return undefined;
    return {
      summary: summaryOf(state), approvals: [...state.approvals],
      recentRuns: state.recentRuns.map((run) => ({ ...run })), unknownCalls: state.unknownCalls.map((call) => ({ ...call })), allowances: [...(state.allowances ?? [])],
    };
  }

  /** Entries after a revision, at most 200. */
  async journal(actorId: string, afterRev: number, limit: number): Promise<JournalPage | undefined> {
    const state = await this.turns.read(actorId);
    if (state.status === "NEW") return undefined;
    const fromRev = readableFromRev(state);
    const after = Math.max(afterRev, fromRev - 1);
    const to = Math.min(state.rev, after + Math.max(1, Math.min(limit, MAX_PAGE)));
    const entries = after >= state.rev ? [] : await this.turns.readEntries(actorId, after + 1, to);
    return { entries, headRev: state.rev, ...(fromRev > 1 ? { fromRev } : {}) };
  }

  /** How an accepted event ended, or where it is (I1). */
  async outcome(actorId: string, key: string): Promise<EventOutcome> {
    const state = await this.turns.read(actorId);
    if (state.status === "NEW") return refusedOutcome(await this.store.readLedger(actorId, key));
    const ended = state.recentRuns.find((run) => run.key === key);
    if (ended !== undefined) return { state: "ended", runId: ended.runId, outcome: ended.outcome, rev: ended.rev, ...(ended.code === undefined ? {} : { code: ended.code }) };
    if ("run" in state && state.run.key === key) return { state: "running", runId: state.run.runId };
    const waiting = state.mailbox.find((item) => item.key === key);
    if (waiting !== undefined) return { state: "accepted", runId: waiting.runId, rev: waiting.rev };
    if (state.recentCommands.includes(key)) return { state: "ended", outcome: "completed" };
    const row = await this.store.readLedger(actorId, key);
    if (row === undefined || row.refusal !== undefined) return refusedOutcome(row);
    if (row.verdict !== undefined) return { state: "ended", rev: row.rev, ...(row.verdict === "accepted" ? { outcome: "completed" } : { outcome: "rejected", code: row.verdict }) };
    return await this.#olderOutcome(state, key, row);
  }

  /** The verdict on a decision, once it was judged. */
  async decision(actorId: string, decisionId: string): Promise<DecisionOutcome> {
    const row = await this.store.readLedger(actorId, decisionKeyOf(decisionId));
    return row?.verdict === undefined ? { known: false } : { known: true, verdict: row.verdict, rev: row.rev, ...(row.message === undefined ? {} : { message: row.message }) };
  }

  /** From the journal. Of what was compacted it is only known that it has ended: nothing else is. */
  async #olderOutcome(state: OpenSession, key: string, row: LedgerRow): Promise<EventOutcome> {
    const { rev } = row;
    if (rev < readableFromRev(state)) return { state: "ended", rev, code: "journal_compacted", ...(row.runId === undefined ? {} : { runId: row.runId }) };
    const entries = await this.turns.readEntries(state.actorId, rev, Math.min(state.rev, rev + OUTCOME_SCAN));
    for (const entry of entries) {
      for (const event of entry.events) {
        if (event.type === "RunEnded" && event.key === key) return { state: "ended", runId: event.runId, outcome: event.outcome, rev: entry.rev, ...(event.code === undefined ? {} : { code: event.code }) };
        if (event.type === "EventRejected" && event.key === key) return { state: "ended", runId: event.runId, outcome: "rejected", code: event.code, rev: entry.rev };
      }
    }
    return { state: "accepted", rev };
  }
}

function refusedOutcome(row: LedgerRow | undefined): EventOutcome {
  const refusal = row?.refusal;
  return refusal === undefined ? { state: "unknown" } : { state: "ended", outcome: "dead_lettered", code: refusal.code, deadLetterId: refusal.deadLetterId };
}
