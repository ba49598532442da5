/** Owns: what must hold after every step of a session, whatever the host did (DESIGN 4). */
import { expect } from "vitest";
import type { SessionAllowance } from "../../../src/contracts/decisions.js";
import { isCheckpoint, SessionEvent } from "../../../src/contracts/journal.js";
import { entryDigest } from "../../../src/session/core/digest.js";
import { fold } from "../../../src/session/core/evolve.js";
import { MAX_CALLS, MAX_OUTBOX } from "../../../src/session/core/limits.js";
import { modelOf, openCallsOf, runOf } from "../../../src/session/core/parts.js";
import { isBusy, nextDueAtMs } from "../../../src/session/core/rest.js";
import { summaryOf } from "../../../src/session/core/summary.js";
import { transcriptOf, type ModelMessage } from "../../../src/session/core/transcript.js";
import type { Bench } from "./support.js";

const viaJson = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

/** I7: the journal as stored, read back and folded, is the state; and each entry's digest continues the chain. */
export function foldIsState(bench: Bench): void {
  const stored = viaJson(bench.entries);
  expect(fold(stored)).toEqual(viaJson(bench.state));
  // Where a deleted session's entries, or those of a compacted journal, are erased, what is left folds to the same, from each of them.
  stored.forEach((entry, index) => {
    if (isCheckpoint(entry)) expect(fold(stored.slice(index))).toEqual(viaJson(bench.state));
    const [first] = entry.events;
    if (first?.type !== "JournalCompacted") return;
    expect(fold(stored.slice(0, index))).toEqual(first.state);
    expect(stored.find(({ rev }) => rev === first.toRev)?.digest).toBe(first.toDigest);
  });
  needsNothingErased(bench);
  let previous = "";
  for (const entry of stored) {
    expect(entryDigest(previous, entry.events)).toBe(entry.digest);
    for (const event of entry.events) expect(SessionEvent.parse(event)).toEqual(event);
    previous = entry.digest;
  }
}

/** Nothing in the state points into what a compaction has given up, and no event of it is without its outcome. */
function needsNothingErased(bench: Bench): void {
  const { open } = bench;
  const keptFromRev = open.keptFromRev ?? 0;
  const run = runOf(open);
  const pointed = [...open.mailbox, ...open.outbox].map(({ rev }) => rev).concat(open.window.rounds.map(({ rev }) => rev), run === undefined ? [] : [run.eventRev, ...run.calls.map(({ argsRev }) => argsRev), ...run.steered.map(({ eventRev }) => eventRev)]);
  for (const rev of pointed) expect(rev).toBeGreaterThanOrEqual(keptFromRev);
  const gone = bench.entries.filter(({ rev }) => rev < keptFromRev && rev >= (open.baseRev ?? 1)).flatMap(({ events }) => events);
  const ended = new Set(gone.flatMap((event) => (event.type === "RunEnded" || event.type === "EventRejected" ? [event.key] : [])));
  for (const event of gone) if (event.type === "EventReceived") expect(ended).toContain(event.key);
}

/** The status says what is true in the state, and something is always outstanding in an open run. */
export function statusIsTrue(bench: Bench): void {
  const { state } = bench;
  const run = runOf(state);
  if (run === undefined) return;
  const phases = run.calls.map((call) => call.life.phase);
  expect(phases).not.toContain("proposed");
  const model = modelOf(state);
  if (model !== undefined) expect(openCallsOf(run)).toEqual([]);
  else if (state.status === "EXECUTING_TOOL") expect(phases.some((phase) => phase === "dispatched" || phase === "waiting_retry")).toBe(true);
  else expect(bench.open.approvals.length).toBeGreaterThan(0);
  for (const call of run.calls) {
    if ("approvalId" in call.life) expect(bench.open.approvals.map((record) => record.approvalId)).toContain(call.life.approvalId);
    if (call.life.phase === "unknown") expect(bench.open.unknownCalls.map((open) => open.callId)).toContain(call.callId);
  }
  expect(bench.open.approvals.filter((record) => record.runId !== run.runId)).toEqual([]);
  expect(summaryOf(bench.open).waitingFor).not.toBe("");
}

