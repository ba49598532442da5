/**
 * Owns: the session's numbers. They are read off what was committed, so that a turn that lost its commit counts nothing. Nothing is computed
 * where nobody takes numbers.
 */
import { EscalationReason, RunOutcome, type JournalEntry, type SessionEvent, type SessionEventOf } from "../../contracts/journal.js";
import { errorFields, type Logger } from "../../platform/log.js";
import { count, measure, metering, watch } from "../../platform/telemetry/metrics.js";
import type { OpenSession } from "../core/state.js";
import type { TurnOutcome } from "./turn.js";

/** A session of which nothing was committed here for so long is another host's by now, or its guard is; either says it again. */
const FORGET_MS = 15 * 60_000;
const MAX_SESSIONS = 10_000;
const CHAT = "chat";

interface Commit { readonly before: TurnOutcome["before"]; readonly after: OpenSession; readonly entry: JournalEntry }
type Handler<T extends SessionEvent["type"]> = (event: SessionEventOf<T>, at: Commit) => void;
/** What events count for; others count for nothing. */
type Handlers = { readonly [T in SessionEvent["type"]]?: Handler<T> };

/** A counter that first appears with a one shows no increase: what alerts look at is there from the start. */
function beginAtZero(agent: string, model: string): void {
  count("docket.runs.started", 0, { agent });
  for (const outcome of RunOutcome.options) count("docket.runs.ended", 0, { agent, outcome });
  for (const kind of ["tool_call", "escalation"]) count("docket.approvals.opened", 0, { agent, kind });
  for (const reason of EscalationReason.options) count("docket.escalations", 0, { agent, reason });
  count("docket.model.cost.usd", 0, { agent, model });
}

export interface MeasuresDeps {
  /** Those that are installed. */
  readonly agents: Iterable<string>;
  readonly entries: (actorId: string, fromRev: number, toRev: number) => Promise<JournalEntry[]>;
  /** A model may name tools that there are not; a label may not. */
  readonly isTool: (name: string) => boolean;
  readonly modelOf: (agent: string, version?: string) => { readonly provider: string; readonly name: string };
  readonly nowMs: () => number;
  readonly logger: Logger;
}

export class Measures {
  /** Publications without evidence: since when this host has seen them. */
  readonly #outboxes = new Map<string, { seenAtMs: number; readonly rows: Map<string, number> }>();

