/** Owns: how model calls and their cost fold into the state. Spend is charged when it may have happened (I11). */
import type { SessionEventOf, Usage } from "../../../contracts/journal.js";
import { MAX_CALLS, MAX_UNBOOKED } from "../limits.js";
import { ring, usd, withCommon, withModel, withRun, type EntryAt, type Parts } from "../parts.js";
import type { ToolCall } from "../state.js";
import type { AppliersOf } from "./applier.js";
import { growRound } from "./window.js";

function startedCall(parts: Parts, event: SessionEventOf<"ModelCallStarted">, entry: EntryAt): Parts {
  const running = { phase: "running" as const, step: event.step, attempt: event.attempt, host: event.host, startedAtMs: entry.atMs, reservedUsd: event.reservedUsd };
  const { totals } = parts.common;
  const counted = withCommon(parts, { totals: { ...totals, modelCalls: totals.modelCalls + 1 } });
  return withModel(withRun(counted, () => ({ attempt: event.attempt, steerPending: false })), running);
}

function booked(parts: Parts, usage: Usage, costUsd: number | null): Parts {
  const { totals } = parts.common;
  return withCommon(parts, { totals: {
    ...totals, inputTokens: totals.inputTokens + usage.inputTokens, outputTokens: totals.outputTokens + usage.outputTokens, costUsd: usd(totals.costUsd + (costUsd ?? 0)),
  } });
}

function answered(parts: Parts, event: SessionEventOf<"ModelAnswered">, entry: EntryAt): Parts {
  const calls = event.calls.slice(0, MAX_CALLS).map((call): ToolCall => ({
    callId: call.callId, providerCallId: call.providerCallId, tool: call.tool, argsDigest: call.argsDigest, argsRev: entry.rev,
    effects: call.effects, critical: call.critical, timeoutMs: call.timeoutMs, maxTries: call.maxTries, openings: 0, life: { phase: "proposed" },
  }));
  const next = withRun(booked(parts, event.usage, event.costUsd), (run) => ({
    steps: event.step, attempt: 0, lostAttempts: 0, failedAttempts: 0, spentUsd: usd(run.spentUsd + (event.costUsd ?? 0)), calls,
  }));
  return growRound(withModel(next, undefined), event.text + event.calls.map((call) => call.args).join(""));
}

/** A lost or aborted attempt may have cost its whole reservation; that is charged until the real cost is known. */
function failed(parts: Parts, event: SessionEventOf<"ModelCallFailed">): Parts {
  const { runId, step, attempt, kind, retryAtMs } = event;
  const gone = kind === "lost" || kind === "aborted";
  const reserved = gone && parts.model?.phase === "running" ? parts.model.reservedUsd : 0;
  const noted = gone ? withCommon(parts, { unbooked: ring(parts.common.unbooked, { runId, step, attempt, usd: reserved }, MAX_UNBOOKED) }) : parts;
  const counted = withRun(noted, (run) => ({
    spentUsd: usd(run.spentUsd + reserved), failedAttempts: run.failedAttempts + (kind === "lost" || kind === "not_sent" ? 0 : 1), lostAttempts: run.lostAttempts + (kind === "lost" ? 1 : 0),
  }));
  return withModel(counted, retryAtMs === undefined ? undefined : { phase: "waiting", step, attempt: attempt + 1, dueAtMs: retryAtMs });
}

function costBooked(parts: Parts, event: SessionEventOf<"ModelCostBooked">): Parts {
  const same = (item: { runId: string; step: number; attempt: number }) => item.runId === event.runId && item.step === event.step && item.attempt === event.attempt;
  const charged = parts.common.unbooked.find(same)?.usd ?? 0;
  const known = withCommon(booked(parts, event.usage, event.costUsd), { unbooked: parts.common.unbooked.filter((item) => !same(item)) });
  const { costUsd } = event;
  if (costUsd === null || known.run?.runId !== event.runId) return known;
  return withRun(known, (run) => ({ spentUsd: usd(run.spentUsd + costUsd - charged) }));
}

export const modelAppliers: AppliersOf<"ModelCallStarted" | "ModelAnswered" | "ModelCallFailed" | "ModelCostBooked" | "PartialAnswerKept"> = {
  ModelCallStarted: startedCall,
  ModelAnswered: answered,
  ModelCallFailed: failed,
  ModelCostBooked: costBooked,
  PartialAnswerKept: (parts, event) => growRound(parts, event.text),
};
