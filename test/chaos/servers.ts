/**
 * Owns: PostgreSQL and RabbitMQ of a chaos run's own: servers with their own folder and ports, each behind a TCP proxy, that may be killed,
 * stopped and started. The machine's shared servers are never touched.
 */
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { answers } from "../../src/launcher/externals.js";
import { choosePorts } from "../../src/launcher/ports.js";
import { eventually } from "../support/cluster.js";
import { TcpProxy, type TcpMode } from "../support/tcp-proxy.js";

const START_MS = 60_000;

type ServerName = "broker" | "database";
interface Server {
  readonly name: ServerName;
  readonly proxy: TcpProxy;
  start(): ChildProcess;
  isUp(): Promise<boolean>;
  child: ChildProcess | undefined;
  /** Lives as long as the run: not what a fault is about. */
  readonly helper?: ChildProcess;
}

export interface Servers {
  /** Addresses through the proxies, as the launcher takes them. */
  readonly env: Readonly<Record<string, string>>;
  /** PostgreSQL without a proxy in between. */
  readonly directPostgres: string;
  has(name: string): boolean;
  restart(name: string): Promise<void>;
  signal(name: string, signal: NodeJS.Signals): void;
  network(name: ServerName, mode: TcpMode): void;
  calm(): void;
  stop(): Promise<void>;
}

/** Why `production` cannot run on this machine; undefined when it can. */
export function missingServers(): string | undefined {
  if (binaries("postgres") === undefined) return "no PostgreSQL server is installed (/usr/lib/postgresql)";
  if (rabbitmq() === undefined) return "no RabbitMQ server is installed (rabbitmq-server)";
  return undefined;
}

/** Starts both and waits until they answer. */
export async function startServers(): Promise<Servers> {
  const missing = missingServers();
  if (missing !== undefined) throw new Error(`the profile "production" cannot run here: ${missing}`);
  // Not below the checkout: PostgreSQL runs as a user of its own, who has to get there.
  const home = mkdtempSync(join(tmpdir(), "docket-chaos-"));
  chmodSync(home, 0o755);
  const ports = await choosePorts({ wishes: { postgres: undefined, amqp: undefined, dist: undefined, epmd: undefined }, mode: "free", overrides: {} });
  const servers = new Map<string, Server>();
  // Also when this process ends by a fault of its own.
  const onExit = (): void => { for (const { child, helper } of servers.values()) { toAll(child, "SIGKILL"); toAll(helper, "SIGKILL"); } };
  process.once("exit", onExit);
  try {
    servers.set("database", await postgresServer(join(home, "postgres"), ports["postgres"] ?? 0));
    servers.set("broker", await rabbitServer(join(home, "rabbitmq"), { amqp: ports["amqp"] ?? 0, dist: ports["dist"] ?? 0, epmd: ports["epmd"] ?? 0 }));
  } catch (error) {
    for (const server of servers.values()) await end(server);
    rmSync(home, { recursive: true, force: true });
    throw error;
  }
  const of = (name: string): Server => {
    const server = servers.get(name);
    if (server === undefined) throw new Error(`there is no server "${name}"`);
    return server;
  };
  return {
    env: { DOCKET_POSTGRES_URL: `postgres://docket@127.0.0.1:${String(of("database").proxy.port)}/docket`, DOCKET_RABBITMQ_URL: `amqp://guest:guest@127.0.0.1:${String(of("broker").proxy.port)}/` },
    directPostgres: `postgres://docket@127.0.0.1:${String(ports["postgres"])}/docket`,
    has: (name) => servers.has(name),
    restart: async (name) => {
      const server = of(name);
      await killed(server.child);
      await begun(server);
    },
    signal: (name, signal) => { toAll(of(name).child, signal); },
    network: (name, mode) => { of(name).proxy.set(mode); },
    calm: () => { for (const server of servers.values()) { server.proxy.set({ do: "pass" }); toAll(server.child, "SIGCONT"); } },
    stop: async () => {
      process.off("exit", onExit);
      for (const server of servers.values()) await end(server);
      rmSync(home, { recursive: true, force: true });
    },
  };
}

async function postgresServer(home: string, port: number): Promise<Server> {
  const bin = binaries("postgres")!;
  const user = asUser("/var/lib/postgresql");
  mkdirSync(home, { recursive: true });
  if (user.uid !== undefined) { chownSync(home, user.uid, user.gid!); chmodSync(home, 0o700); }
  execFileSync(join(bin, "initdb"), ["-D", join(home, "data"), "-U", "docket", "-A", "trust", "--no-sync"], { stdio: "ignore", cwd: home, ...user });
  const server: Server = {
    name: "database", proxy: await TcpProxy.start({ host: "127.0.0.1", port }),
    start: () => spawn(join(bin, "postgres"), ["-D", join(home, "data"), "-p", String(port), "-k", home, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "max_connections=300"], { stdio: "ignore", detached: true, cwd: home, ...user }),
    isUp: () => withClient(port, () => Promise.resolve()).then(() => true, () => false),
    child: undefined,
  };
  await begun(server);
  await withClient(port, (client) => client.query("CREATE DATABASE docket"));
  return server;
}

