/**
 * Owns: folding journals into runs, model calls, tool calls, costs, hits of rules and searchable words. Unlike sessions and approvals these hold
 * sums, so each entry must be taken exactly once and in order: the projector's head says which ones were.
 */
import type { Kysely } from "kysely";
import type { JournalEntry, SessionEvent, SessionEventOf } from "../../contracts/journal.js";
import { addRows, insertMissing, mergeRows } from "./bulk.js";
import type { CostDayRow, RuleDayRow, RunRow, StepRow, Tables, ToolCallRow, WordRow } from "./database.js";
import { wordsOf } from "./words.js";

/** Whose entries these are. */
export interface Owner { readonly actorId: string; tenant: string; agent: string }

const DAY_MS = 86_400_000;
const INPUT_SHOWN = 200;
const HISTORY = ["runs", "steps", "tool_calls", "words"] as const;

/** Collects what entries say, then writes it in a few statements. */
export class History {
  readonly #runs = new Map<string, RunRow>();
  readonly #steps = new Map<string, StepRow>();
  readonly #calls = new Map<string, ToolCallRow>();
  readonly #costs = new Map<string, CostDayRow>();
  readonly #rules = new Map<string, RuleDayRow>();
  readonly #words = new Map<string, WordRow>();
  readonly #deleted = new Set<string>();

