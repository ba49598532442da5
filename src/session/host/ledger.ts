/**
 * Owns: which ledger rows a commit writes (create-only, I2): one per accepted event, one per command that changed something, and
 * one per decision that was judged, whatever the verdict, so that a repetition finds the first answer however late it comes.
 */
import { eventKeyOf } from "../../contracts/ids.js";
import type { JournalEntry, SessionEvent } from "../../contracts/journal.js";
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
  const commands = new Set(entry.events.flatMap((event) => commandKeyOf(event) ?? []));
  const rows: { key: string; row: LedgerRow }[] = [...commands].map((key) => ({ key, row: { rev: entry.rev, verdict: "accepted" } }));
  for (const event of entry.events) {
    if (event.type === "EventReceived") rows.push({ key: event.key, row: { rev: entry.rev, runId: event.runId } });
    if (event.type === "DecisionRecorded") rows.push({ key: decisionKeyOf(event.decisionId), row: { rev: entry.rev, verdict: event.final ? VERDICTS[event.kind] : "signed" } });
    if (event.type === "DecisionRefused") rows.push({ key: decisionKeyOf(event.decisionId), row: { rev: entry.rev, verdict: event.code, ...(event.message === undefined ? {} : { message: event.message }) } });
  }
  return rows;
}

/** Key of the command that this event is the answer to. */
function commandKeyOf(event: SessionEvent): string | undefined {
  const answers = event.type === "CancelRequested" || event.type === "ApprovalAssigned" || event.type === "ApprovalSnoozed" || event.type === "AllowanceEnded" || event.type === "SessionReleased";
  return answers ? event.key : undefined;
}
