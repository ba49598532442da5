/**
 * Owns: that no child outlives the launcher, whatever ends it.
 *  1. While the launcher lives it stops them itself (stack.ts).
 *  2. When it is SIGKILLed, a tiny watcher process sees its stdin close and kills every child it was told of.
 *  3. When the watcher went too, the next start finds `pids.json` and cleans up, after checking pid and start time.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { LauncherError } from "./errors.js";
import { identify, isAlive, signalGroup, type ProcessIdentity } from "./process-identity.js";

/** Runs in a bare `node -e`: reads "+pid" and "-pid" lines; at end of input kills what is left, politely first. */
const WATCHER = `
const live = new Set(); let rest = "";
for (const s of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(s, () => {});
const send = (sig) => { for (const pid of live) { try { process.kill(-pid, sig); } catch { live.delete(pid); } } };
process.stdin.setEncoding("utf8").on("data", (d) => {
  const lines = (rest + d).split("\\n"); rest = lines.pop();
  for (const l of lines) { const pid = Number(l.slice(1)); if (pid > 1) { if (l[0] === "+") live.add(pid); else live.delete(pid); } }
}).on("end", () => { if (!live.size) process.exit(0); send("SIGCONT"); send("SIGTERM"); setTimeout(() => { send("SIGKILL"); process.exit(0); }, 2000); })
  .on("error", () => {});
`;

const identitySchema = z.object({ pid: z.int().positive(), startedAt: z.string() });
const pidsSchema = z.object({ launcher: identitySchema, children: z.array(identitySchema) });

export class OrphanGuard {
  private readonly children = new Map<number, ProcessIdentity>();
  private readonly self = identify(process.pid);
  private watcher: ChildProcess | undefined;
  private readonly file: string;

  constructor(dataDir: string) {
    this.file = join(dataDir, "pids.json");
  }

  /** Kills what an earlier launcher left behind in this data folder; returns how many processes. */
  static async cleanUpLeftovers(dataDir: string): Promise<number> {
    const file = join(dataDir, "pids.json");
    let text: string;
    try {
      text = readFileSync(file, "utf8");
    } catch {
      return 0;
    }
    const parsed = pidsSchema.safeParse(safeJson(text));
    if (parsed.success && parsed.data.launcher.pid !== process.pid && isAlive(parsed.data.launcher)) {
      throw new LauncherError("ALREADY_RUNNING", `A stack already runs on ${dataDir}, started by process ${parsed.data.launcher.pid}.`, "Use that one, or stop it first (Ctrl-C in its terminal). Another stack beside it needs its own folder: --data-dir <folder> --ports free.");
    }
    const left = (parsed.success ? parsed.data.children : []).filter(isAlive);
    for (const child of left) signalGroup(child.pid, "SIGKILL");
    for (let waited = 0; waited < 100 && left.some(isAlive); waited++) await new Promise((resolve) => setTimeout(resolve, 50));
    rmSync(file, { force: true });
    return left.length;
  }

  /** Starts the watcher. */
  start(): void {
    this.watcher = spawn(process.execPath, ["-e", WATCHER], { stdio: ["pipe", "ignore", "ignore"], detached: true });
    this.watcher.on("error", () => undefined);
    this.watcher.stdin?.on("error", () => undefined);
    this.watcher.unref();
  }

  /** From now on this child must not outlive the launcher. */
  add(identity: ProcessIdentity): void {
    this.children.set(identity.pid, identity);
    this.watcher?.stdin?.write(`+${identity.pid}\n`);
    this.save();
  }

  /** The child is gone; its pid may be handed out again. */
  remove(pid: number): void {
    this.children.delete(pid);
    this.watcher?.stdin?.write(`-${pid}\n`);
    this.save();
  }

  /** Ends the watch after everything was stopped. */
  close(): void {
    this.watcher?.stdin?.end();
    rmSync(this.file, { force: true });
  }

  private save(): void {
    mkdirSync(join(this.file, ".."), { recursive: true });
    writeFileSync(this.file, JSON.stringify({ launcher: this.self, children: [...this.children.values()] }));
  }
}

function safeJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
