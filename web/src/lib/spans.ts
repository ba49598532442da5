/** Owns: a journal as spans of time: who was waited for, and for how long. Long stretches in which little happens are drawn shorter, and marked. */
import type { JournalEntry } from "../../../src/contracts/journal.js";
import { plural } from "./words.js";

export type SpanKind = "queue" | "model" | "tool_wait" | "tool_run" | "human";
export interface Span {
  readonly key: string; readonly kind: SpanKind; readonly label: string; readonly rev: number; readonly startMs: number;
  /** Undefined while it lasts. */
  endMs?: number;
  /** How it ended, and what it cost. */
  note: string;
  readonly approvalId?: string;
}

export const KIND_WORDS: Readonly<Record<SpanKind, string>> = { queue: "in the mailbox", model: "model", tool_wait: "waits for a worker", tool_run: "tool runs", human: "waits for a person" };

/** Spans in the order in which they began. */
export function spansOf(entries: readonly JournalEntry[]): Span[] {
  const spans: Span[] = [];
  const open = new Map<string, Span>();
  const tools = new Map<string, string>();
  const begin = (key: string, span: Omit<Span, "key" | "note">): void => {
    const made: Span = { key: `${key} ${String(span.rev)}`, note: "", ...span };
    open.set(key, made);
    spans.push(made);
  };
  const end = (key: string, atMs: number, note: string): void => {
    const span = open.get(key);
    if (span === undefined) return;
    span.endMs = atMs;
    span.note = note;
    open.delete(key);
  };
  for (const { rev, atMs, events } of entries) {
    for (const event of events) {
      switch (event.type) {
        case "EventReceived": begin(`q ${event.runId}`, { kind: "queue", label: event.eventType, rev, startMs: atMs }); break;
        case "EventRejected": end(`q ${event.runId}`, atMs, event.code); break;
        case "RunStarted": end(`q ${event.runId}`, atMs, ""); break;
        case "MessageSteered": for (const [key, span] of open) if (span.kind === "queue") end(key, atMs, "steered into the run"); break;
        case "ModelCallStarted": begin(`m ${event.runId} ${String(event.step)} ${String(event.attempt)}`, { kind: "model", label: `step ${String(event.step)}${event.attempt === 1 ? "" : `, attempt ${String(event.attempt)}`}`, rev, startMs: atMs }); break;
        case "ModelAnswered":
          for (const call of event.calls) tools.set(call.callId, call.tool);
          end(`m ${event.runId} ${String(event.step)} ${String(event.attempt)}`, atMs, `${plural(event.usage.inputTokens, "token")} in, ${String(event.usage.outputTokens)} out${event.costUsd === null ? "" : `, $${event.costUsd.toFixed(4)}`}`);
          break;
        case "ModelCallFailed": end(`m ${event.runId} ${String(event.step)} ${String(event.attempt)}`, atMs, event.kind); break;
        case "ToolCallDispatched": begin(`t ${event.callId}`, { kind: "tool_wait", label: `${tools.get(event.callId) ?? "tool"}${event.try === 1 ? "" : `, try ${String(event.try)}`}`, rev, startMs: atMs }); break;
        case "ToolCallClaimed":
          if (open.get(`t ${event.callId}`)?.kind !== "tool_wait") break;
          end(`t ${event.callId}`, atMs, "");
          begin(`t ${event.callId}`, { kind: "tool_run", label: tools.get(event.callId) ?? "tool", rev, startMs: atMs });
          break;
        case "ToolTryFailed": end(`t ${event.callId}`, atMs, event.kind); break;
        case "ToolOutcomeUnknown": end(`t ${event.callId}`, atMs, "outcome unknown"); break;
        case "ToolResultRecorded": end(`t ${event.callId}`, atMs, event.status.replace("_", " ")); break;
        case "ApprovalOpened": case "Escalated": begin(`a ${event.record.approvalId}`, { kind: "human", label: event.record.tool ?? "escalation", rev, startMs: atMs, approvalId: event.record.approvalId }); break;
        case "DecisionRecorded": if (event.final) end(`a ${event.approvalId}`, atMs, `${event.kind.replace("_", " ")} by ${event.principal.id}`); break;
        case "ApprovalExpired": end(`a ${event.approvalId}`, atMs, "expired"); break;
        case "ApprovalWithdrawn": end(`a ${event.approvalId}`, atMs, "withdrawn"); break;
        case "AllowanceEnded": case "AllowanceGranted": case "ApprovalAskedAgain": case "ApprovalAssigned": case "ApprovalReceived": case "ApprovalReminded": case "ApprovalSnoozed": case "CancelRequested": case "DeadLetterRecorded": case "DecisionRefused": case "GuardArmed": case "GuardReleased": case "JournalCompacted": case "LateResultRecorded": case "LimitsRaised": case "ModelCostBooked":
        case "PartialAnswerKept": case "PublicationRepeated": case "PublicationsCleared": case "RunEnded": case "RunEnding": case "SessionClosed": case "SessionDeleted": case "SessionErased": case "SessionOpened":
        case "SessionQuarantined": case "SessionReleased": case "SessionRepaired": case "ToolCallAllowed": case "ToolCallDenied": case "WindowAdvanced":
          break;
        default: break; // an event of a newer server
      }
    }
  }
  return spans;
}

