/**
 * Owns: the mode `scale`: session hosts from one to three and back to one, under load that never pauses. Who served what is read from the journal
 * afterwards: each entry says which process committed it.
 */
import type { TableResult } from "./long-runs.js";
import type { Sent } from "./client.js";
import { passed, quantile, startLoad, tookIn, type Turn } from "./load.js";
import type { BenchOptions } from "./options.js";
import { machineCpuSeconds, usageBetween, usageOf } from "./processes.js";
import type { Rig } from "./rig.js";

export const SCALED_TO = 3;
const ADDED = ["sessions-2", "sessions-3"] as const;
/** Turns that overlap the change, or begin within so long after it, are "around" it. */
const AROUND_MS = 10_000;
/** A window in which shares are looked at. */
const WINDOW_MS = 2_000;

type Row = Record<string, string | number>;
interface Span { readonly fromMs: number; readonly toMs: number }
interface Commit { readonly actorId: string; readonly pid: number; readonly atMs: number }

const round = (value: number): number => Math.round(value * 10) / 10;

export async function measureScale(rig: Rig, options: BenchOptions): Promise<TableResult> {
  const book = { sent: [] as Sent[], failures: [] as string[] };
  const { stack } = rig.test;
  const pidOf = (name: string): number => stack.processes.get(name)?.pid ?? 0;
  for (const name of ADDED) await leave(rig, name);
  await passed(AROUND_MS / 1000);
  const load = startLoad(rig, { prefix: "scaled", sessions: options.load }, book);
  await passed(options.warmup);
  const before = await phase(rig, options.seconds);

  const up: Span & { readonly readyMs: number } = await changed(async () => {
    for (const name of ADDED) await Promise.all([stack.start(`${name}-daprd`), stack.start(name)]);
    await stack.waitReady();
  });
  const added = new Set(ADDED.map(pidOf));
  await passed(AROUND_MS / 1000);
  const between = await phase(rig, options.seconds);

  const down = await changed(async () => { for (const name of [...ADDED].reverse()) await leave(rig, name); });
  await passed(AROUND_MS / 1000);
  const after = await phase(rig, options.seconds);
  await load.stop();

  const commits = await commitsOf(rig);
  const share = shareOf(commits, added, between);
  const table: Row[] = [
    phaseRow("1 host", load.turns, before), changeRow("1 to 3", { span: up, turns: load.turns, moved: moved(commits, before, between), sessions: options.load }, {
      "hosts ready after s": round(up.readyMs / 1000), "share of the new hosts %": Math.round(100 * share), "which they had after s": round(servedAfterMs(commits, added, { fromMs: up.fromMs, share }) / 1000),
    }),
    phaseRow("3 hosts", load.turns, between), changeRow("3 to 1", { span: down, turns: load.turns, moved: moved(commits, between, after), sessions: options.load }, {
      "hosts gone after s": round(down.readyMs / 1000), "their last commit after s": round((Math.max(...commits.filter(({ pid }) => added.has(pid)).map(({ atMs }) => atMs)) - epoch(down.fromMs)) / 1000),
    }),
    phaseRow("1 host again", load.turns, after),
    { "requests and turns that failed": book.failures.length, "model calls made again": book.sent.reduce((sum, { turn }) => sum + Math.max(0, (rig.outside.modelCallsMs.get(turn)?.length ?? 0) - 2), 0) },
  ];
  return { table, ...book };
}

/** As an orchestrator ends a pod: the app first, its sidecar outlives it. */
async function leave(rig: Rig, name: string): Promise<void> {
  await rig.test.stack.kill(name, "SIGTERM");
  await rig.test.stack.kill(`${name}-daprd`, "SIGTERM");
}

async function phase(rig: Rig, seconds: number): Promise<Span & { readonly foreignPercent: number }> {
  const groups = rig.processes();
  const [used, machine, fromMs] = [usageOf(groups), machineCpuSeconds(), performance.now()];
  await passed(seconds);
  const toMs = performance.now();
  const ours = [...usageBetween(used, usageOf(groups)).values()].reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0);
  return { fromMs, toMs, foreignPercent: Math.max(0, Math.round(100_000 * (machineCpuSeconds() - machine - ours) / (toMs - fromMs))) };
}

