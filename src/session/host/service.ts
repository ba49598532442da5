/**
 * Owns: the session host as a whole: deliveries, model outcomes, ticks and reads become turns, and turns' effects
 * are run. One per process. The actor's methods and the topic handlers are thin shells around it.
 */
import type { Envelope } from "../../contracts/cloudevent.js";
import type { JournalEntry } from "../../contracts/journal.js";
import type { SessionCompact } from "../../contracts/messages.js";
import { WORKSPACE_RELEASE, WORKSPACE_RELEASED, type WorkspaceReleased } from "../../contracts/tools.js";
import { Problem } from "../../contracts/problems.js";
import type { Clock } from "../../platform/clock.js";
import { errorFields, type Logger } from "../../platform/log.js";
import { tracing } from "../../platform/telemetry/trace.js";
import type { Model } from "../../model/model.js";
import type { SessionCommand } from "../core/command.js";
import { guardIsOver } from "../core/rest.js";
import type { OpenSession, SessionState } from "../core/state.js";
import { definitionOf, type Catalog } from "./agents.js";
import { PACE_MS, type Pace } from "./announcer.js";
import { findCut } from "./compaction.js";
import { DeadLetters } from "./dead-letters.js";
import { Effects } from "./effects.js";
import { logCommit } from "./commit-log.js";
import { guardOf, Guards, nameOf } from "./guard.js";
import { commandBase, takeNext, type CommandSource } from "./intake.js";
import { factsOf, judgeAnswer } from "./judging.js";
import { Measures } from "./measures.js";
import { ModelRunner, type ModelReport } from "./model-runner.js";
import type { Bus, DecisionVerifier, GrantSigner, Heartbeats, Reminders, ResultVerifier, SessionStore } from "./ports.js";
import { Reads } from "./reads.js";
import { Traces } from "./traces.js";
import { Turns, type BuildCommand, type TurnContext, type TurnOutcome } from "./turn.js";

export interface SessionServiceDeps {
  readonly host: string;
  readonly store: SessionStore;
  readonly bus: Bus;
  readonly reminders: Reminders;
  readonly heartbeats: Heartbeats;
  readonly grantSigner: GrantSigner;
  readonly decisions: DecisionVerifier;
  readonly results: ResultVerifier;
  readonly catalog: Catalog;
  readonly resolveModel: (name: string) => { readonly model: Model; readonly name: string };
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  /** How often readers are told of commits, at most. */
  readonly pace?: Pace;
}

const MAX_REARMED = 10_000;
/** For a worker that is away meanwhile. */
const RELEASE_TTL_S = 7 * 24 * 3600;
const REPORT_RETRY_MS = [100, 500, 1000, 2000, 5000];

export class SessionService {
  readonly turns: Turns;
  readonly reads: Reads;
  readonly deadLetters: DeadLetters;
  readonly source: CommandSource;
  readonly #effects: Effects;
  readonly #guards: Guards;
  readonly #runner: ModelRunner;
  readonly #traces: Traces;
  readonly #measures: Measures;
  /** Sessions whose guard's tick is being handled: the next one need not pile up behind a store that is down. */
  readonly #ticking = new Set<string>();
  readonly #erasing = new Set<string>();
  readonly #compacting = new Set<string>();
  readonly #rearmed = new Set<string>();
  #stopped = false;

