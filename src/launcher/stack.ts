/**
 * Owns: one running stack: broker, placement, scheduler, and each app with its sidecar. Starts the parts in order, waits until
 * each is really ready, lets a test kill, freeze and restart any of them, and leaves no process behind.
 * Does not own: what the parts are (plan.ts) or when they are ready (readiness.ts).
 *
 *   L1 every part keeps its ports, tokens and data folder for the life of the stack: whatever was killed can be started again.
 *   L2 no child outlives the launcher (orphan-guard.ts).
 *   L3 a scheduler that runs and takes no reminders is started again (deaf-scheduler.ts).
 *   L4 an exit that nobody asked for is reported exactly once; with `onExit: "stop"` it ends the whole stack.
 */
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { deafScheduler } from "./deaf-scheduler.js";
import { earlyCalls } from "./early-call.js";
import { LauncherError } from "./errors.js";
import { prepareStreams } from "./broker.js";
import { ManagedProcess, type ExitInfo } from "./managed-process.js";
import { OrphanGuard } from "./orphan-guard.js";
import type { Instance } from "./plan.js";
import type { PortMap } from "./ports.js";
import { awaitChecks, controlPlaneChecks, instanceChecks } from "./readiness.js";
import { removeRunRecord, writeRunRecord } from "./run-record.js";
import { prepareStack, type Blueprint, type StackOptions } from "./stack-options.js";

export type { StackOptions } from "./stack-options.js";

/** Sidecars go before the apps they speak to, infrastructure last. */
const STOP_ORDER = [["daprd"], ["app"], ["scheduler", "placement"], ["sentry"], ["broker"]] as const;
const START_ORDER = [["broker"], ["sentry"], ["placement", "scheduler"], ["daprd", "app"]] as const;