export interface Scale {
  /** Share of the whole width, 0 to 1. */
  readonly at: (ms: number) => number;
  /** Where time is drawn shorter than it was. */
  readonly squeezed: readonly { readonly at: number; readonly ms: number }[];
}

/** Idle stretches get a small fixed width; of long busy ones only the beginning is in scale. */
export function scaleOf(spans: readonly Span[], nowMs: number): Scale {
  const ends = spans.map((span) => span.endMs ?? Math.max(nowMs, span.startMs));
  const points = [...new Set([...spans.map((span) => span.startMs), ...ends])].sort((a, b) => a - b);
  const pieces = points.slice(1).map((to, index) => {
    const from = points[index] ?? to;
    return { from, to, ms: to - from, busy: spans.some((span, at) => span.startMs <= from && (ends[at] ?? 0) >= to) };
  });
  const lengths = pieces.filter((piece) => piece.busy && piece.ms > 0).map((piece) => piece.ms).sort((a, b) => a - b);
  const most = Math.max(1_000, (lengths[Math.floor(lengths.length / 2)] ?? 0) * 6);
  const places: { ms: number; x: number }[] = [{ ms: points[0] ?? 0, x: 0 }];
  const cuts: { x: number; ms: number }[] = [];
  let x = 0;
  for (const piece of pieces) {
    const width = piece.busy ? Math.min(piece.ms, most) : Math.min(piece.ms, most / 8);
    if (width < piece.ms) cuts.push({ x: x + width / 2, ms: piece.ms });
    x += width;
    places.push({ ms: piece.to, x });
  }
  const total = Math.max(1, x);
  const at = (ms: number): number => {
    const next = places.findIndex((place) => place.ms >= ms);
    const [low, high] = [places[Math.max(0, next - 1)], places[next < 0 ? places.length - 1 : next]];
    if (low === undefined || high === undefined) return 0;
    return (high.ms === low.ms ? high.x : low.x + (high.x - low.x) * ((ms - low.ms) / (high.ms - low.ms))) / total;
  };
  return { at, squeezed: cuts.map((cut) => ({ at: cut.x / total, ms: cut.ms })) };
}

/** Time spent by kind; spans of one kind that overlap count each. */
export function sumsOf(spans: readonly Span[], nowMs: number): { readonly kind: SpanKind; readonly ms: number }[] {
  return (Object.keys(KIND_WORDS) as SpanKind[]).map((kind) => ({ kind, ms: spans.filter((span) => span.kind === kind).reduce((sum, span) => sum + (span.endMs ?? nowMs) - span.startMs, 0) })).filter(({ ms }) => ms > 0);
}
