/** Owns: events coming in: duplicate, refused, queued, or the start of a run; and taking the next one from the mailbox. */
import type { SessionEventOf } from "../../../contracts/journal.js";
import type { CommandOf, Decision, IncomingEvent, PreparedInput } from "../command.js";
import { MAX_OUTBOX } from "../limits.js";
import { runOf } from "../parts.js";
import type { OpenSession, SessionState } from "../state.js";
import { takeWhileBusy } from "./busy.js";
import { ANONYMOUS, Draft, given } from "./draft.js";
import { finishRun, recordDeadEvent } from "./ending.js";
import { expireRun, startModel } from "./progress.js";

export function receiveEvent(state: SessionState, command: CommandOf<"ReceiveEvent">): Decision {
  const draft = new Draft(state, command);
  const { event } = command;
  if (command.seen || knowsKey(state, event.key)) return draft.refuse("duplicate", `the event ${event.source} ${event.id} was accepted before`);
  if (state.status === "NEW" || state.status === "DELETED") {
    const again = state.status === "NEW" ? undefined : { generation: state.guard.generation, ...given("erase", state.erase) };
    draft.emit({ type: "SessionOpened", tenant: command.tenant, sessionId: command.sessionId, actorId: command.actorId, agent: command.agent, agentVersion: command.agentVersion, ...given("again", again) });
  } else {
    const refused = refusal(draft, state, command);
    if (refused !== undefined) return refused;
  }
  if (isFree(draft.session)) {
    draft.emit(received(event));
    startRun(draft, { key: event.key, runId: event.runId, rev: draft.entry.rev, ...given("expiresAtMs", event.expiresAtMs) }, {
      prepared: command.prepared, requestedBy: event.principal?.id ?? ANONYMOUS, correlationId: event.correlationId,
    });
    return draft.accept();
  }
  if (event.expiresAtMs !== undefined && event.expiresAtMs <= draft.atMs) {
    draft.emit(received(event));
    expireWaiting(draft, { key: event.key, runId: event.runId, rev: draft.entry.rev });
    return draft.accept();
  }
  return takeWhileBusy(draft, command, received(event));
}

export function knowsKey(state: SessionState, key: string): boolean {
  if (state.status === "NEW") return false;
  const run = runOf(state);
  return run?.key === key || [...(run?.steered ?? []), ...state.mailbox, ...state.recentRuns].some((item) => item.key === key);
}

function isFree(state: OpenSession): boolean {
  return state.status === "IDLE" && state.mailbox.length === 0;
}

/** Accepted and at once rejected: the event has its one outcome where its sender looks for it (I1). */
function rejected(draft: Draft, { event }: CommandOf<"ReceiveEvent">, code: "agent_mismatch" | "session_closed", message: string): Decision {
  draft.emit(received(event));
  draft.emit({ type: "EventRejected", key: event.key, runId: event.runId, code, message });
  return draft.refuse(code, message);
}

function refusal(draft: Draft, state: OpenSession, command: CommandOf<"ReceiveEvent">): Decision | undefined {
  if (state.agent !== command.agent) return rejected(draft, command, "agent_mismatch", `the session belongs to agent ${state.agent}; the event is for ${command.agent}`);
  if (state.outbox.length >= MAX_OUTBOX) return draft.refuse("broker_unavailable", `${String(state.outbox.length)} publications of this session wait for the broker; the limit is ${String(MAX_OUTBOX)}`);
  if (state.closing === undefined) return undefined;
  return rejected(draft, command, "session_closed", `the session is closed: ${state.closing}`);
}

function received(event: IncomingEvent): SessionEventOf<"EventReceived"> {
  return {
    type: "EventReceived", key: event.key, source: event.source, id: event.id, eventType: event.eventType, mode: event.mode, runId: event.runId,
    ...given("principal", event.principal), correlationId: event.correlationId, ...given("causationId", event.causationId), ...given("traceparent", event.traceparent),
    ...given("expiresAtMs", event.expiresAtMs), data: event.data,
  };
}

interface Waiting { readonly key: string; readonly runId: string; readonly rev: number; readonly expiresAtMs?: number }

function startRun(draft: Draft, item: Waiting, about: { prepared: PreparedInput; requestedBy: string; correlationId: string }): void {
  const { limits } = draft.command;
  const { check, agentVersion } = about.prepared;
  draft.emit({
    type: "RunStarted", runId: item.runId, key: item.key, eventRev: item.rev, input: about.prepared.input, requestedBy: about.requestedBy, correlationId: about.correlationId,
    expiresAtMs: Math.min(item.expiresAtMs ?? Infinity, draft.atMs + limits.runTimeoutMs), maxSteps: limits.maxSteps, budgetUsd: limits.budgetUsd,
    ...given("agentVersion", agentVersion === draft.session.agentVersion ? undefined : agentVersion),
  });
  const run = draft.run;
  if (run === undefined) return;
  if (item.expiresAtMs !== undefined && item.expiresAtMs <= draft.atMs) { expireRun(draft); return; }
  if (!check.ok) { finishRun(draft, { outcome: "rejected", code: check.code, text: check.message }); return; }
  startModel(draft, run, about.prepared.reserveUsd);
}

/** The session is free: the head of the mailbox becomes a run. Anything else than the head is a stale request and does nothing. */
export function takeNext(state: SessionState, command: CommandOf<"TakeNext">): Decision {
  const draft = new Draft(state, command);
  if (state.status !== "IDLE") return draft.accept();
  const head = state.mailbox[0];
  if (head?.key === command.key && command.lost === true) loseEvent(draft, head);
  else if (head?.key === command.key) startRun(draft, head, command);
  return draft.accept();
}

/** It must not block those behind it; its one outcome says what happened (I1). */
function loseEvent(draft: Draft, item: Waiting): void {
  const message = `journal entry ${String(item.rev)}, which held the event, is missing`;
  draft.emit({ type: "RunEnded", runId: item.runId, key: item.key, outcome: "failed", code: "event_lost", text: message });
  recordDeadEvent(draft, { key: item.key, eventRev: item.rev }, { reason: "event_lost", message, tries: 0 });
}

/** An event that ran out of time in the mailbox: no model is called, the dead letters have it. */
export function expireWaiting(draft: Draft, item: Waiting): void {
  draft.emit({ type: "RunEnded", runId: item.runId, key: item.key, outcome: "expired", code: "expired", text: "the event expired before the session was free" });
  recordDeadEvent(draft, { key: item.key, eventRev: item.rev }, { reason: "expired", message: "the event expired before the session was free", tries: 0 });
}
