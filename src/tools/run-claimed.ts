/**
 * Owns: what happens under a claim, detached from the delivery: run with a renewed lock -> store the result -> publish it.
 * A tool that was given up while it ran may still settle its own question later (I6).
 */
import type { Tool } from "../agent/definition.js";
import type { ToolRequest } from "../contracts/tools.js";
import { faultPoint } from "../platform/faults.js";
import { conclude } from "./claims.js";
import type { Execution, Surroundings } from "./execute.js";
import { Lease } from "./lease.js";
import type { CallStore, Log, Secrets, WorkerClock } from "./ports.js";
import { untilDone, type Publisher } from "./publisher.js";
import { recordTry } from "./try-span.js";
import type { Workspace } from "./workspace.js";
import { resultOf, type ClaimedTry, type Outcome, type StoredResult } from "./record.js";

export interface RunDeps {
  readonly store: CallStore; readonly clock: WorkerClock; readonly log: Log; readonly secrets: Secrets; readonly publisher: Publisher;
  readonly workspace: (actorId: string) => Promise<Workspace>;
  readonly execute: (tool: Tool, request: ToolRequest, around: Surroundings, reconcileFirst: boolean) => Promise<Execution>;
  readonly settings: { readonly worker: string; readonly lockMs: number; readonly renewEveryMs: number; readonly graceMs: number; readonly reconcileTimeoutMs: number };
  /** Aborted when the worker stops its tools; `end` when it stops altogether. */
  readonly stop: AbortSignal;
  readonly end: AbortSignal;
  /** The place under the concurrency limit is free again. */
  readonly released: () => void;
  /** Work that goes on after this run. */
  readonly later: (work: Promise<void>) => void;
}

export interface ClaimedRun {
  readonly request: ToolRequest; readonly tool: Tool; readonly claim: ClaimedTry; readonly reconcile: boolean; readonly ttlSeconds: number; /** Of the request. */ readonly traceparent?: string | undefined;
}

/** Never throws. */
export async function runClaimed(deps: RunDeps, run: ClaimedRun): Promise<void> {
  const { effects, reconcilable, name } = run.tool.manifest;
  const stop = new AbortController();
  const onStop = (): void => { stop.abort(deps.stop.reason); };
  if (deps.stop.aborted) onStop();
  deps.stop.addEventListener("abort", onStop);
  const lease = new Lease(deps, run.request.callId, run.claim, {
    ...deps.settings, ttlSeconds: run.ttlSeconds,
    onLost: (why) => {
      deps.log("warn", "a lock was lost", { callId: run.request.callId, try: run.claim.try, tool: name, why });
      if (effects === "once" && reconcilable) stop.abort(new Error(`the worker lost its claim: ${why}`));
    },
  });
  try {
    faultPoint("after-claim");
    const execution = await deps.execute(run.tool, run.request, { ...deps, ...deps.settings, fence: run.claim.fence, stop: stop.signal }, run.reconcile);
    faultPoint("after-effect");
    const result = await store(deps, run, execution.outcome);
    const traceparent = result === undefined ? undefined : recordTry(run, result);
    faultPoint("after-result");
    if (effects === "once" && execution.late !== undefined) listen(deps, run, execution.late);
    if (result !== undefined) deps.later(deps.publisher.publishUntilTaken(result, deps.end, traceparent));
  } finally {
    lease.release();
    deps.stop.removeEventListener("abort", onStop);
    deps.released();
  }
}

/** Not waited for by `drain`: a tool that never ends must not keep the process. If it ends, its word still counts. */
function listen(deps: RunDeps, run: ClaimedRun, late: Promise<Outcome>): void {
  void late.then(async (outcome) => {
    if (outcome.outcome === "outcome_unknown") return;
    const result = await store(deps, run, outcome);
    if (result !== undefined) deps.later(deps.publisher.publishUntilTaken(result, deps.end));
  });
}

/** What was stored and is to be published; undefined where it does not count, or the worker ended first. Never throws. */
async function store(deps: RunDeps, run: ClaimedRun, outcome: Outcome): Promise<StoredResult | undefined> {
  const { request, claim, ttlSeconds, tool } = run;
  const result = resultOf(request, outcome, { worker: deps.settings.worker, startedAtMs: claim.claimedAtMs, endedAtMs: deps.clock.nowMs() });
  const counts = await untilDone("a result could not be stored", { ...deps, callId: request.callId },
    () => conclude(deps.store, { request, effects: tool.manifest.effects, claim, ttlSeconds }, result));
  const fields = { callId: request.callId, try: request.try, tool: tool.manifest.name, outcome: outcome.outcome, kind: outcome.failure?.kind };
  if (counts === true) {
    deps.log("info", "a tool call ended", { ...fields, ms: result.endedAtMs - result.startedAtMs });
    return result;
  }
  deps.log("warn", counts === undefined ? "a result was not stored before the worker ended" : "a result does not count: another worker has the call", fields);
  return undefined;
}
