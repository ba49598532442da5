/** Owns: how events about the mailbox and the life of runs fold into the state. */
import type { RunOutcome, SessionEventOf } from "../../../contracts/journal.js";
import { RECENT_RUNS, RING } from "../limits.js";
import { addRow, ring, withCommon, withRun, type EntryAt, type Parts } from "../parts.js";
import type { MailboxItem, Run } from "../state.js";
import type { AppliersOf } from "./applier.js";
import { dropLastRound, growRound, openRound } from "./window.js";

const DEFAULT_MAX_STEPS = 20;
const DEFAULT_BUDGET_USD = 1;

function received(parts: Parts, event: SessionEventOf<"EventReceived">, entry: EntryAt): Parts {
  const item: MailboxItem = {
    rev: entry.rev, key: event.key, runId: event.runId,
    ...(event.expiresAtMs === undefined ? {} : { expiresAtMs: event.expiresAtMs }), ...(event.front === true ? { front: true } : {}),
  };
  const { mailbox } = parts.common;
  if (item.front !== true) return withCommon(parts, { mailbox: [...mailbox, item] });
  const behind = mailbox.filter((other) => other.front !== true);
  return withCommon(parts, { mailbox: [...mailbox.filter((other) => other.front === true), item, ...behind] });
}

function leaveMailbox(parts: Parts, key: string): Parts {
  return withCommon(parts, { mailbox: parts.common.mailbox.filter((item) => item.key !== key) });
}

function started(parts: Parts, event: SessionEventOf<"RunStarted">, entry: EntryAt): Parts {
  const run: Run = {
    runId: event.runId, key: event.key, eventRev: event.eventRev, correlationId: event.correlationId, requestedBy: event.requestedBy,
    startedAtMs: entry.atMs, ...(event.expiresAtMs === undefined ? {} : { expiresAtMs: event.expiresAtMs }),
    steps: 0, maxSteps: event.maxSteps ?? DEFAULT_MAX_STEPS, budgetUsd: event.budgetUsd ?? DEFAULT_BUDGET_USD, spentUsd: 0,
    reflections: 0, lostAttempts: 0, attempt: 0, failedAttempts: 0, steered: [], steerPending: false, rejected: [], escalations: 0, calls: [],
  };
  const own = leaveMailbox(parts, event.key);
  const moved = event.agentVersion === undefined ? own : withCommon(own, { agentVersion: event.agentVersion });
  return openRound({ ...moved, run }, entry.rev, Buffer.byteLength(event.input));
}

function steered(parts: Parts, event: SessionEventOf<"MessageSteered">, entry: EntryAt): Parts {
  const item = parts.common.mailbox.find((other) => other.key === event.key);
  const message = { key: event.key, runId: item?.runId ?? event.runId, eventRev: item?.rev ?? entry.rev, ...(event.requestedBy === undefined ? {} : { by: event.requestedBy }) };
  return growRound(withRun(leaveMailbox(parts, event.key), (run) => ({ steered: [...run.steered, message], steerPending: true })), event.text);
}

/** The one outcome of an accepted event (I1). */
function outcome(parts: Parts, event: { runId: string; key: string; code?: string | undefined }, kind: RunOutcome, entry: EntryAt): Parts {
  const ended = { runId: event.runId, key: event.key, outcome: kind, ...(event.code === undefined ? {} : { code: event.code }), endedAtMs: entry.atMs, rev: entry.rev };
  const listed = withCommon(leaveMailbox(parts, event.key), { recentRuns: ring(parts.common.recentRuns, ended, RECENT_RUNS) });
  return addRow(listed, { rowId: `response:${event.runId}`, kind: "response", subject: event.runId }, entry);
}

function endedRun(parts: Parts, event: SessionEventOf<"RunEnded">, entry: EntryAt): Parts {
  const listed = outcome(parts, event, event.outcome, entry);
  if (listed.run?.runId !== event.runId) return listed;
  const neverAsked = listed.run.steps === 0 && listed.run.attempt === 0;
  const free: Parts = { common: listed.common };
  return neverAsked ? dropLastRound(free) : free;
}

export const runAppliers: AppliersOf<
  "EventReceived" | "EventRejected" | "RunStarted" | "MessageSteered" | "LimitsRaised" | "CancelRequested" | "RunEnding" | "RunEnded" | "SessionClosed"
> = {
  EventReceived: received,
  EventRejected: (parts, event, entry) => outcome(parts, event, "rejected", entry),
  RunStarted: started,
  MessageSteered: steered,
  LimitsRaised: (parts, event) => withRun(parts, (run) => ({
    maxSteps: Math.max(run.maxSteps, event.maxSteps ?? 0), budgetUsd: Math.max(run.budgetUsd, event.budgetUsd ?? 0),
  })),
  CancelRequested: (parts, event) => withCommon(parts, { recentCommands: ring(parts.common.recentCommands, event.key, RING) }),
  RunEnding: (parts, event) => withRun(parts, () => ({
    ending: { outcome: event.outcome, ...(event.code === undefined ? {} : { code: event.code }), text: event.text },
  })),
  RunEnded: endedRun,
  SessionClosed: (parts, event) => withCommon(parts, { closing: event.reason }),
};
