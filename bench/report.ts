/** Owns: how results look, as text and as JSON. */
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import type { Level } from "./turns.js";

export const LEVEL_HEAD = "model ms  sessions   turns/s    p50 ms    p99 ms    max ms   CPU ms/turn  foreign CPU";

export function levelLine(level: Level): string {
  const cpuMs = [...level.cost.processes].filter(([name]) => name !== OWN).reduce((sum, [, used]) => sum + used.cpuSeconds * 1000, 0) / level.turns;
  return [[level.modelDelayMs, 8, 0], [level.sessions, 9, 0], [level.turnsPerSecond, 9, 1], [level.p50Ms, 9, 1], [level.p99Ms, 9, 1], [level.maxMs, 9, 1], [cpuMs, 13, 2]]
    .map(([value = 0, width = 0, digits = 0]) => value.toFixed(digits).padStart(width)).concat(`${(100 * level.cost.foreignCpuSeconds / level.cost.seconds).toFixed(0)} %`.padStart(12)).join(" ");
}

/** What a turn of this level cost, by process and by route. */
export function costLines({ cost, turns, sessions, modelDelayMs }: Level): string[] {
  const perTurn = (value: number, digits = 2): string => (value / turns).toFixed(digits);
  const { postgres, brokerSyncs } = cost;
  const written = [...cost.processes.values()].reduce((sum, used) => sum + used.writtenBytes, 0);
  return [
    `\n${String(sessions)} sessions, model ${String(modelDelayMs)} ms: per turn`,
    `  PostgreSQL: ${perTurn(postgres.commits)} commits, ${perTurn(postgres.walSyncs)} WAL fsyncs, ${perTurn(postgres.walBytes / 1024)} KiB of WAL; broker: ${brokerSyncs === undefined ? "fsyncs not counted (--syscalls, as root, with perf)" : `${perTurn(brokerSyncs)} fsyncs`}; all processes wrote ${perTurn(written / 1024, 1)} KiB to the disk`,
    `  ${"process".padEnd(18)}CPU ms    of a core    memory MB    KiB written`,
    ...[...cost.processes].sort(([, a], [, b]) => b.cpuSeconds - a.cpuSeconds).map(([name, used]) =>
      `  ${name.padEnd(18)}${perTurn(used.cpuSeconds * 1000).padStart(6)} ${`${(100 * used.cpuSeconds / cost.seconds).toFixed(0)} %`.padStart(12)} ${used.rssMb.toFixed(0).padStart(12)} ${perTurn(used.writtenBytes / 1024, 1).padStart(14)}`),
    ...[...cost.probes].flatMap(([app, { counts, loopDelayMs }]) => [
      `  ${app}: event loop late by ${loopDelayMs.p50.toFixed(1)} ms p50, ${loopDelayMs.p99.toFixed(1)} ms p99; requests per turn:`,
      ...Object.entries(counts).sort(([, a], [, b]) => b - a).filter(([, count]) => count / turns >= 0.01).map(([route, count]) => `    ${perTurn(count).padStart(6)}  ${route}`),
    ]),
  ];
}

/** What the checks say; of sessions that were put into the store by hand there is nothing to check. */
export function verdictLine({ events, sessions }: { readonly events: number; readonly sessions: number }, problems: number): string {
  if (problems > 0) return `checked ${String(events)} events in ${String(sessions)} sessions: ${String(problems)} PROBLEMS`;
  if (events === 0) return "no checks: the sessions of this mode were put into the store, not sent; nothing failed";
  return `checked ${String(events)} events in ${String(sessions)} sessions: nothing lost, doubled or out of order; fold(journal) = state`;
}

export const OWN = "bench itself";

export function machineLine(): string {
  const model = /^model name\s*: (.*)$/m.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1] ?? "unknown CPU";
  return `${String(availableParallelism())} cores of ${model}, Node ${process.versions.node}`;
}

/** Maps as objects, so that JSON keeps them. */
export function plain(value: unknown): unknown {
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, inner]) => [key, plain(inner)]));
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
}
