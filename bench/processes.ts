/**
 * Owns: what processes have used, read from /proc: CPU time, resident memory, bytes that went to the disk. Linux only.
 * A group is a process with its descendants (PostgreSQL's backends), without those that are groups themselves.
 */
import { readdirSync, readFileSync } from "node:fs";

/** Clock ticks per second of /proc/<pid>/stat: a constant of the kernel's ABI on every platform that Node runs on. */
const TICKS = 100;

export interface Usage { readonly cpuSeconds: number; readonly rssMb: number; readonly writtenBytes: number }

/** Use of each named group so far. Children that have ended count through their parents. */
export function usageOf(groups: ReadonlyMap<string, number>): Map<string, Usage> {
  const children = childrenByParent();
  const roots = new Set(groups.values());
  return new Map([...groups].map(([name, pid]) => {
    let total: Usage = { cpuSeconds: 0, rssMb: 0, writtenBytes: 0 };
    const queue = [pid];
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      queue.push(...(children.get(next) ?? []).filter((child) => !roots.has(child)));
      const one = usageOfProcess(next);
      if (one !== undefined) total = { cpuSeconds: total.cpuSeconds + one.cpuSeconds, rssMb: total.rssMb + one.rssMb, writtenBytes: total.writtenBytes + one.writtenBytes };
    }
    return [name, total];
  }));
}

/** What was used between two readings; memory is that of the second. */
export function usageBetween(before: ReadonlyMap<string, Usage>, after: ReadonlyMap<string, Usage>): Map<string, Usage> {
  return new Map([...after].map(([name, now]) => {
    const then = before.get(name);
    return [name, { cpuSeconds: now.cpuSeconds - (then?.cpuSeconds ?? 0), rssMb: now.rssMb, writtenBytes: now.writtenBytes - (then?.writtenBytes ?? 0) }];
  }));
}

/** Seconds of CPU that the whole machine has used so far, by anybody. */
export function machineCpuSeconds(): number {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = (textOf("/proc/stat")?.split("\n")[0] ?? "").split(/\s+/).slice(1).map(Number);
  return (user + nice + system + irq + softirq) / TICKS;
}

/** The parent of a process; 0 where it is gone. */
export function parentOf(pid: number): number { return Number(statOf(pid)?.[1] ?? 0); }

/** A child of this process whose command line has the word in it. */
export function childNamed(word: string): number | undefined {
  return (childrenByParent().get(process.pid) ?? []).find((pid) => textOf(`/proc/${String(pid)}/cmdline`)?.includes(word));
}

function usageOfProcess(pid: number): Usage | undefined {
  const stat = statOf(pid);
  if (stat === undefined) return undefined;
  const ticks = [11, 12, 13, 14].reduce((sum, field) => sum + Number(stat[field]), 0);
  return {
    cpuSeconds: ticks / TICKS,
    // Pages that are shared (PostgreSQL's buffers) are counted once, with their share.
    rssMb: numberAfter("Pss:", textOf(`/proc/${String(pid)}/smaps_rollup`)) / 1024,
    writtenBytes: numberAfter("write_bytes:", textOf(`/proc/${String(pid)}/io`)),
  };
}

/** Fields of /proc/<pid>/stat after the name: state, parent, … */
function statOf(pid: number): string[] | undefined {
  const text = textOf(`/proc/${String(pid)}/stat`);
  return text?.slice(text.lastIndexOf(")") + 2).split(" ");
}

function childrenByParent(): Map<number, number[]> {
  const children = new Map<number, number[]>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const parent = parentOf(Number(name));
    children.set(parent, [...children.get(parent) ?? [], Number(name)]);
  }
  return children;
}

function numberAfter(label: string, text: string | undefined): number {
  return Number(new RegExp(`^${label}\\s+(\\d+)`, "m").exec(text ?? "")?.[1] ?? 0);
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined; // ended meanwhile, or not ours to read
  }
}
