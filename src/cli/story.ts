/** Owns: telling a session's journal as a story: a line or two for each event that people care about. Everything else is in `-o jsonl`. */
import type { JournalEntry, SessionEvent } from "../contracts/journal.js";
import { clip, plain, visible, type Printer } from "./output.js";

/** Entries as the stream sends them: without fields that say how Docket runs inside, hence partial. */
export interface StoryEntry { readonly rev: number; readonly atMs: number; readonly events: readonly unknown[] }

const LONG = 2_000;

export function tell(entry: StoryEntry, colors: Printer["colors"]): string {
  const time = new Date(entry.atMs).toISOString().slice(11, 19);
  return entry.events.map((event) => storyOf(event as SessionEvent, colors)).filter((text) => text !== undefined)
    .map((text) => `${colors.dim(`${time} #${String(entry.rev)}`)}  ${text.replaceAll("\n", "\n    ")}\n`).join("");
}

/** The parts of a story that other things hang on. */
export function landmarks(entry: StoryEntry): { opened: string[]; ended: { runId: string; outcome: string; text: string }[] } {
  const events = entry.events as readonly JournalEntry["events"][number][];
  return {
    opened: events.flatMap((event) => event.type === "ApprovalOpened" || event.type === "Escalated" ? [event.record.approvalId] : []),
    ended: events.flatMap((event) => event.type === "RunEnded" ? [{ runId: event.runId, outcome: event.outcome, text: event.text }]
      : event.type === "EventRejected" ? [{ runId: event.runId, outcome: "rejected", text: event.message }] : []),
  };
}

function storyOf(event: SessionEvent, c: Printer["colors"]): string | undefined {
  switch (event.type) {
    case "SessionOpened": return `session opened for agent ${c.bold(plain(event.agent))}`;
    case "EventReceived": return `${c.cyan("event")} ${plain(event.eventType)} from ${plain(event.source)}${event.mode === "enqueue" ? "" : ` (${event.mode})`}`;
    case "EventRejected": return `${c.red("rejected")} (${event.code}): ${plain(event.message)}`;
    case "RunStarted": return `${c.cyan("run")} ${event.runId}: ${plain(clip(event.input, 300))}`;
    case "ModelAnswered": return [...(event.text === "" ? [] : [`${c.green("model")} ${visible(clip(event.text, LONG))}`]), ...event.calls.map((call) => `${c.yellow("call")}  ${plain(call.tool)} ${plain(clip(call.args, LONG))}`)].join("\n") || undefined;
    case "ModelCallFailed": return `${c.red("model failed")} (${event.kind}): ${plain(event.message)}${event.retryAtMs === undefined ? "" : "; will try again"}`;
    case "PartialAnswerKept": return `${c.dim("cut short")} ${visible(clip(event.text, LONG))}`;
    case "ToolCallDenied": return `${c.red("denied")} by ${event.rule}: ${plain(event.reason)}`;
    case "ApprovalOpened": return `${c.magenta("approval")} ${event.record.approvalId} needed for ${plain(event.record.tool ?? "this")} (risk ${event.record.risk}): ${plain(event.record.question)}\n${c.dim(`docket approval show ${event.record.approvalId}`)}`;
    case "DecisionRecorded": return `${c.magenta("decision")} ${event.kind} by ${plain(event.principal.id)}${event.final ? "" : " (more are needed)"}${event.text === undefined ? "" : `: ${plain(clip(event.text, 300))}`}`;
    case "DecisionRefused": return `${c.red("decision refused")} (${event.code})`;
    case "ApprovalExpired": return `${c.red("approval expired")} ${event.approvalId} -> ${event.action}`;
    case "ApprovalAskedAgain": return `${c.magenta("approval")} ${event.approvalId} asked again: the tool has changed since`;
    case "ApprovalReminded": return `${c.magenta("approval reminder")} ${event.approvalId}${event.to === undefined ? "" : `, now also for ${plain([...event.to.roles, ...event.to.groups].join(", "))}`}`;
    case "ApprovalAssigned": return `${c.magenta("approval assigned")} ${event.approvalId} to ${plain(event.to ?? "nobody")}${event.principal === undefined ? "" : ` by ${plain(event.principal.id)}`}`;
    case "ApprovalSnoozed": return `${c.dim("approval snoozed")} ${event.approvalId}${event.untilMs === undefined ? ": no longer" : ` until ${new Date(event.untilMs).toISOString()}`}`;
    case "AllowanceGranted": return `${c.magenta("allowed for this session")} ${plain(event.allowance.tool)} until ${new Date(event.allowance.expiresAtMs).toISOString()}, allowance ${event.allowance.allowanceId}`;
    case "AllowanceEnded": return `${c.magenta("allowance ended")} ${event.allowanceId}: ${event.reason.replace("_", " ")}${event.principal === undefined ? "" : ` by ${plain(event.principal.id)}`}`;
    case "ApprovalWithdrawn": return `${c.dim("approval withdrawn")} ${event.approvalId}: ${plain(event.reason)}`;
    case "ToolCallDispatched": return `${c.yellow("tool")}  ${event.callId}${event.try === 1 ? "" : ` try ${String(event.try)}`} sent to the worker`;
    case "ToolTryFailed": return `${c.red("tool failed")} ${event.callId} try ${String(event.try)} (${event.kind}): ${plain(event.message)}${event.retryAtMs === undefined ? "" : "; will try again"}`;
    case "ToolOutcomeUnknown": return `${c.red("outcome unknown")} ${event.callId}: ${plain(event.reason)}`;
    case "ToolResultRecorded": return `${c.yellow("result")} ${plain(event.tool)} ${event.status}: ${plain(clip(event.content.text, 500))}`;
    case "LateResultRecorded": return `${c.yellow("late result")} ${event.callId} ${event.outcome}`;
    case "Escalated": return `${c.magenta("escalated")} (${event.reason}): ${plain(event.message)}\n${c.dim(`docket approval show ${event.record.approvalId}`)}`;
    case "MessageSteered": return `${c.cyan("steered")} ${plain(clip(event.text, 300))}`;
    case "LimitsRaised": return `${c.magenta("limits raised")}${event.budgetUsd === undefined ? "" : ` budget $${String(event.budgetUsd)}`}${event.maxSteps === undefined ? "" : ` steps ${String(event.maxSteps)}`}`;
    case "CancelRequested": return `${c.cyan("cancel")} asked for${event.principal === undefined ? "" : ` by ${plain(event.principal.id)}`}${event.reason === "" ? "" : `: ${plain(event.reason)}`}`;
    case "RunEnding": return `${c.cyan("ending")} ${event.outcome}: calls that are still out are waited for`;
    case "RunEnded": return `${event.outcome === "completed" ? c.green("completed") : c.red(event.outcome)}${event.code === undefined ? "" : ` (${plain(event.code)})`}: ${visible(clip(event.text, LONG))}`;
    case "JournalCompacted": return `${c.dim("journal shortened")}: entries up to ${String(event.toRev)} are no longer kept`;
    case "DeadLetterRecorded": return `${c.red("dead letter")} ${event.deadLetterId} (${plain(event.reason)}) after ${event.tries === 1 ? "1 try" : `${String(event.tries)} tries`}`;
    case "SessionRepaired": return `${c.magenta("repaired")} itself: ${event.found.map(({ what, subject }) => `${what} ${plain(subject)}`).join(", ")}`;
    case "SessionQuarantined": return `${c.red("quarantined")} (${event.reason}): ${plain(event.message)}`;
    case "SessionReleased": return `${c.magenta("released")}${event.principal === undefined ? "" : ` by ${plain(event.principal.id)}`}: ${plain(event.reason)}`;
    case "SessionDeleted": return `session deleted${event.principal === undefined ? "" : ` by ${plain(event.principal.id)}`}: ${plain(event.reason)}`;
    case "SessionErased": return `what was before revision ${String(event.toRev + 1)} is erased`;
    case "SessionClosed": return `session closed: ${plain(event.reason)}`;
    case "ModelCallStarted": case "ModelCostBooked": case "ToolCallAllowed": case "ApprovalReceived": case "ToolCallClaimed": case "PublicationsCleared": case "PublicationRepeated": case "WindowAdvanced": case "GuardArmed": case "GuardReleased":
      return undefined;
    default: return undefined; // an event of a newer server
  }
}
