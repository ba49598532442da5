/**
 * Owns: everything a chaos run runs against: Docket with two session hosts and two workers, a fault proxy before every app, the model,
 * the tools' book, the files that arm fault points and move clocks, and for `production` servers of its own behind TCP proxies.
 */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { APPS, CHANNELS, type AppId, type ChannelName } from "../../src/contracts/channels.js";
import { chooseInstances, portWishes } from "../../src/launcher/plan.js";
import { choosePorts } from "../../src/launcher/ports.js";
import { readRunFile } from "../../src/launcher/run-file.js";
import { REPO_ROOT } from "../support/cluster.js";
import { startDocket, type Docket } from "../support/docket.js";
import { FaultProxy } from "../support/fault-proxy.js";
import { restartPolitely } from "../support/rolling.js";
import { APP_COPIES as INSTANCES, type Target } from "./catalog.js";
import { Load } from "./load.js";
import { ChaosModel } from "./model.js";
import type { ChaosProfile } from "./options.js";
import { startServers, type Servers } from "./servers.js";
import { postgresStores, sqliteStores, type Stores } from "./stores.js";

const APP_OF: Record<"gateway" | "host" | "worker" | "console", AppId> = { gateway: "gateway", host: "sessions", worker: "tools", console: "console" };
const DISK_MB = 256;
const REPLICAS = { sessions: 2, tools: 2 } as const;
/** Chosen together, so that none is taken twice: those of the stack, and where each app listens behind its proxy. */
const STACK_PORTS = portWishes(chooseInstances(readRunFile(join(REPO_ROOT, "dapr.yaml")), [], REPLICAS));
const OWN_PORTS = Object.fromEntries(INSTANCES.map((name) => [`${name}.own`, undefined]));

export interface WorldOptions { readonly profile: ChaosProfile; readonly keep: boolean; readonly clocks: boolean; readonly disk: boolean; /** Gives up a start that is under way. */ readonly signal?: AbortSignal; readonly say: (line: string) => void }

export class World {
  #closing: Promise<void> | undefined;

  private constructor(
    readonly docket: Docket, readonly load: Load, readonly stores: Stores, readonly model: ChaosModel, readonly servers: Servers | undefined,
    /** Why the disk cannot be filled; undefined when it can. */
    readonly noDisk: string | undefined,
    readonly bookFile: string,
    private readonly home: string, private readonly proxies: ReadonlyMap<string, FaultProxy>, public keep: boolean,
  ) {}

  static async start(options: WorldOptions): Promise<World> {
    mkdirSync(join(REPO_ROOT, ".docket"), { recursive: true });
    const home = mkdtempSync(join(REPO_ROOT, ".docket/chaos-"));
    const undo: (() => unknown)[] = [];
    try {
      const dataDir = join(home, "data");
      mkdirSync(join(dataDir, "state"), { recursive: true });
      const noDisk = options.disk ? mountDisk(join(dataDir, "state")) : "no fault of the plan needs it";
      if (noDisk === undefined) undo.push(() => { unmount(join(dataDir, "state")); });
      const servers = options.profile === "production" ? await startServers() : undefined;
      if (servers !== undefined) undo.push(() => servers.stop());
      const model = await ChaosModel.start();
      undo.push(() => model.close());
      const ports = await choosePorts({ wishes: { ...STACK_PORTS, ...OWN_PORTS }, mode: "free", overrides: {} });
      const proxies = new Map(INSTANCES.map((name) => [name, new FaultProxy({ targetPort: ports[`${name}.own`] ?? 0 })]));
      undo.push(() => Promise.all([...proxies.values()].map((proxy) => proxy.close())));
      const bookFile = join(home, "book.db");
      let listening = false;
      const docket = await startDocket({
        profile: servers === undefined ? "embedded" : "rabbitmq", dataDir, sessionsReplicas: REPLICAS.sessions, toolsReplicas: REPLICAS.tools,
        portOverrides: Object.fromEntries(Object.keys(STACK_PORTS).map((name) => [name, ports[name] ?? 0])),
        extraEnv: environment(home, { ports, model: model.baseUrl, bookFile, clocks: options.clocks }, agentsIn(home)),
        ...(options.signal === undefined ? {} : { signal: options.signal }),
        ...(servers === undefined ? {} : { env: { ...process.env, ...servers.env } }),
        // The launcher has found its ports free by then, and no sidecar runs yet.
        onReady: (label) => { if (label === "placement" && !listening) { listening = true; for (const [name, proxy] of proxies) proxy.listen(ports[`${name}.app`] ?? 0).catch((error: unknown) => { options.say(String(error)); }); } },
      });
      const stores = servers === undefined ? sqliteStores(dataDir) : postgresStores(servers.directPostgres);
      const load = new Load(docket, stores);
      load.start();
      return new World(docket, load, stores, model, servers, noDisk, bookFile, home, proxies, options.keep);
    } catch (error) {
      for (const step of undo.reverse()) await step();
      if (!options.keep) rmSync(home, { recursive: true, force: true });
      throw error;
    }
  }

