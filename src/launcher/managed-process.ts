/**
 * Owns: one child process that can be started, killed, frozen and started again with the same command line.
 * Every child leads its own process group, so that a signal reaches its own children too, and Ctrl-C in the terminal reaches
 * only the launcher, which stops the parts in order.
 *
 *   stopped -> running -> stopped      an exit that nobody asked for (kill, stop) is `unexpected`
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, mkdirSync, renameSync, statSync, type WriteStream } from "node:fs";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { identify, killGroupOnly, signalGroup, type ProcessIdentity } from "./process-identity.js";

export interface ProcessSpec {
  readonly name: string;
  readonly kind: "broker" | "sentry" | "placement" | "scheduler" | "daprd" | "app";
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** The whole environment: nothing is inherited behind the caller's back. */
  readonly env: NodeJS.ProcessEnv;
  readonly logFile: string;
}

export interface ExitInfo {
  readonly name: string;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** False when the launcher caused it. */
  readonly unexpected: boolean;
}

export interface ProcessHooks {
  onLine(name: string, line: string): void;
  onExit(exit: ExitInfo): void;
  onSpawn(identity: ProcessIdentity): void;
  onGone(pid: number): void;
}

const KEPT_LINES = 400;
const MAX_LOG_BYTES = 32 * 1024 * 1024;

export class ManagedProcess {
  private child: ChildProcess | undefined;
  private expectedExit = false;
  private readonly lines: string[] = [];

  constructor(
    readonly spec: ProcessSpec,
    private readonly hooks: ProcessHooks,
  ) {}

  get name(): string {
    return this.spec.name;
  }

  get pid(): number | undefined {
    return this.child?.pid;
  }

  get running(): boolean {
    return this.child !== undefined;
  }

  /** The last lines it wrote, oldest first. */
  get recentLines(): readonly string[] {
    return this.lines;
  }

  /** Spawns it; a second start while it runs does nothing. Resolves when the process exists, not when it is ready. */
  async start(): Promise<void> {
    if (this.child) return;
    this.expectedExit = false;
    const log = openLog(this.spec.logFile);
    const child = spawn(this.spec.command, [...this.spec.args], {
      cwd: this.spec.cwd,
      env: this.spec.env,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    this.child = child;
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        this.takeLine(line, log);
      });
    }
    // Output can arrive after the exit: the log ends when the pipes do.
    child.once("close", () => {
      log.end();
    });
    child.once("exit", (code, signal) => {
      this.takeExit(child, code, signal);
    });
    await new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", (error) => {
        this.child = undefined;
        reject(error);
      });
    });
    const identity = child.pid === undefined ? undefined : identify(child.pid);
    if (identity) this.hooks.onSpawn(identity);
  }

  /** Sends a signal to its group. The exit that follows is expected. */
  kill(signal: NodeJS.Signals): void {
    if (this.child?.pid === undefined) return;
    this.expectedExit = true;
    signalGroup(this.child.pid, signal);
    // A stopped process sees no TERM before it is continued.
    if (signal !== "SIGKILL") signalGroup(this.child.pid, "SIGCONT");
  }

  /** SIGSTOP: the process stands still, its sockets stay open. */
  freeze(): void {
    if (this.child?.pid !== undefined) signalGroup(this.child.pid, "SIGSTOP");
  }

  /** SIGCONT. */
  thaw(): void {
    if (this.child?.pid !== undefined) signalGroup(this.child.pid, "SIGCONT");
  }

  /** Asks it to end, then insists after the grace time. Resolves when it is gone. */
  async stop(graceMs: number): Promise<void> {
    const child = this.child;
    if (!child) return;
    this.kill("SIGTERM");
    const gone = this.exited();
    const done = await Promise.race([gone.then(() => true), sleep(graceMs, false, { ref: false })]);
    if (!done) this.kill("SIGKILL");
    await gone;
  }

  /** Resolves when it does not run (any more). */
  async exited(): Promise<void> {
    const child = this.child;
    if (!child) return;
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }

  private takeLine(line: string, log: WriteStream): void {
    this.lines.push(line);
    if (this.lines.length > KEPT_LINES) this.lines.splice(0, this.lines.length - KEPT_LINES);
    if (!log.writableEnded) log.write(`${line}\n`);
    this.hooks.onLine(this.name, line);
  }

  private takeExit(child: ChildProcess, code: number | null, signal: NodeJS.Signals | null): void {
    if (this.child !== child) return;
    this.child = undefined;
    if (child.pid !== undefined) {
      // What it may have left behind in its group goes with it.
      killGroupOnly(child.pid);
      this.hooks.onGone(child.pid);
    }
    this.hooks.onExit({ name: this.name, code, signal, unexpected: !this.expectedExit });
  }
}

function openLog(file: string): WriteStream {
  mkdirSync(dirname(file), { recursive: true });
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size > MAX_LOG_BYTES) renameSync(file, `${file}.1`);
  const log = createWriteStream(file, { flags: "a" });
  // A full disk must not take the launcher down; the lines are still shown and kept in memory.
  log.on("error", () => undefined);
  return log;
}