async function withClient(port: number, use: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client(`postgres://docket@127.0.0.1:${String(port)}/postgres`);
  client.on("error", () => undefined);
  try {
    await client.connect();
    await use(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function rabbitServer(home: string, ports: { amqp: number; dist: number; epmd: number }): Promise<Server> {
  const binary = rabbitmq()!;
  mkdirSync(join(home, "data"), { recursive: true });
  writeFileSync(join(home, "rabbitmq.conf"), `listeners.tcp.1 = 127.0.0.1:${String(ports.amqp)}\nlog.console = false\nloopback_users.guest = true\n`);
  writeFileSync(join(home, "plugins"), "[].\n");
  const env = {
    PATH: process.env["PATH"] ?? "", HOME: home, LANG: "C.UTF-8", RABBITMQ_NODENAME: `chaos${String(ports.amqp)}@localhost`, RABBITMQ_CONFIG_FILE: join(home, "rabbitmq"), RABBITMQ_MNESIA_BASE: join(home, "data"),
    RABBITMQ_LOG_BASE: join(home, "log"), RABBITMQ_ENABLED_PLUGINS_FILE: join(home, "plugins"), RABBITMQ_DIST_PORT: String(ports.dist), ERL_EPMD_PORT: String(ports.epmd), ERL_EPMD_ADDRESS: "127.0.0.1",
    RABBITMQ_PID_FILE: join(home, "pid"), RABBITMQ_ERLANG_COOKIE: "chaos",
  };
  const server: Server = {
    name: "broker", proxy: await TcpProxy.start({ host: "127.0.0.1", port: ports.amqp }),
    start: () => spawn(binary, [], { stdio: "ignore", detached: true, cwd: home, env }),
    isUp: () => answers("rabbitmq", `127.0.0.1:${String(ports.amqp)}`),
    child: undefined,
    // Erlang would start one by itself, which nobody would end.
    helper: spawn("epmd", ["-port", String(ports.epmd), "-address", "127.0.0.1"], { stdio: "ignore", cwd: home }),
  };
  await begun(server);
  return server;
}

/** Starts it, and again where it ends at once (what its predecessor left is not gone yet). Leaves nothing behind when it does not come up. */
async function begun(server: Server): Promise<void> {
  try {
    await eventually(`the ${server.name} answers`, async () => {
      if (isGone(server.child)) server.child = server.start();
      return (await server.isUp()) ? true : undefined;
    }, START_MS);
  } catch (error) {
    await end(server);
    throw error;
  }
}

async function end(server: Server): Promise<void> {
  await killed(server.child);
  await killed(server.helper);
  await server.proxy.close();
}

/** Erlang's port helpers and PostgreSQL's backends are groups of their own: found by their parents before those are gone. */
function toAll(child: ChildProcess | undefined, signal: NodeJS.Signals): void {
  if (child?.pid === undefined || isGone(child)) return;
  for (const pid of [child.pid, ...descendants(child.pid)]) {
    try {
      process.kill(pid, signal);
    } catch {
      // It has ended by itself meanwhile.
    }
  }
}

function isGone(child: ChildProcess | undefined): boolean { return child === undefined || child.exitCode !== null || child.signalCode !== null; }

async function killed(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || isGone(child)) return;
  const gone = once(child, "exit");
  toAll(child, "SIGKILL");
  await gone;
}

function descendants(pid: number): number[] {
  const parents = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map((name) => [Number(name), parentOf(Number(name))] as const);
  const below = (of: number): number[] => parents.filter(([, parent]) => parent === of).flatMap(([child]) => [child, ...below(child)]);
  return below(pid);
}

function parentOf(pid: number): number {
  try {
    return Number(/^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${String(pid)}/status`, "utf8"))?.[1]);
  } catch {
    return 0;
  }
}

function asUser(ownersHome: string): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const { uid, gid } = statSync(ownersHome);
  return { uid, gid };
}

function binaries(tool: string): string | undefined {
  const root = "/usr/lib/postgresql";
  return statSync(root, { throwIfNoEntry: false }) === undefined ? undefined
    : readdirSync(root).sort().reverse().map((version) => join(root, version, "bin")).find((bin) => statSync(join(bin, tool), { throwIfNoEntry: false }) !== undefined);
}

function rabbitmq(): string | undefined {
  // Not Debian's wrapper, which logs and runs elsewhere.
  return ["/usr/lib/rabbitmq/bin", ...(process.env["PATH"] ?? "").split(":"), "/usr/sbin"].map((dir) => join(dir, "rabbitmq-server")).find((file) => statSync(file, { throwIfNoEntry: false }) !== undefined);
}
