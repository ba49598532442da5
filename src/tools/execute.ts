/**
 * Owns: one run of one tool: validation, context, deadline, and what its ending proves. Does not know the store,
 * the broker or other workers. Never throws.
 *
 * At the deadline (or when the worker stops) the signal is aborted; what the tool says within the grace period counts. Then
 * it is given up: `none` and `idempotent` have failed, `once` is unknown (I6), and a word that comes later still settles it.
 */
import type { Tool, ToolContext } from "../agent/definition.js";
import { ToolFailure } from "../agent/tool-failure.js";
import type { ToolRequest } from "../contracts/tools.js";
import { messageText, outputText } from "./output.js";
import type { Log, Secrets, WorkerClock } from "./ports.js";
import { askReconcile } from "./reconcile.js";
import { failed, notStarted, unknown, type Outcome } from "./record.js";
import type { Workspace } from "./workspace.js";
import { validateArgs } from "./validate.js";

export interface Surroundings {
  readonly clock: WorkerClock;
  readonly secrets: Secrets;
  readonly log: Log;
  /** Opens the session's folder for a run. */
  readonly workspace: (actorId: string) => Promise<Workspace>;
  readonly graceMs: number;
  readonly reconcileTimeoutMs: number;
  /** Of the claim under which it runs. */
  readonly fence: number;
  /** Aborted when the worker stops or has lost its lock; the reason says which. */
  readonly stop: AbortSignal;
}

export interface Execution {
  readonly outcome: Outcome;
  /** Set when the tool was given up while it still ran: what it says in the end. */
  readonly late?: Promise<Outcome>;
}

/** `reconcileFirst`: an earlier run died; ask whether it happened before running. */
export async function execute(tool: Tool, request: ToolRequest, around: Surroundings, reconcileFirst: boolean): Promise<Execution> {
  const validated = await validateArgs(tool, request.args);
  if (!validated.ok) return { outcome: failed("refused", validated.message) };
  let workspace: Workspace;
  try {
    workspace = await around.workspace(request.actorId);
  } catch (error) {
    return { outcome: reconcileFirst ? unknown(`the workspace could not be made: ${messageText(error, new Map())}`) : notStarted(`the workspace could not be made: ${messageText(error, new Map())}`) };
  }
  const closed = (): Promise<void> => workspace.close().catch((error: unknown) => { around.log("warn", "the end of a workspace's use was not noted", { actorId: request.actorId, error: messageText(error, new Map()) }); });
  try {
    const execution = await new Run(tool, request, around, validated.args, workspace.path).conduct(reconcileFirst);
    // A tool that was given up is still in it.
    if (execution.late === undefined) await closed();
    else void execution.late.finally(closed);
    return execution;
  } catch (error) {
    await closed();
    throw error;
  }
}

type Ending = { readonly type: "returned"; readonly value: unknown } | { readonly type: "threw"; readonly error: unknown };

class Run {
  /** Values of secrets that the tool has read; cut from everything it says. */
  readonly #secrets = new Map<string, string>();
  readonly #abort = new AbortController();
  #abortReason: "timeout" | "stop" | undefined;

  constructor(
    private readonly tool: Tool, private readonly request: ToolRequest, private readonly around: Surroundings,
    private readonly args: unknown, private readonly workspace: string,
  ) {}

