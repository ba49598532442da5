/**
 * Owns: which ledger rows a commit writes (create-only, I2): one per accepted event and one per decision that was
 * judged, whatever the verdict, so that a repetition finds the first answer.
 */
import { eventKeyOf } from "../../contracts/ids.js";
import type { JournalEntry } from "../../contracts/journal.js";
import type { LedgerRow } from "./ports.js";

/** Ledger key of a decision. Its own space: a decision id can never hide an event. */
export function decisionKeyOf(decisionId: string): string {
  return eventKeyOf("docket:decision", decisionId);
}

export function ledgerRowsOf(entry: JournalEntry): { key: string; row: LedgerRow }[] {
  const rows: { key: string; row: LedgerRow }[] = [];
  for (const event of entry.events) {
    if (event.type === "EventReceived") rows.push({ key: event.key, row: { rev: entry.rev, runId: event.runId } });
    if (event.type === "DecisionRecorded") rows.push({ key: decisionKeyOf(event.decisionId), row: { rev: entry.rev, verdict: "recorded" } });
    if (event.type === "DecisionRefused") rows.push({ key: decisionKeyOf(event.decisionId), row: { rev: entry.rev, verdict: event.code } });
  }
  return rows;
}
