/** `npm run dev` as a process: how it starts, what it says when it cannot, and that it leaves nothing behind however it ends. */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { identify } from "../../src/launcher/process-identity.js";
import { eventually, REPO_ROOT } from "../support/cluster.js";

const RUN_FILE = join(REPO_ROOT, "test/fixtures/probe-app/dapr.yaml");

let dataDir: string;
let started: Dev[] = [];

interface Dev {
  readonly child: ChildProcess;
  output(): string;
  ended(): Promise<number | NodeJS.Signals | null>;
}

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "docket-dev-"));
  started = [];
});

afterEach(async () => {
  for (const dev of started) {
    dev.child.kill("SIGKILL");
    await dev.ended();
  }
  // The orphan watcher gives children two seconds.
  await eventually("no process is left", () => (livePids().length === 0 ? true : undefined), 10_000).catch(() => undefined);
  rmSync(dataDir, { recursive: true, force: true });
});

function dev(...args: string[]): Dev {
  const child = spawn(process.execPath, [join(REPO_ROOT, "dist/src/main/dev.js"), "--data-dir", dataDir, "--run-file", RUN_FILE, ...args], {
    cwd: REPO_ROOT,
    env: { ...process.env, NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (chunk: string) => (output += chunk));
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => child.once("close", (code, signal) => resolve(code ?? signal)));
  const handle: Dev = { child, output: () => output, ended: () => ended };
  started.push(handle);
  return handle;
}

const seenPids = new Set<number>();

/** The children the launcher has noted, and of those it ever noted the ones that still live. */
function livePids(): number[] {
  try {
    const noted = JSON.parse(readFileSync(join(dataDir, "pids.json"), "utf8")) as { children: { pid: number }[] };
    for (const { pid } of noted.children) seenPids.add(pid);
  } catch {
    // Not started yet, or stopped cleanly.
  }
  return [...seenPids].filter((pid) => identify(pid) !== undefined);
}

async function ready(process: Dev): Promise<void> {
  await eventually("READY", () => (process.output().includes("READY") ? true : process.child.exitCode !== null ? Promise.reject(new Error(process.output())) : undefined), 90_000);
}

describe("npm run dev", () => {
  it("prints where things are, and after Ctrl-C leaves no process and exits 0", async () => {
    const running = dev("--ports", "free");
    await ready(running);
    expect(running.output()).toMatch(/gateway +http:\/\/127\.0\.0\.1:\d+/);
    expect(running.output()).toMatch(/Try next/);
    expect(livePids()).toHaveLength(11);
    running.child.kill("SIGINT");
    expect(await running.ended()).toBe(0);
    expect(livePids()).toEqual([]);
  });

  it("refuses a second start on the same data folder", async () => {
    const running = dev("--ports", "free", "--only", "tools");
    await ready(running);
    const second = dev("--ports", "free");
    expect(await second.ended()).toBe(1);
    expect(second.output()).toContain(`started by process ${running.child.pid}`);
  });

  it("stops everything with exit code 1 when a child dies, and says which", async () => {
    const running = dev("--ports", "free", "--only", "tools,console");
    await ready(running);
    const noted = JSON.parse(readFileSync(join(dataDir, "pids.json"), "utf8")) as { children: { pid: number }[] };
    livePids();
    process.kill(noted.children[0]!.pid, "SIGKILL");
    expect(await running.ended()).toBe(1);
    expect(running.output()).toContain("broker was ended by SIGKILL, so everything is being stopped");
    expect(livePids()).toEqual([]);
  });

  it("leaves no process behind when it is itself killed with SIGKILL", async () => {
    const running = dev("--ports", "free", "--only", "tools");
    await ready(running);
    expect(livePids().length).toBeGreaterThan(3);
    running.child.kill("SIGKILL");
    await running.ended();
    await eventually("the watcher has ended them", () => (livePids().length === 0 ? true : undefined), 10_000);
    const again = dev("--ports", "free", "--only", "tools");
    await ready(again);
  });

  it("can be interrupted while it is starting", async () => {
    const running = dev("--ports", "free");
    await eventually("a child runs", () => (livePids().length > 1 ? true : undefined));
    running.child.kill("SIGINT");
    expect(await running.ended()).toBe(0);
    expect(livePids()).toEqual([]);
  });

  it("names the process that holds a port it needs", async () => {
    const holder = createServer();
    await new Promise<void>((resolve) => holder.listen(0, "127.0.0.1", resolve));
    const { port } = holder.address() as { port: number };
    const refused = dev("--ports", "free", "--port", `gateway.public=${port}`);
    expect(await refused.ended()).toBe(1);
    expect(refused.output()).toContain(`127.0.0.1:${port} (gateway.public) is held by pid ${process.pid}`);
    expect(refused.output()).toContain("--port gateway.public=<number>");
    holder.close();
  });

  it.each([
    [["--profile", "nope"], '--profile is "nope"'],
    [["--only", "nope"], '--only names the app "nope"'],
    [["--port", "nope=1"], 'No part of the stack has a port named "nope"'],
    [["--nope"], "nope"],
  ])("explains wrong options: %s", async (args, message) => {
    const refused = dev(...args);
    expect(await refused.ended()).toBe(2);
    expect(refused.output()).toContain(message);
  });

  it("explains itself", async () => {
    const help = dev("--help");
    expect(await help.ended()).toBe(0);
    expect(help.output()).toContain("--profile");
  });
});
