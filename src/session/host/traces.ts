/**
 * Owns: traces of this host's sessions: which trace a run belongs to, the spans that a commit ends, and the parents that publications carry on.
 * Everything comes from the journal; what is kept in memory only saves reading it again. Without anybody who takes spans nothing is read.
 */
import type { JournalEntry, SessionEventOf } from "../../contracts/journal.js";
import { errorFields, type Logger } from "../../platform/log.js";
import { logsAbout } from "../../platform/log-context.js";
import { contentTraced, readTraceParent, recordSpan, spanIdOf, traceIdOf, traceParentText, tracing, type TraceContext } from "../../platform/telemetry/trace.js";
import type { OpenSession, Run } from "../core/state.js";
import { idsOf, runSpans, type RunFacts } from "./run-spans.js";
import type { TurnOutcome } from "./turn.js";

const MAX_RUNS = 5_000;

export interface TracesDeps {
  readonly entries: (actorId: string, fromRev: number, toRev: number) => Promise<JournalEntry[]>;
  /** Provider and name of the model that an agent calls. */
  readonly modelOf: (agent: string, version?: string) => { readonly provider: string; readonly name: string };
  readonly nowMs: () => number;
  readonly logger: Logger;
}

/** A run, and where its event is; left out where only the journal knows. */
export type TracedRun = Pick<Run, "runId" | "key"> & Partial<Pick<Run, "eventRev">>;
type Started = Pick<Run, "runId" | "key" | "eventRev">;
/** What is known of a run's trace. */
interface Known { readonly root: TraceContext & { readonly parentId: string | undefined }; stretchId?: string | undefined }

export class Traces {
  readonly #runs = new Map<string, Known>();

  constructor(private readonly deps: TracesDeps) {}

  /** Says what a commit has ended. `cause`: the trace parent of the delivery behind it. Never throws. */
  async observe(outcome: TurnOutcome, turn: { readonly startedAtMs: number; readonly cause: string | undefined }): Promise<void> {
    const { entry, after } = outcome;
    if (!tracing() || entry === undefined || after.status === "NEW") return;
    try {
      const run = runOf(outcome, entry);
      if (run !== undefined) await this.#observe(outcome, entry, { ...turn, run, after });
    } catch (error) {
      this.deps.logger.warn({ actorId: entry.actorId, ...errorFields(error) }, "a commit is missing in its trace");
    }
  }

  /** Trace parent for what a run's work sends out; undefined where the run is not traced. */
  async parentOf(state: OpenSession, run: TracedRun, about: { readonly callId: string } | "event" | "stretch"): Promise<string | undefined> {
    if (!tracing()) return undefined;
    const known = this.#runs.get(run.runId) ?? await this.#lookUp(state, run);
    if (known?.root.sampled !== true) return undefined;
    const { traceId, parentId } = known.root;
    const spanId = about === "event" ? parentId : about === "stretch" ? known.stretchId ?? parentId : spanIdOf("tool", about.callId);
    return traceParentText({ traceId, sampled: true, spanId: spanId ?? spanIdOf("run", run.runId, 1) });
  }

