/** Owns: naming the process that listens on a port. Best effort: /proc on Linux, lsof elsewhere, else undefined. */
import { execFile } from "node:child_process";
import { readdir, readFile, readlink } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/** "pid 4711: node dist/src/main/gateway.js", or undefined when it cannot be found out. */
export async function findPortHolder(port: number): Promise<string | undefined> {
  const pid = process.platform === "linux" ? await pidFromProc(port) : await pidFromLsof(port);
  if (pid === undefined) return undefined;
  const command = await commandOf(pid);
  return `pid ${pid}${command ? `: ${command}` : ""}`;
}

async function pidFromProc(port: number): Promise<number | undefined> {
  const hexPort = port.toString(16).toUpperCase().padStart(4, "0");
  const inodes = new Set<string>();
  for (const table of ["/proc/net/tcp", "/proc/net/tcp6"]) {
    const text = await readFile(table, "utf8").catch(() => "");
    for (const line of text.split("\n").slice(1)) {
      const fields = line.trim().split(/\s+/);
      const listening = fields[3] === "0A";
      if (listening && fields[1]?.endsWith(`:${hexPort}`) && fields[9]) inodes.add(`socket:[${fields[9]}]`);
    }
  }
  if (inodes.size === 0) return undefined;
  for (const pid of (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name))) {
    const fds = await readdir(`/proc/${pid}/fd`).catch(() => []);
    for (const fd of fds) {
      const target = await readlink(`/proc/${pid}/fd/${fd}`).catch(() => "");
      if (inodes.has(target)) return Number(pid);
    }
  }
  return undefined;
}

async function pidFromLsof(port: number): Promise<number | undefined> {
  try {
    const { stdout } = await run("lsof", ["-nP", "-t", `-iTCP:${port}`, "-sTCP:LISTEN"], { timeout: 3_000 });
    const pid = Number(stdout.trim().split("\n")[0]);
    return Number.isInteger(pid) && pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}

async function commandOf(pid: number): Promise<string> {
  if (process.platform === "linux") {
    const raw = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    return raw.split("\0").join(" ").trim().slice(0, 120);
  }
  try {
    const { stdout } = await run("ps", ["-o", "command=", "-p", String(pid)], { timeout: 3_000 });
    return stdout.trim().slice(0, 120);
  } catch {
    return "";
  }
}
