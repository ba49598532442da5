/**
 * Owns: the one card that every channel renders: what is asked, by whom, why, until when, and what has become of it. Pure. Nothing in it is markup;
 * each channel writes it in its own language and escapes it there.
 */
import type { ApprovalListItem } from "../../contracts/api.js";
import type { NoticeEvent } from "../../contracts/notices.js";
import { clip, visible, type Clipped } from "./text.js";

export interface CardLimits { readonly args: number; readonly words: number }
export interface Card {
  readonly event: NoticeEvent;
  readonly open: boolean;
  /** Trusted words, for a title. */
  readonly title: string;
  /** Who decided, or what became of it; empty while it is open. */
  readonly outcome: string;
  readonly facts: readonly (readonly [name: string, value: string])[];
  /** Undefined where the channel shows a summary. */
  readonly args: Clipped | undefined;
  readonly rationale: Clipped | undefined;
  readonly trigger: Clipped | undefined;
  readonly url: string;
}

const FACT_MAX = 300;

export function cardOf(item: ApprovalListItem, event: NoticeEvent, { show, limits, consoleUrl }: { readonly show: "all" | "summary"; readonly limits: CardLimits; readonly consoleUrl: string }): Card {
  const { record, args, rationale, trigger, sessionId, agent } = item.pending;
  const open = item.state === "open";
  const whole = show === "all";
  const what = record.tool ?? `a run (${record.escalation ?? "escalation"})`;
  const facts: [string, string][] = [
    ["risk", record.risk], ["session", sessionId], ["agent", agent], ["requested by", record.requestedBy === "" ? "an outside system" : record.requestedBy],
    ...(whole ? [["why you are asked", record.question] as [string, string]] : []), ["rule", record.rule], ["may decide", approversOf(item)],
    ...(record.assignedTo === undefined ? [] : [["assigned to", record.assignedTo] as [string, string]]),
    ["until", record.expiresAtMs === undefined ? "no deadline" : `${new Date(record.expiresAtMs).toISOString()}, then ${record.onExpiry}`],
    ["approval", `${record.approvalId}, version ${String(record.version)}`], ["digest", record.argsDigest],
  ];
  return {
    event, open, title: `${titleOf(event, item)}: ${what}`, outcome: open ? "" : outcomeOf(item), facts: facts.map(([name, value]) => [name, shortened(value)] as const),
    args: whole && args !== "" ? clip(args, limits.args) : undefined,
    rationale: whole && rationale !== "" ? clip(rationale, limits.words) : undefined, trigger: whole && trigger !== "" ? clip(trigger, limits.words) : undefined,
    url: approvalUrl(consoleUrl, record.approvalId),
  };
}

export function approvalUrl(consoleUrl: string, approvalId: string): string { return new URL(`/approvals/${encodeURIComponent(approvalId)}`, consoleUrl).href; }

/** What became of an approval, in words: `approved by ann`. */
export function outcomeOf({ state, decision, decidedBy }: ApprovalListItem): string {
  const words: Readonly<Record<string, string>> = { approve: "approved", modify: "approved with changes", reject: "rejected", respond: "answered", raise: "raised", retry: "to be tried again", give_up: "given up" };
  switch (state) {
    case "open": return "still open";
    case "decided": return `${words[decision ?? ""] ?? "decided"} by ${visible(decidedBy ?? "somebody")}`;
    case "expired": return `expired: nobody decided in time (${visible(decision ?? "")})`;
    case "withdrawn": return `withdrawn: ${visible(decision ?? "it is no longer asked")}`;
  }
}

function titleOf(event: NoticeEvent, item: ApprovalListItem): string {
  if (item.state !== "open") return "No longer open";
  switch (event) {
    case "opened": case "settled": case "locked": return "Approval needed";
    case "reminded": return "Reminder: approval needed";
    case "escalated": return "Escalated: approval needed";
  }
}

function approversOf({ state, pending: { record: { approvers, chain, chainDone, signatures } } }: ApprovalListItem): string {
  const added = (chain ?? []).slice(0, chainDone ?? 0).flatMap((step) => [...(step.to?.roles ?? []), ...(step.to?.groups ?? [])]);
  const groups = (approvers.groups ?? []).length === 0 ? "" : `, in ${approvers.groups?.join(" or ") ?? ""}`;
  const quorum = approvers.quorum > 1 ? `, ${String(signatures.length)} of ${String(approvers.quorum)} ${state === "open" ? "so far" : "signed"}` : "";
  return `${approvers.roles.join(" or ") || "approver or admin"}${groups}${added.length === 0 ? "" : `; also ${added.join(", ")}`}${approvers.excludeRequester ? ", not the requester" : ""}${quorum}`;
}

function shortened(value: string): string {
  const { shown, more } = clip(value, FACT_MAX);
  return more === 0 ? shown : `${shown}… (${String(more)} more characters)`;
}
