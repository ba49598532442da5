/**
 * Owns: model calls beside the actor: one per session, abortable, outside any turn (DESIGN 3). The outcome returns as
 * a command. Nothing is retried here: the session decides, and its guard starts a call again whose host died.
 *
 * I2, I11: the call was committed (ModelCallStarted) and its budget reserved before `start` is called.
 */
import type { JournalEntry } from "../../contracts/journal.js";
import { LIVE_DELTA, type LiveDelta } from "../../contracts/messages.js";
import { errorFields, type Logger } from "../../platform/log.js";
import { ModelError, type Model, type ModelAnswer, type ModelRequest } from "../../model/model.js";
import type { ToolManifest } from "../../contracts/tools.js";
import { transcriptOf } from "../core/transcript.js";
import type { OpenSession } from "../core/state.js";
import { definitionOf, type Catalog } from "./agents.js";
import type { Bus } from "./ports.js";

const DELTA_INTERVAL_MS = 60;

export type ModelReport =
  | { readonly ok: true; readonly runId: string; readonly step: number; readonly attempt: number; readonly answer: ModelAnswer }
  | { readonly ok: false; readonly runId: string; readonly step: number; readonly attempt: number; readonly error: ModelError };

export interface ModelRunnerDeps {
  readonly catalog: Catalog;
  readonly resolve: (name: string) => { readonly model: Model; readonly name: string };
  readonly bus: Bus;
  readonly logger: Logger;
  readonly entries: (actorId: string, fromRev: number, toRev: number) => Promise<JournalEntry[]>;
  /** Takes the outcome; keeps trying until it is committed or the process ends. */
  readonly report: (actorId: string, report: ModelReport) => Promise<void>;
}

interface Running { readonly runId: string; readonly step: number; readonly attempt: number; readonly abort: AbortController; done: Promise<void> }

export class ModelRunner {
  readonly #running = new Map<string, Running>();

  constructor(private readonly deps: ModelRunnerDeps) {}

  /** True while this process runs exactly this call. */
  isRunning(actorId: string, call: { runId: string; step: number; attempt: number }): boolean {
    const running = this.#running.get(actorId);
    return running?.runId === call.runId && running.step === call.step && running.attempt === call.attempt;
  }

  /** Starts the committed call of `state`. Returns at once. */
  start(state: OpenSession, call: { runId: string; step: number; attempt: number }): void {
    if (this.isRunning(state.actorId, call)) return;
    void this.abort(state.actorId);
    const running: Running = { ...call, abort: new AbortController(), done: Promise.resolve() };
    this.#running.set(state.actorId, running);
    running.done = this.#run(state, running).finally(() => {
      if (this.#running.get(state.actorId) === running) this.#running.delete(state.actorId);
    });
  }

  /** Aborts whatever call this process runs for the session; resolves when what it had said is recorded. */
  async abort(actorId: string): Promise<void> {
    const running = this.#running.get(actorId);
    running?.abort.abort();
    await running?.done;
  }

  /** Aborts all calls: their sessions' guards start them again elsewhere. */
  stop(): void {
    for (const running of this.#running.values()) running.abort.abort();
  }

  async #run(state: OpenSession, running: Running): Promise<void> {
    const { runId, step, attempt } = running;
    let report: ModelReport;
    try {
      report = { ok: true, runId, step, attempt, answer: await this.#call(state, running) };
    } catch (error) {
      const failure = error instanceof ModelError ? error : new ModelError("not_sent", `the call could not be made: ${error instanceof Error ? error.message : String(error)}`, { retryAfterMs: 2000, cause: error });
      report = { ok: false, runId, step, attempt, error: failure };
    }
    try {
      await this.deps.report(state.actorId, report);
    } catch (error) {
      this.deps.logger.error({ actorId: state.actorId, runId, ...errorFields(error) }, "a model outcome was not recorded; the guard will start the call again");
    }
  }

  async #call(state: OpenSession, running: Running): Promise<ModelAnswer> {
    const { catalog } = this.deps;
    const agent = definitionOf(catalog, state.agent, state.agentVersion);
    if (agent === undefined) throw new ModelError("permanent", `no agent named ${state.agent} is installed on this host`);
    const entries = await this.deps.entries(state.actorId, state.window.fromRev, state.rev);
    const { model, name } = this.deps.resolve(agent.model ?? catalog.defaultModel);
    const deltas = new DeltaPublisher(state.actorId, running, this.deps.bus, this.deps.logger);
    const request: ModelRequest = {
      model: name, instructions: agent.instructions, tools: toolsOf(catalog, agent.tools), messages: transcriptOf(entries, state.window.fromRev),
      maxOutputTokens: agent.maxOutputTokens ?? 4096, signal: running.abort.signal, onDelta: (text) => { deltas.push(text); },
      context: { sessionId: state.sessionId, runId: running.runId, step: running.step, attempt: running.attempt },
    };
    try {
      return await model.answer(request);
    } finally {
      deltas.flush();
    }
  }
}

function toolsOf(catalog: Catalog, names: readonly string[]): ModelRequest["tools"] {
  return names.map((name) => catalog.manifests.get(name)).filter((manifest): manifest is ToolManifest => manifest !== undefined)
    .map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
}

/** Coalesces deltas, so that a token does not cost a publish. Lossy by contract: the journal holds the whole answer. */
class DeltaPublisher {
  #buffer = "";
  #index = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly actorId: string, private readonly call: { runId: string; step: number; attempt: number }, private readonly bus: Bus, private readonly logger: Logger) {}

  push(text: string): void {
    this.#buffer += text;
    this.#timer ??= setTimeout(() => { this.flush(); }, DELTA_INTERVAL_MS);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#buffer === "") return;
    const { runId, step, attempt } = this.call;
    const delta: LiveDelta = { actorId: this.actorId, runId, step, attempt, index: this.#index, text: this.#buffer };
    this.#buffer = "";
    this.#index += 1;
    const id = `${runId}:${String(step)}:${String(attempt)}:${String(delta.index)}`;
    this.bus.publish("live", { specversion: "1.0", id, source: "docket://sessions/live", type: LIVE_DELTA, partitionkey: this.actorId, data: JSON.stringify(delta) })
      .catch((error: unknown) => { this.logger.debug(errorFields(error), "a live delta was lost"); });
  }
}
