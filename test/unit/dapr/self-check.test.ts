/** What an app finds out about its own sidecar: each fault is a finding with its fix, none an exception; and its reports to the console. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CHANNELS } from "../../../src/contracts/channels.js";
import type { Envelope } from "../../../src/contracts/cloudevent.js";
import { APP_REPORTED, AppReport } from "../../../src/contracts/reports.js";
import { checkSidecar } from "../../../src/dapr/self-check.js";
import { Sidecar } from "../../../src/dapr/sidecar.js";
import { createLogger } from "../../../src/platform/log.js";
import { Reporter } from "../../../src/platform/reporter.js";

const names = (components: readonly string[]) => components.map((name) => ({ name }));
const GATEWAY = ["tasks", "dead-letters", "responses", "live", "inbox"];
const TOPICS = [CHANNELS.responses.topic, CHANNELS.live.topic];

describe("an app's look at its sidecar", () => {
  let server: Server;
  let sidecar: Sidecar;
  let answers: Record<string, { status: number; body?: unknown }>;
  beforeEach(async () => {
    answers = { "/v1.0/healthz/outbound": { status: 204 }, "/v1.0/metadata": { status: 200, body: { runtimeVersion: "1.18.3", components: names(GATEWAY), subscriptions: TOPICS.map((topic) => ({ topic })) } } };
    server = createServer((req, res) => { const { status, body } = answers[req.url ?? ""] ?? { status: 404 }; res.writeHead(status).end(body === undefined ? "" : JSON.stringify(body)); });
    await new Promise<void>((resolve) => { server.listen(0, "127.0.0.1", resolve); });
    sidecar = new Sidecar({ baseUrl: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}` });
  });
  afterEach(async () => {
    await sidecar.close();
    server.closeAllConnections();
    await new Promise((resolve) => { server.close(resolve); });
  });
  const statuses = async (): Promise<string[]> => (await checkSidecar(sidecar, "gateway", ["inbox"])).checks.map(({ name, status, detail, fix }) => { if (status === "fail") expect(fix).not.toBe(""); return `${name} ${status} ${detail}`; });

  it("is well where it has loaded what the app needs", async () => {
    expect(await statuses()).toEqual(["sidecar ok healthy", "components ok 5 there", "subscriptions ok 2 there"]);
    expect(await checkSidecar(sidecar, "gateway", ["inbox"])).toMatchObject({ runtime: "1.18.3", components: [...GATEWAY].sort(), subscriptions: [...TOPICS].sort() });
  });
  it("names what is missing", async () => {
    answers["/v1.0/metadata"] = { status: 200, body: { components: names(["tasks", "dead-letters", "responses", "inbox"]), subscriptions: null } };
    expect(await statuses()).toEqual(["sidecar ok healthy", "components fail missing: live", `subscriptions fail missing: ${TOPICS.join(", ")}`]);
  });
  it("says so where it is sick, closed to questions, or gone", async () => {
    answers["/v1.0/metadata"] = { status: 403 };
    expect(await statuses()).toEqual(["sidecar ok healthy"]);
    answers["/v1.0/healthz/outbound"] = { status: 500, body: { errorCode: "ERR_HEALTH_NOT_READY" } };
    expect((await statuses())[0]).toContain("sidecar fail HTTP 500");
    server.closeAllConnections();
    await new Promise((resolve) => { server.close(resolve); });
    expect((await statuses())[0]).toMatch(/^sidecar fail .*no answer/);
  });
});

describe("a reporter", () => {
  const sent: Envelope[] = [];
  const clock = { ms: 1_000, nowMs() { return this.ms; } };
  const reporter = (publish: (envelope: Envelope) => Promise<void>): Reporter => new Reporter({ app: "tools", instance: "w-1", look: () => Promise.resolve({ checks: [], tools: ["refund"] }), publish, clock, logger: createLogger("test", "silent") });
  const read = (): AppReport[] => sent.map(({ type, data }) => { expect(type).toBe(APP_REPORTED); return AppReport.parse(JSON.parse(data)); });
  beforeEach(() => { sent.length = 0; });

  it("says how the app is, each time under an id of its own, and takes its leave", async () => {
    const one = reporter((envelope) => { sent.push(envelope); return Promise.resolve(); });
    clock.ms = 5_000;
    await one.report();
    await one.report();
    await one.stop();
    expect(read()).toMatchObject([{ app: "tools", instance: "w-1", startedAtMs: 1_000, atMs: 5_000, tools: ["refund"], stopping: false }, {}, { stopping: true, checks: [] }]);
    expect(new Set(sent.map(({ id }) => id)).size).toBe(3);
  });
  it("ends where the broker is gone, and in time where it hangs", async () => {
    await reporter(() => Promise.reject(new Error("gone"))).stop();
    const started = performance.now();
    await reporter(() => new Promise<never>(() => undefined)).stop();
    expect(performance.now() - started).toBeLessThan(5_000);
  });
});