  /** Folder of logs and stores. */
  get dataDir(): string { return this.docket.dataDir; }

  /** Process names of a target, `sessions-2-daprd`; `dice` in [0,1) chooses among copies. */
  processOf(target: Target, dice: number): string {
    const [area, sidecar] = target.split("-") as [string, string | undefined];
    const app = APP_OF[area as keyof typeof APP_OF] as AppId | undefined;
    if (app === undefined) return target;
    const copies = this.copiesOf(area as keyof typeof APP_OF);
    return `${copies[Math.floor(dice * copies.length)] ?? app}${sidecar === undefined ? "" : "-daprd"}`;
  }

  copiesOf(area: keyof typeof APP_OF): string[] { return INSTANCES.filter((name) => name.replace(/-\d+$/, "") === APP_OF[area]); }

  async killAndStart(name: string): Promise<void> {
    if (this.servers?.has(name) === true) await this.servers.restart(name);
    else await this.docket.test.stack.restart(name);
  }

  /** As a rolling update does with one copy. */
  replace(name: string): Promise<void> { return restartPolitely(this.docket.test.stack, name); }

  freeze(name: string): void {
    if (this.servers?.has(name) === true) this.servers.signal(name, "SIGSTOP");
    else this.docket.test.stack.freeze(name);
  }

  thaw(name: string): void {
    if (this.servers?.has(name) === true) this.servers.signal(name, "SIGCONT");
    else this.docket.test.stack.thaw(name);
  }

  isRunning(name: string): boolean { return this.docket.test.stack.processes.get(name)?.running === true; }

  armFile(name: string): string { return join(this.home, `fault-${name}`); }
  clockFile(name: string): string { return join(this.home, `clock-${name}`); }

  /** The proxies before the apps that read a channel. */
  proxiesOf(channel: ChannelName): FaultProxy[] {
    return [...this.proxies].filter(([name]) => APPS.some((app) => app === name.replace(/-\d+$/, "") && (CHANNELS[channel].subscribers as readonly AppId[]).includes(app))).map(([, proxy]) => proxy);
  }

  /** Nothing is mistreated, stopped, armed or shifted any more. */
  calm(): void {
    for (const proxy of this.proxies.values()) proxy.set(undefined);
    this.model.set(undefined);
    this.servers?.calm();
    for (const name of this.docket.test.stack.processes.keys()) this.docket.test.stack.thaw(name);
    for (const name of INSTANCES) for (const file of [this.armFile(name), this.clockFile(name)]) writeFileSync(file, "");
  }

  /** Fills what is left of the state folder; returns how to empty it again. */
  fillDisk(): () => void {
    const ballast = join(this.dataDir, "state", "ballast");
    try {
      execFileSync("dd", ["if=/dev/zero", `of=${ballast}`, "bs=64k"], { stdio: "ignore" });
    } catch {
      // dd ends with an error when the disk is full: that is what it is for.
    }
    return () => { rmSync(ballast, { force: true }); };
  }

