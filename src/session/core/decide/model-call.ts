/** Owns: model calls that start late, fail, get lost or come back after they were given up. */
import { plural } from "../../../contracts/plural.js";
import type { CommandOf, Decision } from "../command.js";
import { backoffMs } from "../backoff.js";
import { MAX_LOST_ATTEMPTS, MAX_MESSAGE, MAX_MODEL_ATTEMPTS } from "../limits.js";
import type { ModelCall, Run, SessionState } from "../state.js";
import { isUnbooked } from "./answer.js";
import { clip, Draft, given } from "./draft.js";
import { endRun } from "./ending.js";
import { escalateRun } from "./escalate.js";
import { startModel } from "./progress.js";

type Failure = CommandOf<"RecordModelFailure">;
type Running = Extract<ModelCall, { phase: "running" }>;

/** The host's timer for a waiting call fired. Not due, or not this one: nothing happens. */
export function startModelCall(state: SessionState, command: CommandOf<"StartModelCall">): Decision {
  const draft = new Draft(state, command);
  const { model } = draft;
  if (model?.phase === "waiting" && model.step === command.step && model.attempt === command.attempt) startDue(draft, command.reserveUsd);
  return draft.accept();
}

export function startDue(draft: Draft, reserveUsd: number): void {
  const { run, model } = draft;
  if (run !== undefined && model?.phase === "waiting" && model.dueAtMs <= draft.atMs) startModel(draft, run, reserveUsd);
}

export function recordModelFailure(state: SessionState, command: Failure): Decision {
  const draft = new Draft(state, command);
  const { run, model } = draft;
  if (run?.runId === command.runId && model?.phase === "running" && model.step === command.step && model.attempt === command.attempt) {
    if (command.kind === "lost") loseModelCall(draft, run, model, model.reservedUsd);
    else failCurrent(draft, run, command);
  } else if (isUnbooked(state, command)) bookGivenUp(draft, command);
  return draft.accept();
}

function failCurrent(draft: Draft, run: Run, failure: Failure): void {
  const failures = run.failedAttempts + 1;
  const notSent = failure.kind === "not_sent";
  const waitMs = pauseMs(failure, failures, draft.command.random);
  // Waiting for our own rate limit, or for the store, is no failure of the model; the run's expiry bounds it.
  const again = notSent || ((failure.kind === "transient" || failure.kind === "aborted") && failures < MAX_MODEL_ATTEMPTS);
  const { step, attempt } = failure;
  const message = clip(failure.message, MAX_MESSAGE);
  draft.emit({ type: "ModelCallFailed", runId: run.runId, step, attempt, kind: failure.kind, message, ...given("retryAtMs", again ? draft.atMs + waitMs : undefined) });
  bookCost(draft, failure);
  if (again) return;
  if (failure.kind === "permanent") { endRun(draft, { outcome: "failed", code: "model_failed", text: message }); return; }
  escalateRun(draft, draft.run ?? run, "model_failed", `the model failed ${plural(failures, "time")}, last: ${message}`);
}

/** A host that stops aborts its calls: any host may take them up at once. Those who wait for room are spread, or they would all come back together. */
function pauseMs(failure: Failure, failures: number, random: number): number {
  if (failure.kind === "aborted") return 0;
  if (failure.kind === "not_sent") return Math.ceil((failure.retryAfterMs ?? 1000) * (1 + random));
  return backoffMs(failures, random, failure.retryAfterMs);
}

function bookCost(draft: Draft, failure: Failure): void {
  const { runId, step, attempt, usage, costUsd } = failure;
  if (usage === undefined && costUsd === undefined) return;
  draft.emit({ type: "ModelCostBooked", runId, step, attempt, usage: usage ?? NO_USAGE, costUsd: costUsd ?? null });
}

const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

/** The host reports an attempt that had been aborted or taken for lost: what it had said stays as context if its run is over. */
function bookGivenUp(draft: Draft, failure: Failure): void {
  const { runId, step, attempt } = failure;
  draft.emit({ type: "ModelCostBooked", runId, step, attempt, usage: failure.usage ?? NO_USAGE, costUsd: failure.costUsd ?? null });
  const text = failure.partialText ?? "";
  if (text !== "" && draft.run?.runId !== runId) draft.emit({ type: "PartialAnswerKept", runId, step, text });
}

/** The host of a running call is dead. The third lost attempt of a step asks a person instead of looping. */
export function loseModelCall(draft: Draft, run: Run, model: Running, reserveUsd: number): void {
  const { step, attempt } = model;
  draft.emit({ type: "ModelCallFailed", runId: run.runId, step, attempt, kind: "lost", message: `host ${model.host} is gone` });
  const after = draft.run;
  if (after === undefined) return;
  if (after.lostAttempts < MAX_LOST_ATTEMPTS) { startModel(draft, after, reserveUsd); return; }
  escalateRun(draft, after, "model_lost", `${String(after.lostAttempts)} attempts at step ${String(step)} were lost with their hosts`);
}
