/** Owns: what the journal says about an approval, as the line of its history that people read. */
import type { ApprovalEvent } from "../../contracts/api.js";
import type { JournalEntry, SessionEvent } from "../../contracts/journal.js";

/** The approval and its line; undefined for events that are not about one. */
export function approvalEventOf(entry: JournalEntry, event: SessionEvent): { readonly approvalId: string; readonly line: ApprovalEvent } | undefined {
  const { atMs } = entry;
  const by = "principal" in event && event.principal !== undefined ? { by: event.principal.id } : {};
  if (event.type === "ApprovalOpened" || event.type === "Escalated") return { approvalId: event.record.approvalId, line: { atMs, what: "opened", detail: event.record.rule } };
  if (event.type === "ApprovalAskedAgain") return { approvalId: event.approvalId, line: { atMs, what: "asked_again", detail: "the tool has changed" } };
  if (event.type === "ApprovalReminded") return { approvalId: event.approvalId, line: { atMs, what: "reminded", ...(event.to === undefined ? {} : { detail: `also ${[...event.to.roles, ...event.to.groups].join(", ")}`, to: [...event.to.roles, ...event.to.groups] }) } };
  if (event.type === "ApprovalAssigned") return { approvalId: event.approvalId, line: { atMs, what: "assigned", ...by, detail: event.to ?? "nobody" } };
  if (event.type === "ApprovalSnoozed") return { approvalId: event.approvalId, line: { atMs, what: "snoozed", ...by, ...(event.untilMs === undefined ? {} : { untilMs: event.untilMs }) } };
  if (event.type === "DecisionRecorded") return { approvalId: event.approvalId, line: { atMs, what: event.final ? "decided" : "signed", ...by, via: event.via, decisionId: event.decisionId, detail: event.kind, ...(event.text === undefined ? {} : { text: event.text }), ...(event.args === undefined ? {} : { args: event.args }), ...(!event.final && (event.kind === "modify" || event.policyVersion !== undefined) ? { alone: true } : {}) } };
  if (event.type === "DecisionRefused") return { approvalId: event.approvalId, line: { atMs, what: "refused", ...by, via: event.via, decisionId: event.decisionId, detail: event.code, ...(event.message === undefined ? {} : { text: event.message }) } };
  if (event.type === "ApprovalExpired") return { approvalId: event.approvalId, line: { atMs, what: "expired", detail: event.action } };
  if (event.type === "ApprovalWithdrawn") return { approvalId: event.approvalId, line: { atMs, what: "withdrawn", detail: event.reason } };
  return undefined;
}