  constructor(private readonly deps: MeasuresDeps) {
    watch("docket.outbox.oldest.seconds", () => [{ value: this.#oldestS() }]);
    if (!metering()) return;
    for (const agent of deps.agents) beginAtZero(agent, deps.modelOf(agent).name);
    for (const what of ["publication", "model_call", "repair", "quarantine"]) count("docket.guard.recoveries", 0, { what });
  }

  /** One turn with its first publications. */
  turn(outcome: TurnOutcome, startedAtMs: number): void {
    if (!metering()) return;
    const { decision, entry, after } = outcome;
    measure("docket.turn.duration.seconds", (this.deps.nowMs() - startedAtMs) / 1000, { command: entry?.command ?? "none" });
    if (!decision.ok && decision.code === "duplicate" && after.status !== "NEW") count("docket.events.deduplicated", 1, { agent: after.agent });
  }

  /** What an entry says. */
  commit({ before, after, entry, decision }: TurnOutcome): void {
    if (!metering() || entry === undefined || after.status === "NEW") return;
    this.#noteOutbox(after, entry);
    if (entry.command === "ReceiveEvent") count("docket.events.handled", 1, { agent: after.agent, verdict: decision.ok ? "accepted" : decision.code });
    for (const event of entry.events) (this.#on[event.type] as Handler<SessionEvent["type"]> | undefined)?.(event, { before, after, entry });
  }

  readonly #on: Handlers = {
    RunStarted: (event, { after, entry }) => {
      count("docket.runs.started", 1, { agent: after.agent });
      this.#mailboxWait(event, after, entry);
    },
    RunEnded: ({ runId, outcome }, { before, after: { agent }, entry }) => {
      count("docket.runs.ended", 1, { agent, outcome });
      const startedAtMs = "run" in before && before.run.runId === runId ? before.run.startedAtMs : entry.atMs;
      measure("docket.run.duration.seconds", (entry.atMs - startedAtMs) / 1000, { agent, outcome });
    },
    ModelAnswered: (event, at) => { this.#answered(event, at); },
    ModelCallFailed: (event, at) => { this.#modelFailed(event, at); },
    ModelCostBooked: ({ costUsd }, { after: { agent, agentVersion } }) => { if (costUsd !== null) count("docket.model.cost.usd", costUsd, { agent, model: this.deps.modelOf(agent, agentVersion).name }); },
    ToolResultRecorded: ({ tool, status }) => { count("docket.tool.calls", 1, { tool: this.deps.isTool(tool) ? tool : "unknown", status }); },
    ToolTryFailed: ({ callId, kind, retryAtMs }, { before }) => {
      const call = "run" in before ? before.run.calls.find((one) => one.callId === callId) : undefined;
      if (retryAtMs !== undefined && call !== undefined) count("docket.tool.retries", 1, { tool: call.tool, kind });
    },
    ApprovalOpened: ({ record: { kind } }, { after: { agent } }) => { count("docket.approvals.opened", 1, { agent, kind }); },
    Escalated: ({ record: { kind }, reason }, { after: { agent } }) => {
      count("docket.approvals.opened", 1, { agent, kind });
      count("docket.escalations", 1, { agent, reason });
    },
    DecisionRecorded: (event, at) => { this.#decided(event, at); },
    ApprovalExpired: (_event, { after: { agent } }) => { count("docket.approvals.closed", 1, { agent, as: "expired" }); },
    ApprovalWithdrawn: (_event, { after: { agent } }) => { count("docket.approvals.closed", 1, { agent, as: "withdrawn" }); },
    DecisionRefused: ({ code }) => { count("docket.decisions.refused", 1, { code }); },
    DeadLetterRecorded: ({ kind, reason }) => { count("docket.dead.letters.recorded", 1, { kind, reason }); },
    PublicationRepeated: () => { count("docket.guard.recoveries", 1, { what: "publication" }); },
    SessionRepaired: ({ found }) => { count("docket.guard.recoveries", found.length, { what: "repair" }); },
    SessionQuarantined: () => { count("docket.guard.recoveries", 1, { what: "quarantine" }); },
  };

  #answered({ usage, costUsd }: SessionEventOf<"ModelAnswered">, { before, after: { agent, agentVersion }, entry }: Commit): void {
    const { provider, name } = this.deps.modelOf(agent, agentVersion);
    const labels = { "gen_ai.operation.name": CHAT, "gen_ai.provider.name": provider, "gen_ai.request.model": name };
    measure("gen_ai.client.operation.duration", secondsOf(before, entry), { ...labels, "error.type": "" });
    measure("gen_ai.client.token.usage", usage.inputTokens, { ...labels, "gen_ai.token.type": "input" });
    measure("gen_ai.client.token.usage", usage.outputTokens, { ...labels, "gen_ai.token.type": "output" });
    if (costUsd !== null) count("docket.model.cost.usd", costUsd, { agent, model: name });
  }

  #modelFailed({ kind, retryAtMs }: SessionEventOf<"ModelCallFailed">, { before, after: { agent, agentVersion }, entry }: Commit): void {
    const { provider, name } = this.deps.modelOf(agent, agentVersion);
    measure("gen_ai.client.operation.duration", secondsOf(before, entry), { "gen_ai.operation.name": CHAT, "gen_ai.provider.name": provider, "gen_ai.request.model": name, "error.type": kind });
    if (retryAtMs !== undefined) count("docket.model.retries", 1, { agent, kind });
    if (kind === "lost") count("docket.guard.recoveries", 1, { what: "model_call" });
  }

  #decided({ approvalId, final }: SessionEventOf<"DecisionRecorded">, { before, after: { agent }, entry }: Commit): void {
    if (!final) return;
    count("docket.approvals.closed", 1, { agent, as: "decided" });
    const record = before.status === "NEW" ? undefined : before.approvals.find((open) => open.approvalId === approvalId);
    if (record !== undefined) measure("docket.approval.decision.seconds", (entry.atMs - record.openedAtMs) / 1000, { agent });
  }

  /** The event's entry tells when it was accepted; where it is this one, it did not wait. */
  #mailboxWait({ eventRev }: SessionEventOf<"RunStarted">, { actorId, agent }: OpenSession, { rev, atMs }: JournalEntry): void {
    if (eventRev === rev) { measure("docket.mailbox.wait.seconds", 0, { agent }); return; }
    this.deps.entries(actorId, eventRev, eventRev).then(
      ([received]) => { if (received !== undefined) measure("docket.mailbox.wait.seconds", (atMs - received.atMs) / 1000, { agent }); },
      (error: unknown) => { this.deps.logger.debug({ actorId, ...errorFields(error) }, "how long an event waited could not be read"); },
    );
  }

  #noteOutbox({ actorId, outbox }: OpenSession, { atMs }: JournalEntry): void {
    const known = this.#outboxes.get(actorId);
    if (outbox.length === 0) { if (known !== undefined) this.#outboxes.delete(actorId); return; }
    const rows = new Map(outbox.map(({ rowId }) => [rowId, known?.rows.get(rowId) ?? atMs]));
    if (known === undefined && this.#outboxes.size >= MAX_SESSIONS) return;
    this.#outboxes.set(actorId, { seenAtMs: this.deps.nowMs(), rows });
  }

  #oldestS(): number {
    const nowMs = this.deps.nowMs();
    let oldestMs = nowMs;
    for (const [actorId, { seenAtMs, rows }] of this.#outboxes) {
      if (nowMs - seenAtMs > FORGET_MS) this.#outboxes.delete(actorId);
      else for (const sinceMs of rows.values()) oldestMs = Math.min(oldestMs, sinceMs);
    }
    return (nowMs - oldestMs) / 1000;
  }
}

/** How long the model call ran that an entry ends. */
function secondsOf(before: TurnOutcome["before"], { atMs }: JournalEntry): number {
  return "model" in before && before.model.phase === "running" ? (atMs - before.model.startedAtMs) / 1000 : 0;
}
