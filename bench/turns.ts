/**
 * Owns: the mode `turns`. One turn: an event, a model call, a tool call by the worker, a second model call, the answer on the
 * user's stream. Each session's user sends the next event when the answer to the last one is there.
 */
import { startMeter, type Cost } from "./meter.js";
import type { BenchOptions } from "./options.js";
import { textOf } from "./outside.js";
import type { Rig } from "./rig.js";
import { Users, type Sent } from "./client.js";

export interface Level {
  readonly sessions: number;
  readonly modelDelayMs: number;
  readonly turns: number;
  readonly turnsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly cost: Cost;
}

export interface TurnsResult { readonly levels: readonly Level[]; readonly sent: readonly Sent[]; readonly failures: readonly string[] }

export async function measureTurns(rig: Rig, options: BenchOptions, report: (level: Level) => void): Promise<TurnsResult> {
  const sent: Sent[] = [];
  const failures: string[] = [];
  const levels: Level[] = [];
  for (const modelDelayMs of options.delay) {
    for (const sessions of options.sessions) {
      const level = await runLevel(rig, { ...options, sessionCount: sessions, modelDelayMs }, sent, failures);
      levels.push(level);
      report(level);
    }
  }
  return { levels, sent, failures };
}

async function runLevel(rig: Rig, options: BenchOptions & { sessionCount: number; modelDelayMs: number }, sent: Sent[], failures: string[]): Promise<Level> {
  rig.outside.delayMs = options.modelDelayMs;
  const users = new Users(rig.gateway, rig.keys, (error) => { failures.push(error.message); });
  const tookMs: { endedAtMs: number; ms: number }[] = [];
  let working = true;
  const work = Promise.all(Array.from({ length: options.sessionCount }, async (_, n) => {
    const sessionId = `b${String(options.modelDelayMs)}-${String(options.sessionCount)}-${String(n)}`;
    const session = users.open(sessionId);
    for (let turn = 0; working; turn += 1) {
      const startedMs = performance.now();
      const name = `${sessionId}.${String(turn)}`;
      const said = await session.say(name, textOf(name));
      sent.push(said.sent);
      const outcome = await said.ended;
      const endedAtMs = performance.now();
      tookMs.push({ endedAtMs, ms: endedAtMs - startedMs });
      if (outcome !== "completed") failures.push(`${name} ended ${outcome}`);
    }
    session.close();
  })).catch((error: unknown) => { failures.push(error instanceof Error ? error.message : String(error)); });
  await passed(options.warmup);
  const endMeter = await startMeter(rig, options);
  const fromMs = performance.now();
  await passed(options.seconds);
  const toMs = performance.now();
  const cost = await endMeter();
  working = false;
  await work;
  await users.close();
  const counted = tookMs.filter(({ endedAtMs }) => endedAtMs > fromMs && endedAtMs <= toMs).map(({ ms }) => ms).sort((a, b) => a - b);
  return {
    sessions: options.sessionCount, modelDelayMs: options.modelDelayMs, turns: counted.length, turnsPerSecond: counted.length / ((toMs - fromMs) / 1000),
    p50Ms: quantile(counted, 0.5), p99Ms: quantile(counted, 0.99), maxMs: counted.at(-1) ?? 0, cost,
  };
}

/** Of sorted values. */
export function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

function passed(seconds: number): Promise<void> {
  return new Promise((resolve) => { setTimeout(resolve, seconds * 1000); });
}