async function changed(change: () => Promise<void>): Promise<Span & { readonly readyMs: number }> {
  const fromMs = performance.now();
  await change();
  const readyMs = performance.now() - fromMs;
  return { fromMs, toMs: fromMs + readyMs + AROUND_MS, readyMs };
}

function phaseRow(name: string, turns: readonly Turn[], { fromMs, toMs, foreignPercent }: Awaited<ReturnType<typeof phase>>): Row {
  const took = tookIn(turns, fromMs, toMs);
  return { phase: name, "turns/s": round(took.length / ((toMs - fromMs) / 1000)), "p50 ms": Math.round(quantile(took, 0.5)), "p99 ms": Math.round(quantile(took, 0.99)), "max ms": Math.round(took.at(-1) ?? 0), "foreign CPU %": foreignPercent };
}

function changeRow(name: string, about: { readonly span: Span; readonly turns: readonly Turn[]; readonly moved: number; readonly sessions: number }, more: Row): Row {
  const around = about.turns.filter(({ startedAtMs, endedAtMs }) => startedAtMs < about.span.toMs && endedAtMs > about.span.fromMs).map(({ startedAtMs, endedAtMs }) => endedAtMs - startedAtMs);
  return { change: name, "actors moved": `${String(about.moved)} of ${String(about.sessions)}`, ...more, "slowest turn around it ms": Math.round(Math.max(...around)) };
}

/** Sessions whose last commit in one phase and in the next were made by different hosts. */
function moved(commits: readonly Commit[], first: Span, second: Span): number {
  const [from, to] = [first, second].map((span) => new Map(within(commits, span).map(({ actorId, pid }) => [actorId, pid]))) as [Map<string, number>, Map<string, number>];
  return [...to].filter(([actorId, pid]) => from.has(actorId) && from.get(actorId) !== pid).length;
}

function shareOf(commits: readonly Commit[], hosts: ReadonlySet<number>, span: Span): number {
  const all = within(commits, span);
  return all.filter(({ pid }) => hosts.has(pid)).length / Math.max(1, all.length);
}

/** Until the first window in which the hosts had nine tenths of the share that they kept. */
function servedAfterMs(commits: readonly Commit[], hosts: ReadonlySet<number>, { fromMs, share }: { readonly fromMs: number; readonly share: number }): number {
  const lastMs = Math.max(...commits.map(({ atMs }) => atMs)) - performance.timeOrigin;
  for (let atMs = fromMs; atMs < lastMs; atMs += 100) if (shareOf(commits, hosts, { fromMs: atMs, toMs: atMs + WINDOW_MS }) >= 0.9 * share) return atMs + WINDOW_MS - fromMs;
  return Infinity;
}

function within(commits: readonly Commit[], { fromMs, toMs }: Span): Commit[] { return commits.filter(({ atMs }) => atMs > epoch(fromMs) && atMs <= epoch(toMs)); }

function epoch(ms: number): number { return performance.timeOrigin + ms; }

/** In order of time. A host's name ends in its process id and a random word. */
async function commitsOf(rig: Rig): Promise<Commit[]> {
  const { rows } = await rig.sql.query<{ actor: string; host: string; at: string }>(`SELECT split_part(key, ':', 2) AS actor, entry->>'host' AS host, entry->>'atMs' AS at
    FROM (SELECT key, convert_from(value, 'UTF8')::jsonb AS entry FROM docket_sessions_state WHERE key LIKE 'journal:%') entries ORDER BY (entry->>'atMs')::bigint`);
  return rows.map(({ actor, host, at }) => ({ actorId: actor, pid: Number(/-(\d+)-[0-9a-f]+$/.exec(host)?.[1]), atMs: Number(at) }));
}
