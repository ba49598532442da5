/**
 * Owns: the conversation that the model is shown, read from the journal (prompt window). Whole rounds only; a call never
 * stands without its result: a step whose results are not all in yet is left out. Earlier text never changes when
 * the journal grows, so that a provider's prompt cache keeps its prefix.
 */
import type { JournalEntry, ProposedCall, SessionEvent, SessionEventOf } from "../../contracts/journal.js";
import type { ModelMessage } from "../../contracts/transcript.js";

export type { ModelMessage } from "../../contracts/transcript.js";

interface Step { readonly text: string; readonly carry?: string; readonly calls: readonly ProposedCall[]; readonly results: Map<string, SessionEventOf<"ToolResultRecorded">> }
type Item = { readonly kind: "user"; readonly text: string } | { readonly kind: "step"; readonly step: Step } | { readonly kind: "partial"; readonly step: number; readonly text: string };
interface Round { readonly runId: string; items: Item[]; steered: string[]; asked: boolean }

interface Reading {
  readonly rounds: Map<string, Round>;
  readonly steps: Map<string, Step>;
  /** approval → call, and call → the arguments a person put in. */
  readonly approvals: Map<string, string>;
  readonly modified: Map<string, string>;
}

/** Messages of all rounds that begin at `fromRev` or later. */
export function transcriptOf(entries: readonly JournalEntry[], fromRev: number): ModelMessage[] {
  const reading: Reading = { rounds: new Map(), steps: new Map(), approvals: new Map(), modified: new Map() };
  for (const entry of entries) {
    if (entry.rev >= fromRev) for (const event of entry.events) read(reading, event);
  }
  const messages = [...reading.rounds.values()].filter((round) => round.asked).flatMap((round) => roundMessages(reading, round));
  return mergeUsers(messages).map(wellFormed);
}

function read(reading: Reading, event: SessionEvent): void {
  if (event.type === "RunStarted") {
    reading.rounds.set(event.runId, { runId: event.runId, items: [{ kind: "user", text: event.input }], steered: [], asked: false });
  } else if (event.type === "ToolResultRecorded") readResult(reading, event);
  else if (event.type === "ApprovalOpened" || event.type === "Escalated") {
    if (event.record.callId !== undefined) reading.approvals.set(event.record.approvalId, event.record.callId);
  } else if (event.type === "DecisionRecorded") readModified(reading, event);
  else if ("runId" in event) {
    const round = reading.rounds.get(event.runId);
    if (round !== undefined) readInRound(reading, round, event);
  }
}

function readResult(reading: Reading, event: SessionEventOf<"ToolResultRecorded">): void {
  const step = reading.steps.get(event.callId);
  if (step !== undefined && !step.results.has(event.callId)) step.results.set(event.callId, event);
}

function readModified(reading: Reading, event: SessionEventOf<"DecisionRecorded">): void {
  const callId = reading.approvals.get(event.approvalId);
  if (event.kind === "modify" && event.args !== undefined && callId !== undefined) reading.modified.set(callId, event.args);
}

/** Steered messages wait until the next model call: that is the first which sees them. */
function readInRound(reading: Reading, round: Round, event: SessionEvent): void {
  if (event.type === "ModelCallStarted") {
    round.asked = true;
    flushSteered(round);
  } else if (event.type === "ModelAnswered") {
    const step: Step = { text: event.text, ...(event.carry === undefined ? {} : { carry: event.carry }), calls: event.calls, results: new Map() };
    for (const call of event.calls) reading.steps.set(call.callId, step);
    round.items.push({ kind: "step", step });
  } else if (event.type === "MessageSteered") round.steered.push(event.text);
  else if (event.type === "PartialAnswerKept") {
    round.items = [...round.items.filter((item) => item.kind !== "partial" || item.step !== event.step), { kind: "partial", step: event.step, text: event.text }];
  } else if (event.type === "RunEnded") flushSteered(round);
}

function flushSteered(round: Round): void {
  round.items.push(...round.steered.map((text): Item => ({ kind: "user", text })));
  round.steered = [];
}

function roundMessages(reading: Reading, round: Round): ModelMessage[] {
  const steered = round.steered.map((text): ModelMessage => ({ role: "user", text }));
  return [...round.items.flatMap((item) => itemMessages(reading, item)), ...steered];
}

function itemMessages(reading: Reading, item: Item): ModelMessage[] {
  if (item.kind === "user") return [{ role: "user", text: item.text }];
  if (item.kind === "partial") return [{ role: "assistant", text: item.text, calls: [] }];
  return stepMessages(reading, item.step);
}

function stepMessages(reading: Reading, step: Step): ModelMessage[] {
  // Providers refuse an empty answer.
  const said = { role: "assistant" as const, text: step.text, ...(step.carry === undefined ? {} : { carry: step.carry }) };
  if (step.calls.length === 0) return step.text.trim() === "" ? [] : [{ ...said, calls: [] }];
  const results = step.calls.flatMap((call) => {
    const result = step.results.get(call.callId);
    return result === undefined ? [] : [{ id: call.providerCallId, name: call.tool, text: resultText(reading, result), isError: result.status !== "succeeded" && result.status !== "responded" }];
  });
  if (results.length < step.calls.length) return [];
  const calls = step.calls.map((call) => ({ id: call.providerCallId, name: call.tool, args: readableArgs(call.args) }));
  return [{ ...said, calls }, { role: "tool_results", results }];
}

function resultText(reading: Reading, result: SessionEventOf<"ToolResultRecorded">): string {
  const modified = reading.modified.get(result.callId);
  const ran = modified === undefined ? "" : `[a person changed the arguments; what counts is: ${modified}]\n`;
  return `${ran}${result.content.text}${result.content.truncated ? "\n[output cut here]" : ""}`;
}

/** A model may have written anything; providers take JSON objects only. */
function readableArgs(args: string): string {
  try {
    const value: unknown = JSON.parse(args);
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return args;
  } catch {
    // not JSON: shown as text below
  }
  return JSON.stringify({ invalid_arguments: args });
}

function mergeUsers(messages: readonly ModelMessage[]): ModelMessage[] {
  const merged: ModelMessage[] = [];
  for (const message of messages) {
    const last = merged.at(-1);
    if (message.role === "user" && last?.role === "user") merged[merged.length - 1] = { role: "user", text: `${last.text}\n\n${message.text}` };
    else merged.push(message);
  }
  return merged;
}

/** Half a character, which events may hold and every cut may leave, makes providers refuse the whole conversation. */
function wellFormed(message: ModelMessage): ModelMessage {
  if (message.role === "tool_results") return { ...message, results: message.results.map((result) => ({ ...result, text: result.text.toWellFormed() })) };
  return { ...message, text: message.text.toWellFormed() };
}
