/**
 * Owns: telling whether a remembered process is still the same one. A pid alone is not enough: the kernel hands it out again,
 * and the launcher must never signal a stranger. The start time makes the pair unique.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

export interface ProcessIdentity {
  readonly pid: number;
  /** Opaque; equal only for the same process. Empty when the platform does not tell. */
  readonly startedAt: string;
}

/** The identity of a live process, or undefined when there is none with that pid. */
export function identify(pid: number): ProcessIdentity | undefined {
  if (process.platform === "linux") {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const afterName = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      // Field 3 is the state, field 22 the start time in clock ticks after boot (proc(5)).
      if (afterName[0] === "Z") return undefined;
      return { pid, startedAt: afterName[19] ?? "" };
    } catch {
      return undefined;
    }
  }
  try {
    return { pid, startedAt: execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" }).trim() };
  } catch {
    return undefined;
  }
}

/** True when the very process that was remembered still runs. */
export function isAlive(identity: ProcessIdentity): boolean {
  const now = identify(identity.pid);
  return now !== undefined && now.startedAt === identity.startedAt;
}

/** Signals the process group that the process leads, or the process alone; a process that is gone is no error. */
export function signalGroup(pid: number, signal: NodeJS.Signals): void {
  for (const target of [-pid, pid]) {
    try {
      process.kill(target, signal);
      return;
    } catch {
      // ESRCH: already gone. EPERM on a group: try the process itself.
    }
  }
}

/** Kills what is left of a group whose leader is gone. Never falls back to the pid: it may belong to somebody else by now. */
export function killGroupOnly(leaderPid: number): void {
  try {
    process.kill(-leaderPid, "SIGKILL");
  } catch {
    // The group is empty.
  }
}