  /** A session's first entry is about to be taken. */
  begin({ actorId, tenant, agent }: Owner, sessionId: string): void { this.#say({ actorId, tenant, agent }, `${sessionId} ${agent}`); }

  take(owner: Owner, entry: JournalEntry): void {
    for (const event of entry.events) this.#event(owner, event, entry.atMs);
  }

  /** In the transaction that moves the heads. */
  async write(db: Kysely<Tables>): Promise<void> {
    await dropHistoryOf(db, [...this.#deleted]);
    await mergeRows(db, "runs", ["actor_id", "run_id"], sorted(this.#runs));
    await mergeRows(db, "steps", ["actor_id", "run_id", "step", "attempt"], sorted(this.#steps));
    await mergeRows(db, "tool_calls", ["actor_id", "call_id"], sorted(this.#calls));
    await addRows(db, "cost_days", ["tenant", "day", "agent", "model"], sorted(this.#costs));
    await addRows(db, "rule_days", ["tenant", "day", "rule", "verdict"], sorted(this.#rules));
    await insertMissing(db, "words", ["tenant", "word", "actor_id"], sorted(this.#words));
  }

  #event(owner: Owner, event: SessionEvent, atMs: number): void {
    switch (event.type) {
      case "SessionOpened": {
        owner.agent = event.agent;
        owner.tenant = event.tenant;
        this.#say(owner, `${event.sessionId} ${event.agent}`);
        return;
      }
      case "RunStarted": {
        this.#run(owner, event.runId, { started_at: atMs, requested_by: event.requestedBy, input: event.input.slice(0, INPUT_SHOWN) });
        this.#say(owner, event.input);
        return;
      }
      case "MessageSteered": { this.#say(owner, event.text); return; }
      case "RunEnded": { this.#run(owner, event.runId, { ended_at: atMs, outcome: event.outcome, code: event.code ?? null }); return; }
      case "ModelCallStarted": { this.#step(owner, event, { started_at: atMs }); return; }
      case "ModelCallFailed": { this.#step(owner, event, { ended_at: atMs, outcome: event.kind }); return; }
      case "ModelAnswered": {
        this.#step(owner, event, { ended_at: atMs, outcome: "answered", model: event.model, ...spent(event) });
        this.#cost(owner, event.model, event, atMs);
        for (const call of event.calls) this.#call(owner, call.callId, { run_id: event.runId, tool: call.tool, args_digest: call.argsDigest, proposed_at: atMs });
        return;
      }
      case "ModelCostBooked": {
        this.#step(owner, event, spent(event));
        this.#cost(owner, "", event, atMs);
        return;
      }
      case "ToolCallAllowed": { this.#judged(owner, event.callId, { rule: event.rule, verdict: "allow" }, atMs); return; }
      case "ToolCallDenied": { this.#judged(owner, event.callId, { rule: event.rule, verdict: "deny" }, atMs); return; }
      case "ApprovalOpened": {
        const { record } = event;
        if (record.kind === "tool_call" && record.callId !== undefined && record.version === 1) this.#judged(owner, record.callId, { rule: record.rule, verdict: "ask" }, atMs);
        return;
      }
      case "ToolCallDispatched": { this.#call(owner, event.callId, { dispatched_at: atMs, tries: event.try }); return; }
      case "ToolCallClaimed": { this.#call(owner, event.callId, { claimed_at: atMs }); return; }
      case "ToolResultRecorded": { this.#call(owner, event.callId, { ended_at: atMs, status: event.status }); return; }
      case "SessionDeleted": { this.#forget(owner.actorId); return; }
      case "ApprovalAskedAgain": case "ApprovalExpired": case "AllowanceEnded": case "AllowanceGranted": case "ApprovalAssigned": case "ApprovalReceived": case "ApprovalReminded": case "ApprovalSnoozed": case "ApprovalWithdrawn": case "CancelRequested": case "DeadLetterRecorded": case "DecisionRecorded": case "DecisionRefused": case "Escalated":
      case "EventReceived": case "EventRejected": case "GuardArmed": case "GuardReleased": case "JournalCompacted": case "LateResultRecorded": case "LimitsRaised": case "PartialAnswerKept": case "PublicationRepeated":
      case "PublicationsCleared": case "RunEnding": case "SessionClosed": case "SessionErased": case "SessionQuarantined": case "SessionReleased": case "SessionRepaired": case "ToolOutcomeUnknown":
      case "ToolTryFailed": case "WindowAdvanced":
        return; // say nothing that these tables show
    }
  }

  #run({ actorId, tenant }: Owner, runId: string, told: Partial<RunRow>): void {
    merge(this.#runs, key(actorId, runId), { actor_id: actorId, run_id: runId, tenant, started_at: null, ended_at: null, outcome: null, code: null, requested_by: null, input: null }, told);
  }

  #step({ actorId, tenant }: Owner, { runId, step, attempt }: { runId: string; step: number; attempt: number }, told: Partial<StepRow>): void {
    const none = { started_at: null, ended_at: null, outcome: null, model: null, input_tokens: null, output_tokens: null, cost_usd: null };
    merge(this.#steps, key(actorId, runId, String(step), String(attempt)), { actor_id: actorId, run_id: runId, step, attempt, tenant, ...none }, told);
  }

  #call({ actorId, tenant }: Owner, callId: string, told: Partial<ToolCallRow>): void {
    const none = { run_id: null, tool: null, args_digest: null, proposed_at: null, verdict: null, rule: null, dispatched_at: null, claimed_at: null, tries: null, ended_at: null, status: null };
    merge(this.#calls, key(actorId, callId), { actor_id: actorId, call_id: callId, tenant, ...none }, told);
  }

  #judged(owner: Owner, callId: string, { rule, verdict }: { rule: string; verdict: string }, atMs: number): void {
    this.#call(owner, callId, { rule, verdict });
    const day = dayOf(atMs);
    const at = key(owner.tenant, String(day), rule, verdict);
    this.#rules.set(at, { tenant: owner.tenant, day, rule, verdict, hits: (this.#rules.get(at)?.hits ?? 0) + 1 });
  }

  #cost({ tenant, agent }: Owner, model: string, { usage, costUsd }: Pick<SessionEventOf<"ModelCostBooked">, "usage" | "costUsd">, atMs: number): void {
    const day = dayOf(atMs);
    const at = key(tenant, String(day), agent, model);
    const before = this.#costs.get(at) ?? { tenant, day, agent, model, calls: 0, unpriced: 0, input_tokens: 0, output_tokens: 0, usd: 0 };
    this.#costs.set(at, {
      ...before, calls: before.calls + 1, unpriced: before.unpriced + (costUsd === null ? 1 : 0), usd: before.usd + (costUsd ?? 0),
      input_tokens: before.input_tokens + usage.inputTokens, output_tokens: before.output_tokens + usage.outputTokens,
    });
  }

  #say({ actorId, tenant }: Owner, text: string): void {
    for (const word of wordsOf(text)) this.#words.set(key(tenant, word, actorId), { tenant, word, actor_id: actorId });
  }

  /** What people wrote goes with the session; sums of days stay. */
  #forget(actorId: string): void {
    this.#deleted.add(actorId);
    for (const rows of [this.#runs, this.#steps, this.#calls, this.#words]) for (const [at, row] of rows) if (row.actor_id === actorId) rows.delete(at);
  }
}

/** Forgets what sessions said and did, but not what days cost. */
export async function dropHistoryOf(db: Kysely<Tables>, actorIds: readonly string[]): Promise<void> {
  if (actorIds.length === 0) return;
  for (const table of HISTORY) await db.deleteFrom(table).where("actor_id", "in", actorIds).execute();
}

export function dayOf(atMs: number): number { return Math.floor(atMs / DAY_MS) * DAY_MS; }

function spent({ usage, costUsd }: Pick<SessionEventOf<"ModelCostBooked">, "usage" | "costUsd">): Pick<StepRow, "input_tokens" | "output_tokens" | "cost_usd"> {
  return { input_tokens: usage.inputTokens, output_tokens: usage.outputTokens, cost_usd: costUsd };
}

function key(...parts: string[]): string { return parts.join("\u0000"); }

function merge<R extends object>(rows: Map<string, R>, at: string, empty: R, told: Partial<R>): void {
  rows.set(at, { ...(rows.get(at) ?? empty), ...told });
}

/** Always in the same order, so that two writers lock rows in the same order. */
function sorted<R extends object>(rows: Map<string, R>): (R & Record<string, string | number | null>)[] {
  return [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row as R & Record<string, string | number | null>);
}