/** Starts a stack and returns it when every part is ready; on failure everything started is stopped again. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const stack = new Stack(options, await prepareStack(options));
  const giveUp = (): void => void stack.stop();
  options.signal?.addEventListener("abort", giveUp, { once: true });
  try {
    options.signal?.throwIfAborted();
    await stack.startAll();
    return stack;
  } catch (error) {
    await stack.stop();
    throw error;
  } finally {
    options.signal?.removeEventListener("abort", giveUp);
  }
}

export class Stack {
  readonly processes: ReadonlyMap<string, ManagedProcess>;
  /** Resolves with the reason when the stack has ended: a stop, or a part's death with `onExit: "stop"`. */
  readonly done: Promise<{ readonly exit: ExitInfo | undefined }>;
  private readonly guard: OrphanGuard;
  private readonly abort = new AbortController();
  private readonly listeners = new Set<(name: string, line: string) => void>();
  private finish: (value: { exit: ExitInfo | undefined }) => void = () => undefined;
  private stopping: Promise<void> | undefined;
  private readonly shouldStartAgain = earlyCalls();

  constructor(
    private readonly options: StackOptions,
    private readonly blueprint: Blueprint,
  ) {
    this.guard = new OrphanGuard(blueprint.dataDir);
    this.guard.start();
    if (options.onLine) this.listeners.add(options.onLine);
    this.done = new Promise((resolve) => {
      this.finish = resolve;
    });
    const hearScheduler = deafScheduler(() => {
      options.report?.("the scheduler runs and takes or fires no reminders (it stood still for longer than its lease, or has locked itself up): it is started again");
      void this.restart("scheduler").catch((error: unknown) => { options.report?.(`the scheduler could not be started again: ${String(error)}`); });
    });
    const hosts = new Set(blueprint.instances.filter(({ appId }) => appId === "sessions").map(({ name }) => name));
    this.processes = new Map(
      blueprint.specs.map((spec) => [
        spec.name,
        new ManagedProcess(spec, {
          onLine: (name, line) => {
            if ((spec.kind === "scheduler" || hosts.has(name)) && this.stopping === undefined) hearScheduler(line);
            for (const listener of this.listeners) listener(name, line);
          },
          onExit: (exit) => {
            this.takeExit(exit);
          },
          onSpawn: (identity) => {
            this.guard.add(identity);
          },
          onGone: (pid) => {
            this.guard.remove(pid);
          },
        }),
      ]),
    );
  }

  get dataDir(): string {
    return this.blueprint.dataDir;
  }

  get ports(): PortMap {
    return this.blueprint.ports;
  }

  get instances(): readonly Instance[] {
    return this.blueprint.instances;
  }

  /** The public addresses. Sidecar and app of an instance: `ports["sessions-2.http"]`, `ports["sessions-2.app"]`. */
  get urls(): { readonly gateway: string | undefined; readonly console: string | undefined } {
    const url = (name: string): string | undefined => (this.ports[`${name}.public`] === undefined ? undefined : `http://127.0.0.1:${this.ports[`${name}.public`]}`);
    return { gateway: url("gateway"), console: url("console") };
  }

  /** The developer's API key of this stack. */
  get apiKey(): string {
    return readFileSync(this.blueprint.secrets.apiKeyFile, "utf8").trim();
  }

  /** The environment a process of the stack runs with. */
  envOf(name: string): NodeJS.ProcessEnv {
    return this.process(name).spec.env;
  }

  /** What the CLI needs to reach this stack, as environment variables. */
  get env(): Record<string, string> {
    return {
      DOCKET_DATA_DIR: this.dataDir,
      DOCKET_PROFILE: this.options.profile,
      DOCKET_KEYS_DIR: this.blueprint.secrets.keysDir,
      DOCKET_API_KEY_FILE: this.blueprint.secrets.apiKeyFile,
      ...(this.urls.gateway === undefined ? {} : { DOCKET_GATEWAY_URL: this.urls.gateway }),
      ...(this.urls.console === undefined ? {} : { DOCKET_CONSOLE_URL: this.urls.console }),
    };
  }

  /** Starts whatever does not run, in order, and waits until all of it is ready. */
  async startAll(): Promise<void> {
    for (const kinds of START_ORDER) {
      await Promise.all(this.ofKind(kinds).map((process) => this.spawn(process)));
      if (kinds[0] === "broker") await this.waitBroker();
      if (kinds[0] === "placement") await this.wait(controlPlaneChecks(this.ports));
    }
    await this.waitReady();
    writeRunRecord({ dataDir: this.dataDir, urls: this.urls, ports: this.ports, profile: this.options.profile, apiKeyFile: this.blueprint.secrets.apiKeyFile });
  }

  /** Waits until every part is ready; throws an error that names the one that is not. */
  async waitReady(): Promise<void> {
    await this.waitBroker();
    await this.wait(controlPlaneChecks(this.ports));
    await Promise.all(this.instances.map((instance) => this.waitInstance(instance)));
  }

  /** Sends a signal to one process (SIGKILL by default) and waits until it is gone, unless the signal does not end it. */
  async kill(name: string, signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const process = this.process(name);
    process.kill(signal);
    if (signal === "SIGKILL" || signal === "SIGTERM" || signal === "SIGINT") await process.exited();
  }

  /** Sends a signal to every process at once, launcher excepted. */
  async killAll(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    await Promise.all([...this.processes.keys()].map((name) => this.kill(name, signal)));
  }

  /** Starts one process that is down, on the ports it had. Does not wait for readiness. */
  async start(name: string): Promise<void> {
    await this.spawn(this.process(name));
  }

  /** Kills (SIGKILL unless said otherwise) and starts one process. Does not wait for readiness. */
  async restart(name: string, signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    await this.kill(name, signal);
    await this.start(name);
  }

  /** SIGSTOP: the process stands still with its sockets open. */
  freeze(name: string): void {
    this.process(name).freeze();
  }

  /** SIGCONT. */
  thaw(name: string): void {
    this.process(name).thaw();
  }

  /** The last lines a process wrote. */
  logs(name: string): readonly string[] {
    return this.process(name).recentLines;
  }

  /** Hears every line of every process; returns how to stop hearing. */
  onLog(listener: (name: string, line: string) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Stops everything, in order, politely and then firmly. Idempotent. */
  stop(): Promise<void> {
    this.stopping ??= this.stopEverything();
    return this.stopping;
  }

  private async stopEverything(exit?: ExitInfo): Promise<void> {
    this.abort.abort(new LauncherError("CHILD_EXITED", exit ? `The start was given up: ${describeExit(exit)}.` : "The stack was stopped.", exit ? `Its log ${this.process(exit.name).spec.logFile} says why. Correct that and start again.` : "Start it again."));
    for (const kinds of STOP_ORDER) await Promise.all(this.ofKind(kinds).map((process) => process.stop(this.options.graceMs ?? 6_000)));
    removeRunRecord(this.dataDir);
    this.guard.close();
    this.finish({ exit });
  }

  private takeExit(exit: ExitInfo): void {
    if (!exit.unexpected || this.stopping) return;
    if (this.process(exit.name).spec.kind === "daprd" && this.shouldStartAgain(this.logs(exit.name))) {
      this.options.report?.(`${exit.name} died of an actor call that came before it was ready: it is started again`);
      void this.start(exit.name).catch((error: unknown) => { this.options.report?.(`${exit.name} could not be started again: ${String(error)}`); });
      return;
    }
    this.options.onUnexpectedExit?.(exit, this.logs(exit.name));
    if (this.options.onExit === "stop") this.stopping = this.stopEverything(exit);
  }

  private async spawn(process: ManagedProcess): Promise<void> {
    if (this.stopping) return;
    // An etcd folder or socket needs its parent; names of dead sidecars must not be resolved.
    mkdirSync(`${this.dataDir}/state`, { recursive: true });
    if (process.spec.kind === "placement" && !this.anyRunning("daprd")) rmSync(`${this.dataDir}/names.db`, { force: true });
    await process.start();
  }

  private async waitBroker(): Promise<void> {
    const { streams } = this.blueprint;
    if (streams === undefined) return;
    try {
      await prepareStreams({
        ...streams,
        deadlineMs: this.options.readyTimeoutMs ?? 60_000,
        dropConsumers: !this.anyRunning("daprd"),
      });
    } catch (error) {
      const broker = this.processes.get("broker");
      const problem = `broker: its streams could not be prepared: ${String(error)}`;
      if (broker === undefined) throw new LauncherError("NOT_READY", `${problem}\n  It is the server at ${streams.url}.`, "It must run with JetStream on (nats-server -js), and DOCKET_NATS_TOKEN must open it.", { cause: error });
      const tail = broker.recentLines.slice(-8).map((line) => `    ${line}`).join("\n");
      throw new LauncherError("NOT_READY", `${problem}\n  Last lines of ${broker.spec.logFile}:\n${tail}`, "Look into its log. A broken store is cured by removing the folder \"nats\" in the data directory: events on their way are lost then.", { cause: error });
    }
  }

  private waitInstance(instance: Instance): Promise<void> {
    const tokens = this.blueprint.tokens[instance.name];
    return tokens === undefined ? Promise.resolve() : this.wait(instanceChecks(instance, this.ports, tokens, this.blueprint.components));
  }

  private wait(checks: Parameters<typeof awaitChecks>[0]): Promise<void> {
    return awaitChecks(checks, {
      deadlineMs: this.options.readyTimeoutMs ?? 60_000,
      processes: this.processes,
      signal: this.abort.signal,
      ...(this.options.onReady ? { onReady: this.options.onReady } : {}),
    });
  }

  private ofKind(kinds: readonly string[]): ManagedProcess[] {
    return [...this.processes.values()].filter((process) => kinds.includes(process.spec.kind));
  }

  private anyRunning(kind: string): boolean {
    return this.ofKind([kind]).some((process) => process.running);
  }

  private process(name: string): ManagedProcess {
    const process = this.processes.get(name);
    if (process) return process;
    throw new LauncherError("OPTION_INVALID", `The stack has no process "${name}".`, `It has: ${[...this.processes.keys()].join(", ")}.`);
  }
}

/** "gateway exited with code 1" */
export function describeExit(exit: ExitInfo): string {
  return `${exit.name} ${exit.signal === null ? `exited with code ${exit.code ?? "unknown"}` : `was ended by ${exit.signal}`}`;
}
