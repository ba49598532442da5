/**
 * Alerts fire when their condition is caused on the real stack, read by a real Prometheus. The rules are those of observability/alerts.yaml at another
 * speed: a minute is a second, and five minutes of waiting are five seconds. The last tests take ever more of the stack away.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomUUID } from "node:crypto";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { actorIdOf } from "../../src/contracts/ids.js";
import { choosePorts } from "../../src/launcher/ports.js";
import { REPO_ROOT } from "../support/cluster.js";
import { eventually, freshSession, startDocket, type Docket } from "../support/docket.js";
import { agentsWith } from "../support/fixture-agents.js";
import { startPrometheus, type Prometheus } from "../support/prometheus.js";
import { StoreView } from "../support/store-view.js";

const APPS = ["gateway", "sessions", "tools", "console"] as const;
const RULES = readFileSync(join(REPO_ROOT, "observability/alerts.yaml"), "utf8");
/** Alerts that were seen firing. */
const fired = new Set<string>();
let home: string;
let agents: string;
let model: Server;
let docket: Docket;
let prometheus: Prometheus;

/** A model that always wants to poke, and is dear. */
async function startModel(): Promise<Server> {
  const server = createServer((req, res) => {
    req.resume().on("end", () => {
      const chunk = (more: object) => `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "any", choices: [], ...more })}\n\n`;
      const call = { index: 0, id: `call_${randomUUID()}`, type: "function", function: { name: "poke", arguments: "{}" } };
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(chunk({ choices: [{ index: 0, delta: { role: "assistant", tool_calls: [call] }, finish_reason: null }] }));
      res.write(chunk({ choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] }));
      res.end(`${chunk({ usage: { prompt_tokens: 1_000_000, completion_tokens: 1, total_tokens: 1_000_001 } })}data: [DONE]\n\n`);
    });
  });
  await new Promise<void>((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  return server;
}

/** Minutes are seconds, an hour is a minute, limits of 300 s and 60 s are 5 s and 1 s. */
const faster = (rules: string): string => rules.replace(/\b1h\b/g, "60s").replace(/\b(\d+)m\b/g, "$1s").replace(/> 300\b/g, "> 5").replace(/lag_seconds\) > 60\b/g, "lag_seconds) > 1");

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "docket-alerts-"));
  mkdirSync(join(REPO_ROOT, ".docket"), { recursive: true });
  agents = mkdtempSync(join(REPO_ROOT, ".docket/alerts-"));
  model = await startModel();
  const { agentsDir, scriptsDir } = await agentsWith(agents, [{ folder: "alert-agent", name: "circling" }], ["assistant"]);
  const ports = await choosePorts({ wishes: Object.fromEntries([...APPS, "prometheus"].map((name) => [name, undefined])), mode: "free", overrides: {} });
  const all = { DOCKET_AGENTS_DIR: agentsDir, DOCKET_SCRIPTS_DIR: scriptsDir };
  const servers = { dear: { baseUrl: `http://127.0.0.1:${String((model.address() as AddressInfo).port)}/v1`, apiKey: "none" } };
  const dear = { DOCKET_MODEL_SERVERS: JSON.stringify(servers), DOCKET_MODEL_PRICES: JSON.stringify({ "dear:any": { input: 4, output: 4, cacheRead: 0, cacheWrite: 0 } }) };
  docket = await startDocket({ extraEnv: Object.fromEntries(APPS.map((app) => [app, { ...all, ...(app === "sessions" ? dear : {}), DOCKET_METRICS_PORT: String(ports[app]) }])) });
  prometheus = await startPrometheus(home, { port: ports["prometheus"] ?? 0, targets: Object.fromEntries(APPS.map((app) => [app, ports[app] ?? 0])), rules: faster(RULES) });
});
afterAll(async () => {
  prometheus.stop();
  await docket.close();
  model.close();
  rmSync(home, { recursive: true, force: true });
  rmSync(agents, { recursive: true, force: true });
});

async function fires(alert: string, labels: Record<string, string> = {}, timeoutMs = 60_000): Promise<void> {
  await eventually(`${alert} fires`, async () => (await prometheus.firing()).find((found) => found["alertname"] === alert && Object.entries(labels).every(([name, value]) => found[name] === value)), timeoutMs);
  fired.add(alert);
}

/** A prompt whose question to a person, and whose event, expire then. */
async function asksUntil(prefix: string, expiresAtMs: number): Promise<void> {
  const session = freshSession(prefix);
  expect((await docket.gateway("POST", `/v1/sessions/${session}/events`, { text: "refund 1200 cents of order 1001", expiresAt: new Date(expiresAtMs).toISOString() })).status).toBe(202);
  await docket.openApproval(session);
}

const isUp = (app: string, up: 0 | 1): Promise<unknown> => eventually(`Prometheus sees ${app} ${up === 1 ? "up" : "down"}`, async () => (await prometheus.value(`up{job="docket-${app}"}`) === up ? true : undefined), 60_000);