  /** Leaves no process behind; idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.load.stop();
    await this.stores.close();
    await this.docket.close();
    await Promise.all([...this.proxies.values()].map((proxy) => proxy.close()));
    await this.model.close();
    await this.servers?.stop();
    if (this.noDisk === undefined) this.#unmountState();
    if (!this.keep) rmSync(this.home, { recursive: true, force: true });
  }

  /** What is to be kept moves to the folder below the small disk. */
  #unmountState(): void {
    const [state, kept] = [join(this.dataDir, "state"), join(this.dataDir, "state-kept")];
    if (this.keep) cpSync(state, kept, { recursive: true });
    unmount(state);
    if (!this.keep) return;
    rmSync(state, { recursive: true, force: true });
    renameSync(kept, state);
  }
}

function environment(home: string, at: { ports: Readonly<Record<string, number>>; model: string; bookFile: string; clocks: boolean }, agentsDir: string): Record<string, Record<string, string>> {
  const copies = Object.fromEntries(INSTANCES.map((name) => [name, {
    APP_PORT: String(at.ports[`${name}.own`] ?? 0), DOCKET_FAULT_FILE: join(home, `fault-${name}`), DOCKET_CLOCK_FILE: join(home, `clock-${name}`),
  }]));
  const more = (name: string, env: Record<string, string>): void => { copies[name] = { ...copies[name]!, ...env }; };
  more("sessions", { DOCKET_MODEL_SERVERS: JSON.stringify({ chaos: { baseUrl: at.model } }), DOCKET_POLICIES_DIR: join(REPO_ROOT, "test/fixtures/chaos-load/policies"), DOCKET_DEFAULT_MODEL: "chaos:mixed" });
  more("tools", { DOCKET_TOOL_SECRET_BOOK: at.bookFile });
  const clock = at.clocks ? { NODE_OPTIONS: `--import ${pathToFileURL(join(REPO_ROOT, "test/support/clock-jump.mjs")).href}` } : {};
  return { all: { DOCKET_AGENTS_DIR: agentsDir, DOCKET_DEFAULT_AGENT: "mixed", ...clock }, ...copies };
}

/** The fixture as the loader wants it: `.js` names, and below the checkout, so that imports resolve. */
function agentsIn(home: string): string {
  const fixture = join(REPO_ROOT, "test/fixtures/chaos-load/agents/mixed");
  const agentsDir = join(home, "agents");
  mkdirSync(join(agentsDir, "mixed/tools"), { recursive: true });
  symlinkSync(join(fixture, "agent.mjs"), join(agentsDir, "mixed/agent.js"));
  symlinkSync(join(fixture, "tools/book.mjs"), join(agentsDir, "mixed/tools/book.js"));
  // By Node itself: what loads this file (vite, vitest) would not follow the links.
  const manifests = pathToFileURL(join(REPO_ROOT, "dist/src/main/manifests.js")).href;
  execFileSync(process.execPath, ["--input-type=module", "-e", `import { writeManifests } from ${JSON.stringify(manifests)}; await writeManifests(${JSON.stringify(agentsDir)}, ${JSON.stringify(join(agentsDir, "manifests.json"))});`], { stdio: ["ignore", "ignore", "inherit"] });
  return agentsDir;
}

/** A small disk of its own for the state folder. The reason where this machine gives none. */
function mountDisk(folder: string): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "a disk of a chosen size needs root on Linux";
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${String(DISK_MB)}m,mode=700`, "docket-chaos", folder], { stdio: "pipe" });
    return undefined;
  } catch (error) {
    return `no disk of a chosen size could be mounted: ${String((error as { stderr?: unknown }).stderr ?? error).trim()}`;
  }
}

function unmount(folder: string): void {
  if (existsSync(folder)) execFileSync("umount", ["-l", folder], { stdio: "ignore" });
}
