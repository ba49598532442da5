/**
 * Owns: the mode `turns`. One turn: an event, a model call, a tool call by the worker, a second model call, the answer on the
 * user's stream. Each session's user sends the next event when the answer to the last one is there.
 */
import type { Sent } from "./client.js";
import { passed, quantile, startLoad, tookIn } from "./load.js";
import { startMeter, type Cost } from "./meter.js";
import type { BenchOptions } from "./options.js";
import type { Rig } from "./rig.js";

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
  const load = startLoad(rig, { prefix: `b${String(options.modelDelayMs)}-${String(options.sessionCount)}`, sessions: options.sessionCount }, { sent, failures });
  await passed(options.warmup);
  const endMeter = await startMeter(rig, options);
  const fromMs = performance.now();
  await passed(options.seconds);
  const toMs = performance.now();
  const cost = await endMeter();
  await load.stop();
  const counted = tookIn(load.turns, fromMs, toMs);
  return {
    sessions: options.sessionCount, modelDelayMs: options.modelDelayMs, turns: counted.length, turnsPerSecond: counted.length / ((toMs - fromMs) / 1000),
    p50Ms: quantile(counted, 0.5), p99Ms: quantile(counted, 0.99), maxMs: counted.at(-1) ?? 0, cost,
  };
}
