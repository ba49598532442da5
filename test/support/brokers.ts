/** Owns: a broker, or a part of one, of a test's own, for the profiles whose broker the launcher does not start; gone after `drop`. */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { CHANNELS } from "../../src/contracts/channels.js";
import { writeBrokerConfig } from "../../src/launcher/broker.js";
import { answers } from "../../src/launcher/externals.js";
import { choosePorts } from "../../src/launcher/ports.js";
import { locateNats, locateTestServer } from "../../src/launcher/runtime/locate.js";
import { eventually, REPO_ROOT } from "./cluster.js";
import { startRedis } from "./redis.js";

const run = promisify(execFile);
const PARTITIONS = 6;
/** RabbitMQ is one server for the whole machine; each test has a virtual host of its own in it. */
const RABBITMQ = "127.0.0.1:5672";

export interface TestBroker {
  /** Name and version, for the table. */
  readonly version: string;
  /** What the launcher needs to reach it. */
  readonly env: Readonly<Record<string, string>>;
  drop(): Promise<void>;
}

/** NATS with JetStream, a server of its own. */
export async function startNats(): Promise<TestBroker> {
  const binary = await locateNats({ root: REPO_ROOT, report: () => undefined });
  const folder = mkdtempSync(join(tmpdir(), "docket-nats-"));
  const port = await freePort();
  const token = randomUUID();
  const server = spawn(binary, ["-c", writeBrokerConfig(folder, port, token)], { stdio: "ignore" });
  await eventually("NATS answers", async () => ((await answers("nats", `127.0.0.1:${String(port)}`)) ? true : undefined));
  return {
    version: `NATS JetStream ${await natsVersion(binary)}, fsync on each message`,
    env: { DOCKET_NATS_URL: `nats://127.0.0.1:${String(port)}`, DOCKET_NATS_TOKEN: token },
    drop: async () => {
      await end(server);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** "2.15.2" */
export async function natsVersion(binary?: string): Promise<string> {
  const { stdout } = await run(binary ?? await locateNats({ root: REPO_ROOT, report: () => undefined }), ["--version"]);
  return /\d+\.\d+\.\d+/.exec(stdout)?.[0] ?? stdout.trim();
}

/** Redis, a server of its own. */
export async function startRedisBroker(): Promise<TestBroker> {
  const redis = await startRedis();
  const { stdout } = await run("redis-server", ["--version"]);
  return { version: `Redis Streams ${/v=(\S+)/.exec(stdout)?.[1] ?? ""}, nothing on disk`, env: { DOCKET_REDIS_HOST: redis.host }, drop: () => redis.stop() };
}

/** Why there is no RabbitMQ to test on; undefined when there is one. */
export async function missingRabbitmq(): Promise<string | undefined> {
  if (!(await answers("rabbitmq", RABBITMQ))) return `no RabbitMQ answers at ${RABBITMQ}`;
  return run("rabbitmqctl", ["version"]).then(() => undefined, () => "no rabbitmqctl to make a virtual host with");
}

/** A virtual host of its own in the RabbitMQ of this machine. */
export async function createVhost(): Promise<TestBroker> {
  const name = `docket-test-${randomUUID()}`;
  const { stdout } = await run("rabbitmqctl", ["version"]);
  await run("rabbitmqctl", ["add_vhost", name]);
  await run("rabbitmqctl", ["set_permissions", "-p", name, "guest", ".*", ".*", ".*"]);
  return {
    version: `RabbitMQ ${stdout.trim().split("\n").at(-1) ?? ""}, durable queues, persistent messages, confirms`,
    env: { DOCKET_RABBITMQ_URL: `amqp://guest:guest@${RABBITMQ}/${name}` },
    drop: async () => { await run("rabbitmqctl", ["delete_vhost", name]); },
  };
}

/** Kafka's protocol from memory (runtime/kfake), a server of its own. */
export async function startKafka(): Promise<TestBroker> {
  const binary = await locateTestServer("kfake", { root: REPO_ROOT, report: (line) => process.stderr.write(`[kfake] ${line}\n`) });
  const port = await freePort();
  const server = spawn(binary, ["-port", String(port), "-partitions", String(PARTITIONS), "-topics", Object.values(CHANNELS).map((channel) => channel.topic).join()], { stdio: ["pipe", "ignore", "ignore"] });
  await eventually("kfake answers", async () => ((await answers("kafka", `127.0.0.1:${String(port)}`)) ? true : undefined));
  const version = /kfake (\S+)/.exec(readFileSync(join(REPO_ROOT, "runtime/kfake/go.mod"), "utf8"))?.[1] ?? "";
  return { version: `Kafka's protocol by kfake ${version}, ${String(PARTITIONS)} partitions, nothing on disk`, env: { DOCKET_KAFKA_BROKERS: `127.0.0.1:${String(port)}` }, drop: () => end(server) };
}

async function freePort(): Promise<number> {
  const { broker = 0 } = await choosePorts({ wishes: { broker: undefined }, mode: "free", overrides: {} });
  return broker;
}

async function end(server: ChildProcess): Promise<void> {
  server.kill("SIGKILL");
  if (server.exitCode === null && server.signalCode === null) await once(server, "exit");
}
