/**
 * Owns: everything that a benchmark runs on, and its end: PostgreSQL with fsync, a durable broker, the real stack, the bench
 * agent, the outside world, and API keys enough that no rate limit is met. Also who burns which CPU.
 */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import pg from "pg";
import { createApiKey, readApiKeyFile, writeApiKeyFile } from "../src/platform/apikeys.js";
import { createVhost, missingRabbitmq, startNats, type TestBroker } from "../test/support/brokers.js";
import { eventually, REPO_ROOT, startTestStack, type TestStack } from "../test/support/cluster.js";
import { createDatabase, type TestDatabase } from "../test/support/database.js";
import { writeManifestsApart } from "../test/support/manifests-apart.js";
import type { BenchOptions } from "./options.js";
import { startOutside, type Outside } from "./outside.js";
import { childNamed, parentOf } from "./processes.js";

/** The gateway lets 600 requests a minute through for each principal; these stand for as many users. */
const KEYS = 200;

export interface Rig {
  readonly test: TestStack;
  readonly outside: Outside;
  readonly database: TestDatabase;
  readonly broker: TestBroker;
  readonly sql: pg.Pool;
  readonly keys: readonly string[];
  readonly gateway: string;
  readonly console: string;
  /** Where the probes in the apps leave what they counted. */
  readonly probeDir: string;
  /** The process ids to account for, by name. */
  processes(): Map<string, number>;
  close(): Promise<void>;
}

export async function startRig(options: BenchOptions): Promise<Rig> {
  const home = mkdtempSync(join(madeDir(join(REPO_ROOT, ".docket")), "bench-"));
  const ends: (() => Promise<void> | void)[] = [() => { if (!options.keep) rmSync(home, { recursive: true, force: true }); }];
  const close = async (): Promise<void> => { for (const end of ends.reverse()) await end(); };
  try {
    const outside = await startOutside();
    ends.push(() => outside.close());
    const broker = await startBroker(options.broker);
    ends.push(() => broker.drop());
    const database = await createDatabase({ durable: true });
    ends.push(() => database.drop());
    const sql = new pg.Pool({ connectionString: database.address, max: 2 });
    sql.on("error", () => undefined);
    ends.push(() => sql.end());
    const probeDir = madeDir(join(home, "probe"));
    const test = await startTestStack({
      profile: options.broker, dataDir: join(home, "data"), sessionsReplicas: options.hosts, readyTimeoutMs: 120_000,
      env: { ...process.env, ...broker.env, DOCKET_POSTGRES_URL: database.address },
      extraEnv: {
        all: {
          DOCKET_AGENTS_DIR: agentsIn(home), DOCKET_SCRIPTS_DIR: madeDir(join(home, "scripts")),
          NODE_OPTIONS: `--import ${join(REPO_ROOT, "bench/probe.mjs")}`, BENCH_PROBE_DIR: probeDir, BENCH_CPU_PROFILE: options.profile === undefined ? "0" : "1",
        },
        sessions: { OPENAI_BASE_URL: `${outside.url}/v1`, DOCKET_DEFAULT_MODEL: "openai:bench", DOCKET_DEFAULT_AGENT: "bench" },
        gateway: { DOCKET_DEFAULT_AGENT: "bench" },
        tools: { DOCKET_TOOL_SECRET_BENCH_URL: `${outside.url}/effects`, DOCKET_TOOL_CONCURRENCY: "256" },
      },
    });
    ends.push(() => test.close());
    const { stack } = test;
    const [gateway = "", console_ = ""] = [stack.urls.gateway, stack.urls.console];
    const outsiders = new Map([["postgres", await postmaster(sql)], ["broker", brokerPid(options.broker)], ["bench itself", process.pid]]);
    return {
      test, outside, database, broker, sql, gateway, console: console_, probeDir, keys: await addKeys(test.dataDir, gateway),
      processes: () => new Map([...stack.processes].flatMap(([name, process]): [string, number][] => (process.pid === undefined ? [] : [[name, process.pid]])).concat([...outsiders])),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startBroker(name: BenchOptions["broker"]): Promise<TestBroker> {
  if (name === "nats") return await startNats();
  const missing = await missingRabbitmq();
  if (missing !== undefined) throw new Error(`--broker rabbitmq cannot be measured here: ${missing}. Start one, or take --broker nats.`);
  return await createVhost();
}

/** The bench agent alone, below the checkout, so that its imports resolve. */
function agentsIn(home: string): string {
  const agentsDir = join(home, "agents");
  mkdirSync(join(agentsDir, "bench/tools"), { recursive: true });
  symlinkSync(join(REPO_ROOT, "bench/agent/agent.mjs"), join(agentsDir, "bench/agent.js"));
  symlinkSync(join(REPO_ROOT, "bench/agent/tools/record-effect.mjs"), join(agentsDir, "bench/tools/record-effect.js"));
  writeManifestsApart(agentsDir);
  return agentsDir;
}

async function addKeys(dataDir: string, gateway: string): Promise<string[]> {
  const file = join(dataDir, "keys", "api-keys.json");
  const made = Array.from({ length: KEYS }, (_, n) => createApiKey({ tenant: "default", principalId: `bench-${String(n)}`, class: "person", roles: ["admin", "approver", "operator", "viewer"], scopes: ["*"] }));
  await writeApiKeyFile(file, [...await readApiKeyFile(file), ...made.map(({ record }) => record)]);
  const keys = made.map(({ key }) => key);
  await eventually("the gateway knows the new keys", async () => {
    const reply = await fetch(`${gateway}/v1/sessions/none`, { headers: { authorization: `Bearer ${keys.at(-1) ?? ""}` } });
    return reply.status === 401 ? undefined : true;
  });
  return keys;
}

/** A backend's parent is the server. */
async function postmaster(sql: pg.Pool): Promise<number> {
  const { rows } = await sql.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  return parentOf(rows[0]?.pid ?? 0);
}

function brokerPid(name: BenchOptions["broker"]): number {
  if (name === "rabbitmq") return Number(/\d+/.exec(execFileSync("rabbitmqctl", ["eval", "os:getpid()."], { encoding: "utf8" }))?.[0]);
  return childNamed("nats.conf") ?? 0;
}

function madeDir(dir: string): string {
  mkdirSync(dir, { recursive: true });
  return dir;
}