  constructor(readonly deps: SessionServiceDeps) {
    const { store, clock, logger, host, catalog, bus, reminders } = deps;
    this.source = { host, random: deps.random, catalog, reserveUsd: (agent, version, chars) => this.#reserveUsd(agent, version, chars) };
    this.#guards = new Guards(reminders, logger, async (actorId, generation) => guardIsOver(await this.turns.read(actorId), generation));
    this.turns = new Turns({
      store, clock, logger, host,
      armGuard: (actorId, plan) => this.#guards.arm(actorId, plan),
      published: (actorId) => this.#effects.published(actorId),
      heal: (state, atMs, findings) => ({ ...commandBase(this.source, { atMs }, agentOf(state)), type: "Heal", ...findings, reserveUsd: this.reserveForNext(state) }),
      healed: (outcome) => this.#committed(outcome, { startedAtMs: clock.nowMs(), cause: undefined }),
    });
    this.reads = new Reads(this.turns, store);
    this.deadLetters = new DeadLetters(bus, clock);
    const entries = (actorId: string, from: number, to: number): Promise<JournalEntry[]> => this.turns.readEntries(actorId, from, to);
    const modelOf = (agent: string, version?: string): { provider: string; name: string } => { const { model, name } = deps.resolveModel(definitionOf(catalog, agent, version)?.model ?? catalog.defaultModel); return { provider: model.provider, name }; };
    this.#traces = new Traces({ entries, modelOf, nowMs: () => clock.nowMs(), logger });
    this.#measures = new Measures({ entries, agents: catalog.agents.keys(), isTool: (name) => catalog.manifests.has(name), modelOf, nowMs: () => clock.nowMs(), logger });
    this.#runner = new ModelRunner({ catalog, resolve: deps.resolveModel, bus, logger, entries, report: (actorId, report) => this.#report(actorId, report) });
    this.#effects = new Effects({
      host, bus, traces: this.#traces, guards: this.#guards, signer: deps.grantSigner, runner: this.#runner, clock, logger, pace: deps.pace ?? PACE_MS, entries, readBlob: (key) => store.readBlob(key),
      tick: (actorId) => this.tick(actorId),
      takeNext: async (actorId) => { await this.run(actorId, takeNext(this.source)); },
    });
  }

  /** One turn and its effects. Publications have been tried when it resolves. `cause`: trace parent of the delivery behind it. Throws Problem (retryable). */
  async run(actorId: string, build: BuildCommand, cause?: string): Promise<TurnOutcome> {
    const startedAtMs = this.deps.clock.nowMs();
    const outcome = await this.turns.execute(actorId, build);
    await this.#committed(outcome, { startedAtMs, cause });
    this.#measures.turn(outcome, startedAtMs);
    return outcome;
  }

  async #committed(outcome: TurnOutcome, turn: { readonly startedAtMs: number; readonly cause: string | undefined }): Promise<void> {
    logCommit(this.deps.logger, outcome);
    if (tracing()) await this.#traces.observe(outcome, turn);
    this.#measures.commit(outcome);
    await this.#effects.run(outcome);
  }

  /** Whatever is due. Called by the guard, by nudges and by wake-ups. */
  async tick(actorId: string, guardGeneration?: number): Promise<SessionState> {
    const outcome = await this.run(actorId, async (context) => {
      const { state } = context;
      if (state.status === "NEW") return undefined;
      return { ...this.base(context), type: "Tick", deadHosts: await this.#deadHosts(state), reserveUsd: this.reserveForNext(state), published: this.#effects.published(actorId), ...(guardGeneration === undefined ? {} : { guardGeneration }) };
    });
    if (outcome.after.status !== "NEW" && (outcome.after.erase?.dueAtMs ?? Infinity) <= this.deps.clock.nowMs()) void this.#erase(outcome.after);
    if (outcome.after.status === "IDLE" && outcome.after.mailbox.length > 0) return (await this.run(actorId, takeNext(this.source))).after;
    return outcome.after;
  }

  /**
   * Shortens the journal where the console's request allows it. Beside the turns, and only read until it is decided: what moves the
   * session meanwhile moves it out of reach. A crash loses nothing but the attempt, and after the commit the erasing is the guard's.
   */
  async compact(actorId: string, ask: SessionCompact): Promise<void> {
    if (this.#compacting.has(actorId) || this.#stopped) return;
    this.#compacting.add(actorId);
    try {
      const state = await this.turns.read(actorId);
      const cut = await findCut(state, { ...ask, nowMs: this.deps.clock.nowMs() }, (fromRev, toRev) => this.deps.store.readEntries(actorId, fromRev, toRev));
      if (cut === undefined) return;
      const { entry } = await this.run(actorId, (context) => ({ ...this.base(context), type: "Compact", ...cut }));
      if (entry !== undefined) this.deps.logger.info({ actorId, toRev: cut.toRev, rev: entry.rev }, "a journal was compacted");
    } catch (error) {
      this.deps.logger.warn({ actorId, ...errorFields(error) }, "a journal was not compacted; the console asks again");
    } finally {
      this.#compacting.delete(actorId);
    }
  }

  /** The worker may remove a deleted session's workspace, unless a new life has used it since. Throws Problem `broker_unavailable`. */
  async releaseWorkspace({ tenant, sessionId, actorId, rev, updatedAtMs: deletedAtMs }: OpenSession): Promise<void> {
    const iat = Math.floor(this.deps.clock.nowMs() / 1000);
    const proof = await this.deps.grantSigner.sign({ iss: "docket/sessions", aud: "docket/tools", sub: actorId, jti: `release-${String(rev)}`, tool: WORKSPACE_RELEASE, digest: String(deletedAtMs), iat, exp: iat + RELEASE_TTL_S });
    const data: WorkspaceReleased = { tenant, sessionId, actorId, deletedAtMs, proof };
    await this.deps.bus.publish("toolRequests", { specversion: "1.0", id: `${actorId}:release:${String(rev)}:${String(iat)}`, source: "docket://sessions", type: WORKSPACE_RELEASED, subject: sessionId, tenant, partitionkey: actorId, data: JSON.stringify(data) });
  }

  /** Beside the turns, and from the start again where it was cut off: what is gone already costs a read. */
  async #erase(state: OpenSession): Promise<void> {
    const { actorId, erase } = state;
    if (erase === undefined || this.#erasing.has(actorId)) return;
    this.#erasing.add(actorId);
    try {
      await this.deps.store.erase(actorId, erase.fromRev, erase.toRev);
      if (state.status === "DELETED") await this.releaseWorkspace(state); // again: the first one may have found it in use, or nobody
      await this.run(actorId, (context) => ({ ...this.base(context), type: "RecordErased", toRev: erase.toRev }));
    } catch (error) {
      this.deps.logger.warn({ actorId, ...errorFields(error) }, "what a session no longer needs of its journal was not erased; the next tick goes on");
    } finally {
      this.#erasing.delete(actorId);
    }
  }

  /**
   * The console found the session overdue. Its guard may be lost (a wiped scheduler), so it is registered again; or the
   * console has missed the last entry (a host that died after its commit), which no later one would show it: it is said again.
   * Or its database is new, and does not know what is to be shown of an open question.
   */
  async nudge(actorId: string): Promise<void> {
    const after = await this.tick(actorId);
    if (after.status === "NEW") return;
    if (after.guard.armed) await this.#rearm(actorId, after.guard);
    await this.#effects.announceHead(after);
    await this.#effects.askAgain(after);
  }

  /** Once for each guard. A turn that runs meanwhile may release the guard, and remove its reminder before this one registers it. */
  async #rearm(actorId: string, { generation, periodMs }: OpenSession["guard"]): Promise<void> {
    const guard = `${actorId} ${String(generation)}`;
    if (this.#rearmed.has(guard)) return;
    if (this.#rearmed.size >= MAX_REARMED) this.#rearmed.clear();
    this.#rearmed.add(guard);
    await this.#guards.arm(actorId, { generation, dueMs: periodMs, periodMs, again: true });
    if (guardIsOver(await this.turns.read(actorId), generation)) this.#guards.release(actorId, generation, nameOf({ generation, again: true }));
  }

  /** A guard's reminder fired. An older generation removes itself. Never throws (DESIGN 3: handlers are idempotent and never throw). */
  async onReminder(actorId: string, data: string): Promise<void> {
    const guard = guardOf(data);
    if (guard === undefined || this.#ticking.has(actorId)) return;
    const { generation, name } = guard;
    this.#ticking.add(actorId);
    try {
      const after = await this.tick(actorId, generation);
      // Left over from a commit that never came (its event was a repetition), or from a release whose removal failed.
      // Looked at after a turn, so that a commit which is just being made with this reminder is not robbed of it.
      const stale = after.status === "NEW" || after.guard.generation !== generation || !after.guard.armed;
      if (stale) this.#guards.release(actorId, generation, name);
      if (stale && after.status !== "NEW") await this.#effects.announceHead(after, "foreign");
    } catch (error) {
      this.deps.logger.warn({ actorId, ...errorFields(error) }, "guard tick failed; the next one tries again");
    } finally {
      this.#ticking.delete(actorId);
    }
  }

  /** Constant parts of a command for the session at hand. */
  base(context: TurnContext): ReturnType<typeof commandBase> {
    return commandBase(this.source, context, agentOf(context.state));
  }

  /** Sends an envelope; used for receipts. */
  async publish(channel: Parameters<Bus["publish"]>[0], envelope: Envelope): Promise<void> {
    await this.deps.bus.publish(channel, envelope);
  }

  reserveForNext(state: SessionState): number {
    return state.status === "NEW" ? 0 : this.#reserveUsd(state.agent, state.agentVersion, state.window.rounds.reduce((sum, round) => sum + round.bytes, 0));
  }

  /** Ends model calls and timers; what is unfinished is the guards'. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#guards.stop();
    this.#runner.stop();
    await this.#effects.stop();
  }

  /** The outcome of a model call is worth money: it is kept trying until committed, or the process ends. */
  async #report(actorId: string, report: ModelReport): Promise<void> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        await this.run(actorId, (context) => this.#reportCommand(context, report));
        return;
      } catch (error) {
        if (this.#stopped || (error instanceof Problem && !error.retryable)) throw error;
        this.deps.logger.warn({ actorId, runId: report.runId, attempt, ...errorFields(error) }, "recording a model outcome failed; trying again");
        await delay(REPORT_RETRY_MS[Math.min(attempt, REPORT_RETRY_MS.length - 1)] ?? 5000);
      }
    }
  }

  async #reportCommand(context: TurnContext, report: ModelReport): Promise<SessionCommand | undefined> {
    const { state } = context;
    if (state.status === "NEW") return undefined;
    const call = { runId: report.runId, step: report.step, attempt: report.attempt };
    if (!report.ok) {
      const { kind, message, retryAfterMs, partialText, usage } = report.error;
      // Aborted by our own shutdown: say nothing, so that the guard starts the call on a living host.
      if (kind === "aborted" && this.#stopped) return undefined;
      return { ...this.base(context), ...call, type: "RecordModelFailure", kind, message, ...(retryAfterMs === undefined ? {} : { retryAfterMs }), ...(partialText === "" ? {} : { partialText }), ...(usage === undefined ? {} : { usage, costUsd: null }) };
    }
    const { model, text, stop, usage, costUsd, carry } = report.answer;
    const run = "run" in state && state.run.runId === report.runId ? state.run : undefined;
    const calls = run === undefined ? [] : judgeAnswer(this.deps.catalog, state, run, { step: report.step, answer: report.answer, facts: factsOf(state, run, await principalOfRun(context)) });
    return { ...this.base(context), ...call, type: "RecordAnswer", model, text, stop, calls, usage, costUsd, ...(carry === undefined ? {} : { carry }), reserveUsd: this.reserveForNext(state) };
  }

  async #deadHosts(state: SessionState): Promise<string[]> {
    if (!("model" in state) || state.model.phase !== "running") return [];
    const { host, step, attempt } = state.model;
    if (host === this.deps.host) return this.#runner.isRunning(state.actorId, { runId: state.run.runId, step, attempt }) || this.deps.clock.nowMs() - state.model.startedAtMs < 5000 ? [] : [host];
    return await this.deps.heartbeats.isAlive(host) ? [] : [host];
  }

  #reserveUsd(agentName: string, version: string | undefined, inputChars: number): number {
    const agent = definitionOf(this.deps.catalog, agentName, version);
    if (agent === undefined) return 0;
    const { model, name } = this.deps.resolveModel(agent.model ?? this.deps.catalog.defaultModel);
    return model.reserveUsd({ model: name, messages: [{ role: "user", text: " ".repeat(inputChars) }], maxOutputTokens: agent.maxOutputTokens ?? 4096, instructions: agent.instructions });
  }
}

function agentOf(state: SessionState): { readonly agent: string; readonly agentVersion?: string } { return state.status === "NEW" ? { agent: "" } : state; }

/** Who caused the open run. */
export async function principalOfRun(context: TurnContext): Promise<Parameters<typeof factsOf>[2]> {
  const { state } = context;
  if (!("run" in state)) return undefined;
  const { eventRev, key } = state.run;
  for (const entry of await context.entries(eventRev, eventRev)) {
    for (const event of entry.events) if (event.type === "EventReceived" && event.key === key) return event.principal;
  }
  return undefined;
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => { setTimeout(resolve, ms); });
}