/** I9: bounded lists, and a document under 64 KiB. */
export function isBounded(bench: Bench): void {
  const { open } = bench;
  expect(open.mailbox.length).toBeLessThanOrEqual(bench.limits.maxMailbox);
  expect(open.approvals.length).toBeLessThanOrEqual(MAX_CALLS);
  expect(runOf(open)?.calls.length ?? 0).toBeLessThanOrEqual(MAX_CALLS);
  expect(open.outbox.length).toBeLessThanOrEqual(MAX_OUTBOX + 4 * MAX_CALLS);
  for (const list of [open.recentRuns, open.recentDecisions, open.recentCommands, open.unknownCalls]) expect(list.length).toBeLessThanOrEqual(50);
  expect(open.window.rounds.length).toBeLessThanOrEqual(bench.limits.windowRounds + 1);
  expect(open.unbooked.length).toBeLessThanOrEqual(20);
  expect(Buffer.byteLength(JSON.stringify(open))).toBeLessThan(64 * 1024);
}

/** The guard rule: whatever is outstanding or due has a reminder; after a tick nothing is due any more. */
export function isGuarded(bench: Bench): void {
  const { open } = bench;
  const due = nextDueAtMs(open);
  if (isBusy(open) || due !== undefined) expect(open.guard.armed).toBe(true);
  const last = bench.entries.at(-1);
  // With full jitter a retry may be due at once.
  const atOnce = last?.events.some((event) => "retryAtMs" in event && event.retryAtMs === last.atMs) ?? false;
  // What is to be erased waits for the host.
  if (last?.command === "Tick" && due !== undefined && !atOnce && due !== open.erase?.dueAtMs) expect(due).toBeGreaterThan(last.atMs);
}

/** I11: what the open run's model calls really cost (their reservation where nobody knows) is at most one call above its budget. */
export function isWithinBudget(bench: Bench): void {
  const run = runOf(bench.state);
  if (run === undefined) return;
  const costs = new Map<string, number>();
  for (const event of bench.entries.flatMap((entry) => entry.events)) {
    if (!("runId" in event) || event.runId !== run.runId || !("attempt" in event)) continue;
    const attempt = `${String(event.step)}/${String(event.attempt)}`;
    if (event.type === "ModelCallStarted") costs.set(attempt, event.reservedUsd);
    else if (event.type === "ModelAnswered" || (event.type === "ModelCostBooked" && event.costUsd !== null)) costs.set(attempt, event.costUsd ?? 0);
    else if (event.type === "ModelCallFailed" && (event.kind === "transient" || event.kind === "permanent")) costs.set(attempt, 0);
  }
  expect([...costs.values()].reduce((sum, cost) => sum + cost, 0)).toBeLessThanOrEqual(run.budgetUsd + 0.02 + 1e-9);
}

/** Never a call without its result, wherever the window begins. */
export function transcriptIsWhole(bench: Bench): void {
  const starts = new Set([0, bench.open.window.fromRev, ...bench.open.window.rounds.map((round) => round.rev), Math.ceil(bench.entries.length / 2)]);
  for (const fromRev of starts) pairs(transcriptOf(bench.entries, fromRev));
}

export function pairs(messages: readonly ModelMessage[]): void {
  messages.forEach((message, index) => {
    const next = messages[index + 1];
    if (message.role === "assistant") {
      expect(message.calls.length > 0 || message.text !== "").toBe(true);
      if (message.calls.length > 0) expect(next?.role === "tool_results" ? next.results.map((result) => result.id) : undefined).toEqual(message.calls.map((call) => call.id));
      for (const call of message.calls) expect(typeof JSON.parse(call.args)).toBe("object");
    }
    if (message.role === "tool_results") expect(messages[index - 1]?.role).toBe("assistant");
    if (message.role === "user") expect(next?.role).not.toBe("user");
  });
  if (messages.length > 0) expect(messages[0]?.role).toBe("user");
}

/** I10: a refused decision leaves a line in the ring and nothing else. */
export function refusalChangedNothing(bench: Bench): void {
  const { last, open } = bench;
  if (last?.decision.ok !== false || last.before.status === "NEW" || last.decision.events[0]?.type !== "DecisionRefused") return;
  const same = { rev: 0, updatedAtMs: 0, journalDigest: "", recentDecisions: [] };
  expect(last.decision.events).toHaveLength(1);
  expect({ ...open, ...same, guard: 0 }).toEqual({ ...last.before, ...same, guard: 0 });
}

/** I1: every accepted event has at most one outcome; exactly one when the session has come to rest. */
export function outcomes(bench: Bench): Map<string, number> {
  const counts = new Map(bench.eventsOf("EventReceived").map((event) => [event.key, 0]));
  for (const event of [...bench.eventsOf("RunEnded"), ...bench.eventsOf("EventRejected")]) counts.set(event.key, (counts.get(event.key) ?? 0) + 1);
  return counts;
}

