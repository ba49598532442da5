/** Owns: a journal as a story: what people care about, in order. The rest is in the journal tab. */
import type { JournalEntry, SessionEvent } from "../../../src/contracts/journal.js";
import { decisionWords, plural } from "./words.js";

export type Tone = "plain" | "person" | "model" | "tool" | "approval" | "good" | "bad";
export interface Line {
  readonly key: string; readonly rev: number; readonly atMs: number; readonly tone: Tone;
  readonly who: string; readonly text: string;
  /** Whole text, or JSON text of arguments and results. */
  readonly detail?: string | undefined;
  readonly approvalId?: string;
}

type Content = Omit<Line, "key" | "rev" | "atMs">;

export function storyOf(entries: readonly JournalEntry[]): Line[] {
  return entries.flatMap((entry) => entry.events.flatMap((event, index) => linesOf(event).map((line, n) => ({ ...line, key: `${String(entry.rev)}.${String(index)}.${String(n)}`, rev: entry.rev, atMs: entry.atMs }))));
}

const say = (tone: Tone, who: string, text: string, more: Pick<Content, "detail" | "approvalId"> = {}): Content[] => [{ tone, who, text, ...more }];

const EXPIRED = { reject: "the call is rejected", stop: "the run stops", escalate: "it is escalated" } as const;

/** An event of a newer server has no line. */
function linesOf(event: SessionEvent): Content[] {
  switch (event.type) {
    case "SessionOpened": return say("plain", "session", `opened for agent ${event.agent} (version ${event.agentVersion})`);
    case "EventRejected": return say("bad", "refused", `${event.message} (${event.code})`);
    case "RunStarted": return say("person", event.requestedBy === "" ? "message" : event.requestedBy, event.input);
    case "MessageSteered": return say("person", "steered", event.text);
    case "ModelAnswered": return [
      ...(event.text === "" ? [] : say("model", "model", event.text)),
      ...event.calls.flatMap((call) => say("tool", "call", call.tool, { detail: call.args })),
    ];
    case "ModelCallFailed": return say("bad", "model failed", `${event.message} (${event.kind})${event.retryAtMs === undefined ? "" : "; it is tried again"}`);
    case "PartialAnswerKept": return say("model", "cut short", event.text);
    case "ToolCallDenied": return say("bad", "denied", `by rule ${event.rule}: ${event.reason}`);
    case "ApprovalOpened": return say("approval", "approval", `needed for ${event.record.tool ?? "this"}: ${event.record.question}`, { approvalId: event.record.approvalId });
    case "Escalated": return say("approval", "escalated", `${event.message} (${event.reason})`, { approvalId: event.record.approvalId });
    case "DecisionRecorded": return say("approval", "decision", `${decisionWords(event.kind)} by ${event.principal.id} (${event.via})${event.final ? "" : "; more are needed"}${event.text === undefined ? "" : `: ${event.text}`}`, { detail: event.args, approvalId: event.approvalId });
    case "DecisionRefused": return say("bad", "decision refused", `${event.principal?.id ?? "somebody"} (${event.via}): ${event.message ?? event.code}`, { approvalId: event.approvalId });
    case "ApprovalExpired": return say("bad", "approval expired", EXPIRED[event.action], { approvalId: event.approvalId });
    case "ApprovalAskedAgain": return say("approval", "approval", "asked again: the tool has changed since", { approvalId: event.approvalId });
    case "ApprovalReminded": return say("approval", "approval", `still open${event.to === undefined ? "" : `; now also for ${[...event.to.roles, ...event.to.groups].join(", ")}`}`, { approvalId: event.approvalId });
    case "ApprovalAssigned": return say("approval", "assigned", `to ${event.to ?? "nobody"} by ${event.principal?.id ?? "Docket"}`, { approvalId: event.approvalId });
    case "ApprovalSnoozed": return say("plain", "snoozed", event.untilMs === undefined ? "no longer" : `until ${new Date(event.untilMs).toISOString()}`, { approvalId: event.approvalId });
    case "AllowanceGranted": return say("approval", "allowed", `${event.allowance.tool} for this session, until ${new Date(event.allowance.expiresAtMs).toISOString()}`);
    case "AllowanceEnded": return say("approval", "allowance ended", `${event.reason.replace("_", " ")}${event.principal === undefined ? "" : ` by ${event.principal.id}`}`);
    case "ApprovalWithdrawn": return say("plain", "approval withdrawn", event.reason, { approvalId: event.approvalId });
    case "ToolCallDispatched": return say("tool", "tool", event.try === 1 ? "sent to the worker" : `sent to the worker, try ${String(event.try)}`);
    case "ToolTryFailed": return say("bad", "tool failed", `try ${String(event.try)}: ${event.message} (${event.kind})${event.retryAtMs === undefined ? "" : "; it is tried again"}`);
    case "ToolOutcomeUnknown": return say("bad", "outcome unknown", event.reason);
    case "ToolResultRecorded": return say(event.status === "succeeded" || event.status === "responded" ? "tool" : "bad", "result", `${event.tool} ${event.status.replace("_", " ")}`, { detail: event.content.text });
    case "LateResultRecorded": return say("tool", "late result", event.outcome, { detail: event.content.text });
    case "LimitsRaised": return say("approval", "limits raised", [...(event.budgetUsd === undefined ? [] : [`budget $${String(event.budgetUsd)}`]), ...(event.maxSteps === undefined ? [] : [plural(event.maxSteps, "step")])].join(", "));
    case "CancelRequested": return say("person", "cancel", `asked for by ${event.principal?.id ?? "Docket"}${event.reason === "" ? "" : `: ${event.reason}`}`);
    case "RunEnding": return say("plain", "ending", `${event.outcome}, once the calls that are out have reported`);
    case "RunEnded": return say(event.outcome === "completed" ? "good" : "bad", event.outcome, event.text === "" ? `the run ended${event.code === undefined ? "" : ` (${event.code})`}` : event.text);
    case "DeadLetterRecorded": return say("bad", "dead letter", `${event.reason}${event.message === undefined ? "" : `: ${event.message}`}, after ${plural(event.tries, "try", "tries")}`);
    case "SessionClosed": return say("plain", "session", `closed: ${event.reason}`);
    case "SessionRepaired": return say("bad", "repaired", event.found.map(({ what, subject }) => `${what.replaceAll("_", " ")} ${subject}`).join(", "));
    case "SessionQuarantined": return say("bad", "quarantined", `${event.message} (${event.reason})`);
    case "SessionReleased": return say("person", "released", `by ${event.principal?.id ?? "Docket"}: ${event.reason}`);
    case "SessionDeleted": return say("plain", "session", `deleted by ${event.principal?.id ?? "Docket"}: ${event.reason}`);
    case "JournalCompacted": return say("plain", "session", `journal shortened: revisions up to ${String(event.toRev)} are no longer kept`);
    case "SessionErased": return say("plain", "session", `what was before revision ${String(event.toRev + 1)} is erased`);
    case "EventReceived": case "ModelCallStarted": case "ModelCostBooked": case "ToolCallAllowed": case "ApprovalReceived": case "ToolCallClaimed": case "PublicationsCleared": case "PublicationRepeated": case "WindowAdvanced": case "GuardArmed": case "GuardReleased":
      return [];
    default: return []; // an event of a newer server
  }
}