  async conduct(reconcileFirst: boolean): Promise<Execution> {
    if (reconcileFirst) {
      const answer = await this.#reconcile();
      if (answer.happened === true) return { outcome: this.#succeeded(answer.output) };
      if (answer.happened === "unknown") return { outcome: unknown("the worker died while it ran the tool, and the tool cannot tell whether it took effect") };
    }
    const { clock, stop } = this.around;
    const deadlineInMs = Math.min(this.request.deadlineAtMs - clock.nowMs(), this.tool.manifest.timeoutMs);
    if (deadlineInMs <= 0) return { outcome: notStarted("the deadline had passed before the tool was started") };
    if (stop.aborted) return { outcome: notStarted(messageText(stop.reason, this.#secrets)) };
    return this.#run(deadlineInMs);
  }

  async #run(deadlineInMs: number): Promise<Execution> {
    const { clock, stop, graceMs } = this.around;
    const ending = this.#start();
    let cancelGrace: () => void = () => undefined;
    const givenUp = new Promise<"given up">((resolve) => {
      this.#abort.signal.addEventListener("abort", () => { cancelGrace = clock.after(graceMs, () => { resolve("given up"); }); }, { once: true });
    });
    const cancelDeadline = clock.after(deadlineInMs, () => { this.#stopTool("timeout", new Error(`the deadline of ${String(deadlineInMs)} ms has passed`)); });
    const onStop = (): void => { this.#stopTool("stop", stop.reason); };
    stop.addEventListener("abort", onStop, { once: true });
    const first = await Promise.race([ending, givenUp]);
    cancelDeadline();
    cancelGrace();
    stop.removeEventListener("abort", onStop);
    if (first !== "given up") return { outcome: await this.#judge(first) };
    return { outcome: await this.#judgeSilence(), late: ending.then((late) => this.#judge(late)) };
  }

  #stopTool(reason: "timeout" | "stop", error: unknown): void {
    if (this.#abortReason !== undefined) return;
    this.#abortReason = reason;
    this.#abort.abort(error);
  }

  #start(): Promise<Ending> {
    const context = this.#context(this.#abort.signal);
    return Promise.resolve().then(() => this.tool.run(this.args, context)).then(
      (value): Ending => ({ type: "returned", value }),
      (error: unknown): Ending => ({ type: "threw", error }),
    );
  }

  async #judge(ending: Ending): Promise<Outcome> {
    if (ending.type === "returned") return this.#succeeded(ending.value);
    const { error } = ending;
    const message = messageText(error, this.#secrets);
    if (ToolFailure.is(error)) return failureOutcome(error, message);
    const repeatable = this.tool.manifest.effects !== "once";
    if (this.#abortReason === "timeout" && repeatable) return failed("timeout", `the tool did not finish in time: ${message}`);
    if (repeatable) return failed("transient", message);
    // It has ended, so what reconcile sees now is final.
    const answer = await this.#reconcile();
    if (answer.happened === true) return this.#succeeded(answer.output);
    if (answer.happened === false) return failed("transient", message);
    return unknown(`the tool failed without saying whether it took effect: ${message}`);
  }

  /** Given up while it runs: only "it happened" is proof, since what has not happened yet still may. */
  async #judgeSilence(): Promise<Outcome> {
    const why = this.#abortReason === "timeout" ? "the tool did not finish before its deadline" : messageText(this.around.stop.reason, this.#secrets);
    if (this.tool.manifest.effects !== "once") return failed(this.#abortReason === "timeout" ? "timeout" : "transient", why);
    const answer = await this.#reconcile();
    return answer.happened === true ? this.#succeeded(answer.output) : unknown(`${why}; whether it took effect is not known`);
  }

  #reconcile(): ReturnType<typeof askReconcile> {
    return askReconcile(this.tool, this.args, (signal) => this.#context(signal), { clock: this.around.clock, timeoutMs: this.around.reconcileTimeoutMs });
  }

  #succeeded(value: unknown): Outcome {
    return { outcome: "succeeded", ...outputText(value, this.tool.manifest.outputCapBytes, this.#secrets) };
  }

  #context(signal: AbortSignal): ToolContext {
    const { tenant, sessionId, runId, callId, idempotencyKey, args } = this.request;
    const { log, fence } = this.around;
    return {
      tenant, sessionId, runId, callId, idempotencyKey, try: this.request.try, fence, signal, workspace: this.workspace, argsText: args,
      secret: (name) => {
        const value = this.around.secrets.find(name);
        if (value === undefined) throw ToolFailure.permanent(`the secret "${name}" is not configured for the tool worker`);
        this.#secrets.set(name, value);
        return value;
      },
      log: (message, fields) => { log("info", messageText(message, this.#secrets), { ...fields, tool: this.tool.manifest.name, callId, try: this.request.try }); },
    };
  }
}

function failureOutcome(failure: ToolFailure, message: string): Outcome {
  switch (failure.reason) {
    case "transient": return failed("transient", message, failure.retryAfterMs);
    case "permanent": return failed("permanent", message);
    case "business": return failed("business", message);
    case "not_started": return notStarted(message);
    case "outcome_unknown": return unknown(message);
  }
}
