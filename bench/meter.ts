/**
 * Owns: what a span of work cost: CPU, memory and disk by process, PostgreSQL's own counters, requests that the apps counted,
 * fsyncs that the kernel saw, and profiles.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import type pg from "pg";
import { eventually } from "../test/support/cluster.js";
import { machineCpuSeconds, usageBetween, usageOf, type Usage } from "./processes.js";
import type { Rig } from "./rig.js";

/** What bench/probe.mjs listens to; the apps themselves do not. */
const PROBE_SIGNAL = "SIGURG";

interface PostgresCounters { readonly commits: number; readonly walBytes: number; readonly walSyncs: number; readonly walWrites: number }
interface ProbeReport { readonly counts: Readonly<Record<string, number>>; readonly loopDelayMs: { readonly p50: number; readonly p99: number; readonly max: number } }

export interface Cost {
  readonly seconds: number;
  readonly processes: ReadonlyMap<string, Usage>;
  /** CPU that went to processes which are not Docket's, the bench's or theirs: what else ran on the machine. */
  readonly foreignCpuSeconds: number;
  readonly postgres: PostgresCounters;
  /** fsync and fdatasync calls of the broker; undefined where they were not counted. */
  readonly brokerSyncs: number | undefined;
  /** By app. */
  readonly probes: ReadonlyMap<string, ProbeReport>;
}

export interface MeterOptions { readonly syscalls: boolean; readonly profile: string | undefined }

/** Starts measuring; the function that comes back ends it and says what was used. */
export async function startMeter(rig: Rig, options: MeterOptions): Promise<() => Promise<Cost>> {
  const groups = rig.processes();
  const apps = rig.test.stack.instances.map(({ name }) => name);
  const signal = (): void => { for (const app of apps) process.kill(groups.get(app) ?? 0, PROBE_SIGNAL); };
  const reportOf = (app: string): string => join(rig.probeDir, `${app}.json`);
  for (const app of apps) rmSync(reportOf(app), { force: true });
  const syncs = options.syscalls ? countSyncs(groups.get("broker") ?? 0) : undefined;
  const sampling = options.profile === undefined ? [] : sampleSidecars(groups, options.profile);
  signal();
  const [usedBefore, machineBefore, postgresBefore] = [usageOf(groups), machineCpuSeconds(), await postgresCounters(rig.sql)];
  const startedMs = performance.now();
  return async () => {
    const seconds = (performance.now() - startedMs) / 1000;
    const [usedAfter, machineAfter, postgresAfter] = [usageOf(groups), machineCpuSeconds(), await postgresCounters(rig.sql)];
    signal();
    await Promise.all(sampling.map((end) => end()));
    const brokerSyncs = await syncs?.();
    const probes = new Map<string, ProbeReport>();
    for (const app of apps) {
      await eventually(`the probe in ${app} has reported`, () => (existsSync(reportOf(app)) ? true : undefined));
      probes.set(app, JSON.parse(readFileSync(reportOf(app), "utf8")) as ProbeReport);
      const profile = join(rig.probeDir, `${app}.cpuprofile`);
      if (options.profile !== undefined && existsSync(profile)) renameSync(profile, join(options.profile, `${app}.cpuprofile`));
    }
    const processes = usageBetween(usedBefore, usedAfter);
    const ours = [...processes.values()].reduce((sum, used) => sum + used.cpuSeconds, 0);
    return { seconds, processes, foreignCpuSeconds: Math.max(0, machineAfter - machineBefore - ours), postgres: difference(postgresBefore, postgresAfter), brokerSyncs, probes };
  };
}

async function postgresCounters(sql: pg.Pool): Promise<PostgresCounters> {
  const { rows } = await sql.query<Record<"commits" | "bytes" | "syncs" | "writes", string>>(
    "SELECT (SELECT sum(xact_commit) FROM pg_stat_database) AS commits, wal_bytes AS bytes, wal_sync AS syncs, wal_write AS writes FROM pg_stat_wal");
  const [row] = rows;
  return { commits: Number(row?.commits), walBytes: Number(row?.bytes), walSyncs: Number(row?.syncs), walWrites: Number(row?.writes) };
}

function difference(before: PostgresCounters, after: PostgresCounters): PostgresCounters {
  return { commits: after.commits - before.commits, walBytes: after.walBytes - before.walBytes, walSyncs: after.walSyncs - before.walSyncs, walWrites: after.walWrites - before.walWrites };
}

/** perf counts at the kernel's trace points, which costs the traced process next to nothing (strace would stop it at each call). */
function countSyncs(pid: number): () => Promise<number | undefined> {
  const perf = spawn("perf", ["stat", "-x", ",", "-e", "syscalls:sys_enter_fsync", "-e", "syscalls:sys_enter_fdatasync", "-p", String(pid)], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  perf.stderr.on("data", (chunk: Buffer) => { said += chunk.toString("utf8"); });
  return async () => {
    await interrupted(perf);
    return syncsIn(said);
  };
}

/** What `perf stat -x ,` counted; undefined where it counted nothing: no rights, no trace points, no such process. */
export function syncsIn(said: string): number | undefined {
  const counts = said.split("\n").filter((line) => line.includes("sys_enter_")).map((line) => line.split(",")[0] ?? "");
  const numbers = counts.filter((count) => /^\d+$/.test(count)).map(Number);
  return numbers.length === 0 ? undefined : numbers.reduce((sum, count) => sum + count, 0);
}

/** Where Go code burns its CPU: `perf report -i <file>` reads it. */
function sampleSidecars(groups: ReadonlyMap<string, number>, dir: string): (() => Promise<void>)[] {
  mkdirSync(dir, { recursive: true });
  return [...groups].filter(([name]) => /daprd|broker|scheduler|postgres/.test(name)).map(([name, pid]) => {
    const perf = spawn("perf", ["record", "-q", "-F", "499", "-g", "-o", join(dir, `${name}.perf`), "-p", String(pid)], { stdio: "ignore" });
    return () => interrupted(perf);
  });
}

async function interrupted(child: ChildProcess): Promise<void> {
  child.kill("SIGINT");
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
}
