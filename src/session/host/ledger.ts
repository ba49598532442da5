/**
 * Owns: which ledger rows a commit writes (create-only, I2): one per accepted event and one per decision that was
 * judged, whatever the verdict, so that a repetition finds the first answer.
 */
import { eventKeyOf } from "../../contracts/ids.js";
import type { JournalEntry } from "../../contracts/journal.js";
import type { DecisionKind } from "../../contracts/tools.js";
import type { LedgerRow } from "./ports.js";

/** Ledger key of a decision. Its own space: a decision id can never hide an event. */
export function decisionKeyOf(decisionId: string): string {
  return eventKeyOf("docket:decision", decisionId);
}

/** What a recorded decision is called to the person who made it; `signed` where others have to agree. */
const VERDICTS: Readonly<Record<DecisionKind, string>> = {
  approve: "approved", modify: "modified", reject: "rejected", respond: "responded", raise: "raised", retry: "retried", give_up: "given_up",
};

export function ledgerRowsOf(entry: JournalEntry): { key: string; row: LedgerRow }[] {
  const rows: { key: string; row: LedgerRow }[] = [];
  for (const event of entry.events) {
    if (event.type === "EventReceived") rows.push({ key: event.key, row: { rev: entry.rev, runId: event.runId } });
    if (event.type === "DecisionRecorded") rows.push({ key: decisionKeyOf(event.decisionId), row: { rev: entry.rev, verdict: event.final ? VERDICTS[event.kind] : "signed" } });
    if (event.type === "DecisionRefused") rows.push({ key: decisionKeyOf(event.decisionId), row: { rev: entry.rev, verdict: event.code } });
  }
  return rows;
}
