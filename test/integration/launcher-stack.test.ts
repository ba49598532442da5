/** The launcher on the real runtime: daprd, placement, scheduler and NATS, with the probe app in place of the four apps. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CHANNELS, DEAD_LETTER_TOPIC, type Channel } from "../../src/contracts/channels.js";
import type { ExitInfo } from "../../src/launcher/managed-process.js";
import { identify } from "../../src/launcher/process-identity.js";
import { readRunRecord } from "../../src/launcher/run-record.js";
import { runDoctor } from "../../src/launcher/doctor/doctor.js";
import { eventually, REPO_ROOT, startTestStack, type TestStack } from "../support/cluster.js";

interface Seen {
  readonly channel: string;
  readonly event: { readonly id: string; readonly data: unknown };
}

let cluster: TestStack;
const exits: ExitInfo[] = [];

beforeAll(async () => {
  cluster = await startTestStack({ probeApps: true, sessionsReplicas: 2, onUnexpectedExit: (exit) => exits.push(exit) });
});

afterAll(async () => {
  await cluster.close();
});

const publish = (from: string, channel: Channel, id: string, topic = channel.topic): Promise<Response> =>
  cluster.callSidecar(from, `/v1.0/publish/${channel.component}/${topic}`, {
    method: "POST",
    headers: { "content-type": "application/cloudevents+json" },
    body: JSON.stringify({ specversion: "1.0", id, source: "test", type: "com.docket.test.v1", data: { id } }),
  });

async function seenBy(instance: string, id: string): Promise<number> {
  const seen = (await (await cluster.callApp(instance, "/seen")).json()) as Seen[];
  return seen.filter((message) => message.event.id === id).length;
}

describe("a started stack", () => {
  it.each(Object.values<Channel>(CHANNELS).flatMap((channel) => channel.publishers.map((from) => ({ from, channel, name: channel.component }))))(
    "carries $name from $from to its subscriber",
    async ({ from, channel }) => {
      const id = `carry-${channel.component}-${from}`;
      expect((await publish(from, channel, id)).status).toBe(204);
      const [subscriber] = channel.subscribers;
      const hosts = subscriber === "sessions" ? ["sessions", "sessions-2"] : [subscriber!];
      await eventually(`${id} arrives`, async () => ((await Promise.all(hosts.map((host) => seenBy(host, id)))).some((count) => count > 0) ? true : undefined));
    },
  );

  it("refuses a publish by an app that the channel's scopes leave out", async () => {
    expect((await publish("gateway", CHANNELS.toolRequests, "forged-1")).status).not.toBe(204);
    expect((await publish("tools", CHANNELS.tasks, "forged-2")).status).not.toBe(204);
    expect((await publish("sessions", CHANNELS.tasks, "forged-3")).status).toBe(403);
    expect((await publish("console", CHANNELS.approvalsPending, "forged-4")).status).toBe(403);
  });

  it("gives the tool worker's sidecar publishing and its own store, and nothing else", async () => {
    expect((await cluster.callSidecar("tools", "/v1.0/actors/SessionActor/x/method/ping", { method: "PUT", body: "{}" })).status).toBeGreaterThanOrEqual(400);
    expect((await cluster.callSidecar("tools", "/v1.0/invoke/sessions/method/healthz")).status).toBeGreaterThanOrEqual(400);
    expect((await cluster.callSidecar("tools", "/v1.0/state/session-store/x")).status).toBe(400);
    expect((await cluster.callSidecar("tools", "/v1.0/state/tool-store", { method: "POST", body: '[{"key":"t","value":1}]' })).status).toBe(204);
    expect((await cluster.callSidecar("tools", "/v1.0/metadata")).status).toBe(200);
  });

  it("keeps the session store from every app but sessions, under keys without prefix", async () => {
    expect((await cluster.callSidecar("gateway", "/v1.0/state/session-store/x")).status).toBe(400);
    expect((await cluster.callSidecar("sessions", "/v1.0/state/session-store", { method: "POST", body: '[{"key":"session:shared","value":{"n":7}}]' })).status).toBe(204);
    expect(await (await cluster.callSidecar("sessions-2", "/v1.0/state/session-store/session:shared")).json()).toEqual({ n: 7 });
  });

  it("lets the gateway call the session actor", async () => {
    const reply = await cluster.callSidecar("gateway", "/v1.0/actors/SessionActor/abc/method/ping", { method: "PUT", body: "{}" });
    expect(await reply.json()).toMatchObject({ ok: true });
  });

  it("refuses whoever does not know the tokens", async () => {
    expect((await cluster.callSidecar("gateway", "/v1.0/metadata", { headers: {} })).status).toBe(200);
    const { DAPR_HTTP_PORT: sidecar, APP_PORT: app } = cluster.stack.envOf("gateway");
    expect((await fetch(`http://127.0.0.1:${sidecar}/v1.0/metadata`)).status).toBe(401);
    expect((await fetch(`http://127.0.0.1:${app}/seen`)).status).toBe(401);
  });

  it("gives each app only the secrets it may hold", () => {
    const keyOf = (name: string): unknown => cluster.stack.envOf(name)["DOCKET_SESSIONS_ACTOR_KEY"];
    expect(keyOf("sessions")).toBe(keyOf("sessions-2"));
    expect(keyOf("sessions")).toEqual(expect.any(String));
    for (const name of ["gateway", "tools", "console", "tools-daprd", "gateway-daprd"]) expect(keyOf(name)).toBeUndefined();
    for (const name of ["gateway", "sessions", "tools", "console"]) {
      expect(Object.keys(cluster.stack.envOf(name)).filter((key) => /^DOCKET_(NATS|SQLITE|REDIS)/.test(key))).toEqual([]);
    }
  });

  it("is healthy in the eyes of the doctor, and recorded for the CLI", async () => {
    const checks = await runDoctor({ root: REPO_ROOT, dataDir: cluster.dataDir });
    expect(checks.filter((check) => check.status === "fail")).toEqual([]);
    expect(checks.map((check) => check.name)).toContain("sessions-2 sidecar");
    expect(readRunRecord(cluster.dataDir)).toMatchObject({ gatewayUrl: cluster.stack.urls.gateway, consoleUrl: cluster.stack.urls.console });
  });
});

describe("a stack that loses parts", () => {
  it("reports an unexpected death once, and a killed app not at all", async () => {
    exits.length = 0;
    await cluster.callApp("console", "/crash").catch(() => undefined);
    await eventually("the exit is reported", () => (exits.length > 0 ? true : undefined));
    expect(exits).toEqual([{ name: "console", code: 3, signal: null, unexpected: true }]);
    await cluster.stack.start("console");
    await cluster.stack.kill("tools");
    await cluster.stack.start("tools");
    await cluster.stack.waitReady();
    expect(exits).toHaveLength(1);
  });

  it("delivers what was published while the subscriber was dead, without a dead letter", async () => {
    await cluster.stack.kill("tools");
    for (let n = 0; n < 5; n++) expect((await publish("sessions", CHANNELS.toolRequests, `while-dead-${n}`)).status).toBe(204);
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    await cluster.stack.start("tools");
    for (let n = 0; n < 5; n++) await eventually(`while-dead-${n} arrives`, async () => ((await seenBy("tools", `while-dead-${n}`)) > 0 ? true : undefined), 40_000);
    for (let n = 0; n < 5; n++) expect(await seenBy("console", `while-dead-${n}`)).toBe(0);
  });

  it("comes back to actor calls after placement was restarted", async () => {
    await cluster.stack.restart("placement");
    await eventually("an actor call succeeds", async () => {
      const reply = await cluster.callSidecar("gateway", "/v1.0/actors/SessionActor/after-placement/method/ping", { method: "PUT", body: "{}", signal: AbortSignal.timeout(3_000) });
      return reply.status === 200 ? true : undefined;
    }, 60_000);
  });

  it("freezes a process without closing its sockets, and thaws it", async () => {
    cluster.stack.freeze("console");
    await expect(cluster.callApp("console", "/healthz", { signal: AbortSignal.timeout(500) })).rejects.toThrow();
    cluster.stack.thaw("console");
    expect((await cluster.callApp("console", "/healthz")).status).toBe(200);
  });

  it("finds state, queued events and identity again after kill -9 of everything", async () => {
    const ports = { ...cluster.stack.ports };
    await cluster.stack.kill("sessions");
    await cluster.stack.kill("sessions-2");
    expect((await publish("gateway", CHANNELS.tasks, "queued-over-kill")).status).toBe(204);
    await cluster.stack.killAll("SIGKILL");
    await cluster.stack.startAll();
    expect(cluster.stack.ports).toEqual(ports);
    expect(await (await cluster.callSidecar("sessions", "/v1.0/state/session-store/session:shared")).json()).toEqual({ n: 7 });
    await eventually("the queued event arrives", async () => ((await seenBy("sessions", "queued-over-kill")) + (await seenBy("sessions-2", "queued-over-kill")) > 0 ? true : undefined), 60_000);
  });
});

describe("what a stack opens", () => {
  it("is on loopback only: none of its ports listens on every interface", () => {
    const ports = new Set(Object.values(cluster.stack.ports));
    const listening = ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((file) => readFileSync(file, "utf8").split("\n").slice(1))
      .map((line) => line.trim().split(/\s+/)).filter((fields) => fields[3] === "0A")
      .map((fields) => { const [address = "", port = ""] = (fields[1] ?? "").split(":"); return { address, port: parseInt(port, 16) }; })
      .filter(({ port }) => ports.has(port));
    expect(listening.length).toBeGreaterThan(15);
    expect(listening.filter(({ address }) => /^0+$/.test(address))).toEqual([]);
  });
});

describe("the end of a stack", () => {
  it("leaves no process and no record behind, and a second start finds the data", async () => {
    const pids = [...cluster.stack.processes.values()].map((process) => process.pid!);
    await cluster.stack.stop();
    expect(pids.filter((pid) => identify(pid) !== undefined)).toEqual([]);
    expect(readRunRecord(cluster.dataDir)).toBeUndefined();
    const again = await startTestStack({ probeApps: true, dataDir: cluster.dataDir });
    try {
      expect(await (await again.callSidecar("sessions", "/v1.0/state/session-store/session:shared")).json()).toEqual({ n: 7 });
      expect(DEAD_LETTER_TOPIC).toBe("agent.dlq.poison-pills");
    } finally {
      await again.close();
    }
  });
});