/** I2 and the transcript's root: each key accepted once, each call with at most one result. */
export function nothingTwice(bench: Bench): void {
  const keys = bench.eventsOf("EventReceived").map((event) => event.key);
  expect(new Set(keys).size).toBe(keys.length);
  const results = bench.eventsOf("ToolResultRecorded").map((event) => event.callId);
  expect(new Set(results).size).toBe(results.length);
  const calls = bench.eventsOf("ModelCallStarted").map((event) => `${event.runId}/${String(event.step)}/${String(event.attempt)}`);
  expect(new Set(calls).size).toBe(calls.length);
  for (const count of outcomes(bench).values()) expect(count).toBeLessThanOrEqual(1);
}

/** I4, I5, I6, read from the journal alone. */
export function dispatchesAreRightful(bench: Bench): void {
  const journal = new RightfulDispatches();
  for (const event of bench.entries.flatMap((entry) => entry.events)) journal.read(event);
  // I5: what is out now has the digest that was allowed or approved.
  for (const call of runOf(bench.state)?.calls ?? []) {
    if (call.life.phase === "dispatched") expect(call.argsDigest).toBe(journal.allowed.get(call.callId));
  }
}

class RightfulDispatches {
  private readonly proposed = new Map<string, { digest: string; effects: string }>();
  readonly allowed = new Map<string, string>();
  private readonly allowances = new Map<string, SessionAllowance>();
  private readonly records = new Map<string, { callId?: string | undefined; digest: string }>();
  /** call → last try that may be followed by another. */
  private readonly proven = new Map<string, number>();
  private readonly tries = new Map<string, number>();
  /** Sent, and nobody has proven how it ended. */
  private readonly out = new Set<string>();

  read(event: SessionEvent): void {
    if (event.type === "ModelAnswered") for (const call of event.calls) this.proposed.set(call.callId, { digest: call.argsDigest, effects: call.effects });
    if (event.type === "ToolCallAllowed") {
      this.allowed.set(event.callId, this.proposed.get(event.callId)!.digest);
      if (event.allowanceId !== undefined) this.readUse(event.allowanceId, event.policyVersion, event.rule);
    }
    if (event.type === "AllowanceGranted") this.allowances.set(event.allowance.allowanceId, { ...event.allowance });
    if (event.type === "AllowanceEnded") this.allowances.delete(event.allowanceId);
    if (event.type === "ApprovalOpened" || event.type === "Escalated") this.records.set(event.record.approvalId, { callId: event.record.callId, digest: event.record.argsDigest });
    if (event.type === "DecisionRecorded") this.readDecision(event);
    if (event.type === "ToolTryFailed") {
      const safe = event.kind !== "timeout" || this.proposed.get(event.callId)?.effects !== "once";
      if (safe) this.proven.set(event.callId, event.try);
      if (event.kind !== "timeout") this.out.delete(event.callId);
    }
    if (event.type === "ToolCallDispatched") this.readDispatch(event);
    if (event.type === "ToolResultRecorded" && this.out.has(event.callId) && this.proposed.get(event.callId)?.effects !== "none") {
      expect(["succeeded", "failed", "responded", "outcome_unknown"], "called off while it may have run (I6)").toContain(event.status);
    }
  }

  /** Somebody's word stands behind it, for this rule and policy, and it has uses left. */
  private readUse(allowanceId: string, policyVersion: string, rule: string): void {
    const allowance = this.allowances.get(allowanceId);
    expect(allowance, "used without having been granted, or after its end (I4)").toMatchObject({ policyVersion, rule });
    if (allowance?.usesLeft === undefined) return;
    expect(allowance.usesLeft).toBeGreaterThan(0);
    allowance.usesLeft -= 1;
  }

  private readDecision(event: Extract<SessionEvent, { type: "DecisionRecorded" }>): void {
    const record = this.records.get(event.approvalId)!;
    if (event.kind === "modify") record.digest = event.argsDigest!;
    if (record.callId === undefined || !event.final) return;
    if (event.kind === "approve" || event.kind === "modify") {
      expect(event.principal.class).toBe("person");
      this.allowed.set(record.callId, record.digest);
    }
    if (event.kind === "retry") this.proven.set(record.callId, this.tries.get(record.callId) ?? 0);
  }

  private readDispatch(event: Extract<SessionEvent, { type: "ToolCallDispatched" }>): void {
    expect(this.allowed.has(event.callId), `${event.callId} was dispatched without a right (I4)`).toBe(true);
    const before = this.tries.get(event.callId) ?? 0;
    expect(event.try).toBe(before + 1);
    if (before > 0) expect(this.proven.get(event.callId), `try ${String(before)} of ${event.callId} was not proven (I6)`).toBe(before);
    this.tries.set(event.callId, event.try);
    this.out.add(event.callId);
  }
}