async function circles(): Promise<void> {
  const session = freshSession("circling");
  await docket.prompt(session, "go", { agent: "circling" });
  await eventually("the step limit", async () => ((await docket.session(session)).summary.status === "ESCALATED" ? true : undefined));
}

describe("on the real stack", () => {
  it("nothing fires while all is well", async () => {
    // What has never happened is there as zero, so that its first time is an increase.
    await eventually("all apps were scraped", async () => (await prometheus.value("count(up == 1)") === APPS.length && await prometheus.value('docket_escalations_total{agent="circling",reason="step_limit"}') === 0 ? true : undefined));
    await docket.ended(await docket.prompt(freshSession("well"), "hello"));
    await eventually("the run was scraped", async () => (await prometheus.value('sum(docket_runs_ended_total{agent="assistant"})') === 1 ? true : undefined));
    expect(await prometheus.firing()).toEqual([]);
  });

  it("step limits and spend", async () => {
    for (let run = 0; run < 5; run += 1) await circles();
    await fires("DocketStepLimitsRising", { agent: "circling" });
    await fires("DocketSpend", { agent: "circling" });
  });

  it("dead letters", async () => {
    await docket.test.callSidecar("gateway", "/v1.0/publish/tasks/agent.tasks.incoming", { method: "POST", body: "this is not json", headers: { "content-type": "text/plain" } });
    await fires("DocketDeadLettersArriving");
  });

  it("an approval that expires soon", async () => {
    await asksUntil("expiring", Date.now() + 30 * 60_000);
    await fires("DocketApprovalsNearExpiry");
  });

  it("a console whose database takes nothing: deliveries are repeated, the lists fall behind, and catch up", async () => {
    const lists = new Database(join(docket.dataDir, "console.db"), { timeout: 10_000 });
    lists.exec("CREATE TRIGGER held BEFORE INSERT ON journal_heads BEGIN SELECT RAISE(ABORT, 'held back'); END");
    const session = freshSession("held");
    try {
      await docket.ended(await docket.prompt(session, "hello"));
      await Promise.all([fires("DocketDeliveriesRepeated", { channel: "journal" }), fires("DocketProjectorBehind")]);
      expect(new StoreView(docket.dataDir).shown().has(session)).toBe(false);
    } finally {
      lists.exec("DROP TRIGGER held");
      lists.close();
    }
    await eventually("the lists have caught up", () => (new StoreView(docket.dataDir).shown().get(session)?.status === "IDLE" ? true : undefined), 30_000);
  });

  it("a stored session that lost a journal entry", async () => {
    const session = freshSession("damaged");
    await docket.ended(await docket.prompt(session, "hello"));
    const state = await eventually("the session is at rest", () => {
      const found = new StoreView(docket.dataDir).session(session);
      return found?.status === "IDLE" && found.outbox.length === 0 && !found.guard.armed ? found : undefined;
    }, 40_000);
    await docket.test.stack.kill("sessions");
    const store = new Database(join(docket.dataDir, "state/sessions.db"), { timeout: 10_000 });
    expect(store.prepare("DELETE FROM state WHERE key = ?").run(`journal:${actorIdOf("default", session)}:${String(state.rev - 1).padStart(12, "0")}`).changes).toBe(1);
    store.close();
    await isUp("sessions", 0);
    await docket.test.stack.start("sessions");
    await docket.test.stack.waitReady();
    await isUp("sessions", 1);
    expect(await docket.ended(await docket.prompt(session, "are you well?"), 60_000)).toMatchObject({ outcome: "dead_lettered", code: "session_quarantined" });
    await fires("DocketSessionQuarantined");
  });

  it("a worker that is away: consumer, outbox, and the agent that falls silent", async () => {
    await docket.test.stack.kill("tools");
    await fires("DocketConsumerDown", { job: "docket-tools" });
    const silent = fires("DocketAgentSilent", { agent: "assistant" }, 120_000);
    let over = false;
    const asking = (async () => {
      while (!over) {
        await docket.prompt(freshSession("silent"), "where is order 1001?");
        await new Promise((next) => { setTimeout(next, 2_000); });
      }
    })();
    await Promise.all([fires("DocketOutboxStuck"), silent]).finally(() => { over = true; });
    await asking;
  });

  it("session hosts that are away: the inbox, and a question that expires meanwhile", async () => {
    await asksUntil("due", Date.now() + 20_000);
    await docket.test.stack.kill("sessions");
    await docket.prompt(freshSession("waiting"), "hello");
    await Promise.all([fires("DocketInboxStuck"), fires("DocketSessionsOverdue")]);
  });

  it("each alert of the file has fired here", () => {
    const { groups } = parse(RULES) as { groups: { rules: { alert: string }[] }[] };
    expect([...fired].sort()).toEqual(groups.flatMap(({ rules }) => rules.map(({ alert }) => alert)).sort());
  });
});