  async #observe(outcome: TurnOutcome, entry: JournalEntry, about: { readonly startedAtMs: number; readonly cause: string | undefined; readonly run: Started; readonly after: OpenSession }): Promise<void> {
    const { run, after, startedAtMs, cause } = about;
    const known = await this.#known(entry.actorId, run, entry);
    const { root } = known;
    logsAbout([run.runId, after.actorId], { tenant: after.tenant, sessionId: after.sessionId, runId: run.runId, traceId: root.traceId });
    if (!root.sampled) return;
    const { provider, name: model } = this.deps.modelOf(after.agent, after.agentVersion);
    const facts: RunFacts = {
      runId: run.runId, traceId: root.traceId, parentId: root.parentId, provider, model, content: contentTraced(),
      tenant: after.tenant, sessionId: after.sessionId, agent: after.agent, agentVersion: after.agentVersion,
    };
    const { ended, stretchId } = runSpans(facts, await this.#entriesOf(outcome, entry));
    known.stretchId = stretchId;
    for (const span of ended) recordSpan(span);
    const caused = readTraceParent(cause);
    const { traceId } = root;
    recordSpan({
      name: `turn ${entry.command}`, kind: caused === undefined ? "internal" : "consumer", traceId, spanId: spanIdOf("turn", entry.commitId), startMs: startedAtMs, endMs: this.deps.nowMs(),
      parentId: caused?.traceId === traceId ? caused.spanId : answeredBy(entry, run.runId) ?? stretchId ?? root.parentId,
      attributes: { ...idsOf({ tenant: after.tenant, sessionId: after.sessionId, runId: run.runId }), "docket.command": entry.command, "docket.rev": entry.rev, "docket.host": entry.host, "docket.status": after.status, "openinference.span.kind": "CHAIN" },
    });
  }

  /** From the entry that started the run to this one. */
  async #entriesOf({ before }: TurnOutcome, entry: JournalEntry): Promise<JournalEntry[]> {
    const fromRev = before.status !== "NEW" && "run" in before ? before.window.rounds.at(-1)?.rev ?? entry.rev : entry.rev;
    return fromRev >= entry.rev ? [entry] : [...await this.deps.entries(entry.actorId, fromRev, entry.rev - 1), entry];
  }

  /** A run that has ended is found by the round that it began in the prompt window. */
  async #lookUp(state: OpenSession, { runId, key, eventRev }: TracedRun): Promise<Known | undefined> {
    if (eventRev !== undefined) return await this.#known(state.actorId, { runId, key, eventRev });
    const [last, before] = state.window.rounds.slice(-2).reverse();
    for (const rev of [last?.rev, before?.rev]) {
      if (rev === undefined) continue;
      const started = (await this.deps.entries(state.actorId, rev, rev)).flatMap(({ events }) => events).find((event) => event.type === "RunStarted" && event.runId === runId);
      if (started?.type === "RunStarted") return await this.#known(state.actorId, started);
    }
    return undefined;
  }

  /** The event's own trace, or one made of the run's id. */
  async #known(actorId: string, { runId, key, eventRev }: Started, entry?: JournalEntry): Promise<Known> {
    const kept = this.#runs.get(runId);
    if (kept !== undefined) return kept;
    const entries = entry?.rev === eventRev ? [entry] : await this.deps.entries(actorId, eventRev, eventRev);
    const received = entries.flatMap(({ events }) => events).find((event): event is SessionEventOf<"EventReceived"> => event.type === "EventReceived" && event.key === key);
    const brought = readTraceParent(received?.traceparent);
    const known: Known = { root: brought === undefined ? { traceId: traceIdOf(runId), spanId: "", parentId: undefined, sampled: true } : { ...brought, parentId: brought.spanId } };
    if (this.#runs.size >= MAX_RUNS) this.#runs.clear();
    this.#runs.set(runId, known);
    return known;
  }
}

/** The run that a commit belongs to. */
function runOf({ before, after }: TurnOutcome, entry: JournalEntry): Started | undefined {
  if ("run" in before) return before.run;
  if ("run" in after) return after.run;
  const started = entry.events.find((event) => event.type === "RunStarted");
  return started?.type === "RunStarted" ? started : undefined;
}

/** A turn that records what a model call came to is caused by that call. */
function answeredBy(entry: JournalEntry, runId: string): string | undefined {
  if (entry.command !== "RecordAnswer" && entry.command !== "RecordModelFailure") return undefined;
  const answer = entry.events.find((event) => event.type === "ModelAnswered" || event.type === "ModelCallFailed");
  return answer?.type === "ModelAnswered" || answer?.type === "ModelCallFailed" ? spanIdOf("chat", runId, answer.step, answer.attempt) : undefined;
}
