/**
 * The facts of DESIGN 7 that the code relies on, each on a real daprd (or, where Docket is the one that answers, on the real
 * listener). Facts about scopes, secrets and placement are in launcher-stack.test.ts, about the state API in state-store.test.ts.
 */
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import pino from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CHANNELS } from "../../src/contracts/channels.js";
import { actorIdOf } from "../../src/contracts/ids.js";
import { closeRoutes, createListener, listen } from "../../src/dapr/listener.js";
import { callSession } from "../../src/dapr/sessions-client.js";
import { Sidecar } from "../../src/dapr/sidecar.js";
import { streamConfigOf } from "../../src/launcher/broker.js";
import { eventually, REPO_ROOT, startTestStack, type TestStack } from "../support/cluster.js";
import { eventsOf, freshSession, startDocket, type Docket } from "../support/docket.js";
import { updateStream } from "../support/streams.js";

const TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const silent = pino({ level: "silent" });

describe("daprd 1.14 delivering over HTTP", () => {
  let cluster: TestStack;
  beforeAll(async () => { cluster = await startTestStack({ probeApps: true, only: ["gateway", "sessions", "console"] }); });
  afterAll(async () => { await cluster.close(); });

  const publish = async (id: string, headers: Record<string, string> = {}, more: object = {}): Promise<void> => {
    const reply = await cluster.callSidecar("gateway", `/v1.0/publish/${CHANNELS.tasks.component}/${CHANNELS.tasks.topic}`, {
      method: "POST", headers: { "content-type": "application/cloudevents+json", ...headers },
      body: JSON.stringify({ specversion: "1.0", id, source: "test", type: "com.docket.test.v1", data: { id }, ...more }),
    });
    expect(reply.status).toBe(204);
  };
  const behave = async (answer: { code?: number; status?: string }): Promise<void> => {
    await cluster.callApp("sessions", "/behave", { method: "POST", body: JSON.stringify({ channel: CHANNELS.tasks.component, ...answer }) });
  };
  const attempts = async (id: string): Promise<number> => ((await (await cluster.callApp("sessions", "/attempts")).json()) as Record<string, number>)[id] ?? 0;
  const seen = async (instance: string, id: string): Promise<Record<string, unknown> | undefined> =>
    ((await (await cluster.callApp(instance, "/seen")).json()) as { event: Record<string, unknown> }[]).find(({ event }) => event["id"] === id)?.event;
  const arrives = (id: string) => eventually(`${id} arrives`, () => seen("sessions", id), 30_000);

  it.each([{ name: "503, as for a route that is not there yet", answer: { code: 503 } }, { name: "500", answer: { code: 500 } }, { name: "RETRY", answer: { status: "RETRY" } }])("7.1, 7.2: keeps an event that was answered $name, and dead-letters nothing", async ({ answer }) => {
    const id = freshSession("kept");
    await behave(answer);
    await publish(id);
    await eventually("it was tried three times", async () => ((await attempts(id)) >= 3 ? true : undefined), 30_000);
    await behave({});
    await arrives(id);
    expect(await seen("console", id)).toBeUndefined();
  });

  it("7.1: drops an event that was answered 404, which is why our listener never says that", async () => {
    const id = freshSession("dropped");
    await behave({ code: 404 });
    await publish(id);
    await eventually("it was tried", async () => ((await attempts(id)) >= 1 ? true : undefined), 30_000);
    await behave({});
    const marker = freshSession("marker");
    await publish(marker);
    await arrives(marker);
    expect(await attempts(id)).toBe(1);
    expect(await seen("sessions", id)).toBeUndefined();
  });

  it("7.7: empties the trace parent inside an event while its tracing is off, header or not, unless the event has a trace id", async () => {
    const [inside, header, both] = [freshSession("inside"), freshSession("header"), freshSession("both")];
    await publish(inside, {}, { traceparent: TRACE });
    await publish(header, { traceparent: TRACE }, { traceparent: TRACE });
    await publish(both, { traceparent: TRACE }, { traceparent: TRACE, traceid: TRACE });
    expect((await arrives(inside))["traceparent"]).toBe("");
    expect((await arrives(header))["traceparent"]).toBe("");
    expect((await arrives(both))["traceparent"]).toBe(TRACE);
  });

  it("takes two events of different sources with one id for one, within the stream's duplicate window: ours is as short as NATS allows", async () => {
    const [id, marker] = [freshSession("same"), freshSession("marker")];
    await updateStream(cluster, CHANNELS.tasks, { duplicate_window: 60e9 });
    try {
      for (const source of ["one", "two"]) await publish(id, {}, { source });
    } finally {
      await updateStream(cluster, CHANNELS.tasks);
    }
    await publish(marker);
    await arrives(marker);
    expect(await attempts(id)).toBe(1);
    expect(streamConfigOf(CHANNELS.tasks).duplicate_window).toBe(100e6);
    const again = freshSession("same");
    await publish(again, {}, { source: "one" });
    await arrives(again);
    await eventually("one of the other source comes too, when the window is over", async () => {
      await publish(again, {}, { source: "two" });
      return (await attempts(again)) >= 2 ? true : undefined;
    }, 30_000);
  });

  it("7.6: delivers in the order of publication, one at a time, also after a failure", async () => {
    const ids = Array.from({ length: 12 }, (_, n) => `${freshSession("order")}-${String(n)}`);
    await behave({ status: "RETRY" });
    for (const id of ids) await publish(id);
    await eventually("the first was tried", async () => ((await attempts(ids[0]!)) >= 1 ? true : undefined));
    expect(await attempts(ids[1]!)).toBe(0);
    await behave({});
    await arrives(ids.at(-1)!);
    const got = ((await (await cluster.callApp("sessions", "/seen")).json()) as { event: { id: string } }[]).map(({ event }) => event.id).filter((id) => ids.includes(id));
    expect(got.filter((id, at) => got.indexOf(id) === at)).toEqual(ids);
  });
});

describe("daprd 1.14 without the retry policy of our subscriptions", () => {
  let cluster: TestStack;
  let resources: string;
  beforeAll(async () => {
    resources = mkdtempSync(join(tmpdir(), "docket-no-policy-"));
    cpSync(join(REPO_ROOT, "components/embedded"), resources, { recursive: true, filter: (file) => basename(file) !== "resiliency.yaml" });
    cluster = await startTestStack({ probeApps: true, only: ["gateway", "sessions", "console"], resources });
  });
  afterAll(async () => {
    await cluster.close();
    rmSync(resources, { recursive: true, force: true });
  });

  it("7.2: dead-letters a good event at its first failure", async () => {
    const id = freshSession("once");
    await cluster.callApp("sessions", "/behave", { method: "POST", body: JSON.stringify({ channel: CHANNELS.tasks.component, code: 503 }) });
    const reply = await cluster.callSidecar("gateway", `/v1.0/publish/${CHANNELS.tasks.component}/${CHANNELS.tasks.topic}`, {
      method: "POST", headers: { "content-type": "application/cloudevents+json" }, body: JSON.stringify({ specversion: "1.0", id, source: "test", type: "com.docket.test.v1", data: {} }),
    });
    expect(reply.status).toBe(204);
    await eventually("it is a dead letter", async () => {
      const seen = await (await cluster.callApp("console", "/seen")).json() as { event: { id: string } }[];
      return seen.some(({ event }) => event.id === id) ? true : undefined;
    }, 30_000);
    expect(((await (await cluster.callApp("sessions", "/attempts")).json()) as Record<string, number>)[id]).toBe(1);
  });
});

describe("the listener that daprd calls", () => {
  let server: Server;
  let url: string;
  beforeAll(async () => {
    const app = createListener({ host: "127.0.0.1", port: 0, appToken: "the-app-token", logger: silent, subscriptions: { tasks: () => Promise.resolve("SUCCESS") } });
    closeRoutes(app, silent);
    server = await listen(app, "127.0.0.1", 0);
    url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  });
  afterAll(() => { server.close(); server.closeAllConnections(); });

  it("7.1: answers 503 to a route it does not know, never 404", async () => {
    for (const method of ["GET", "POST", "PUT", "DELETE"]) {
      expect((await fetch(`${url}/channels/unknown`, { method, headers: { "dapr-api-token": "the-app-token" } })).status).toBe(503);
    }
  });

  it("7.4: answers 401 to whoever does not know the token, on every path but health", async () => {
    for (const token of [undefined, "", "the-app-tokem", "the-app-token-and-more"]) {
      const headers: Record<string, string> = token === undefined ? {} : { "dapr-api-token": token };
      for (const path of ["/channels/tasks", "/dapr/subscribe", "/actors/SessionActor/a/method/deliver", "/nowhere"]) {
        expect((await fetch(`${url}${path}`, { method: "POST", headers, body: "{}" })).status).toBe(401);
      }
      expect((await fetch(`${url}/healthz`, { headers })).status).toBe(200);
    }
  });
});

describe("calling a session actor", () => {
  it("7.10: believes no 200 that does not carry the call's token", async () => {
    let answer = "";
    const server = createServer((request, response) => {
      let body = "";
      request.on("data", (chunk: Buffer) => { body += chunk.toString(); });
      request.on("end", () => { response.writeHead(200, { "content-type": "application/json" }).end(answer === "echo" ? JSON.stringify({ ok: true, token: (JSON.parse(body) as { token: string }).token }) : answer); });
    });
    await new Promise<void>((resolve) => { server.listen(0, "127.0.0.1", resolve); });
    const sidecar = new Sidecar({ baseUrl: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}` });
    try {
      for (answer of ["", "{}", "null", "[]", "not json", '{"ok":true}', '{"ok":true,"token":"another"}']) {
        await expect(callSession(sidecar, "a", "ping", {}), answer).rejects.toMatchObject({ code: "actor_unavailable", retryable: true });
      }
      answer = "echo";
      await expect(callSession(sidecar, "a", "ping", {})).resolves.toMatchObject({ ok: true });
    } finally {
      await sidecar.close();
      server.close();
      server.closeAllConnections();
    }
  });
});

describe("the real apps", () => {
  let docket: Docket;
  beforeAll(async () => { docket = await startDocket(); });
  afterAll(async () => { await docket.close(); });

  const ping = () => docket.test.callSidecar("gateway", "/v1.0/actors/SessionActor/fact/method/ping", { method: "PUT", body: '{"token":"t"}' });

  it("7.14: an unknown actor method does not end the host", async () => {
    const pid = docket.test.stack.processes.get("sessions")?.pid;
    for (const method of ["nope", "constructor", "__proto__", "toString", "receiveReminder", "onActivate"]) {
      expect((await docket.test.callSidecar("gateway", `/v1.0/actors/SessionActor/fact/method/${method}`, { method: "PUT", body: "{}" })).status).toBeGreaterThanOrEqual(400);
      expect((await docket.test.callApp("sessions", `/actors/SessionActor/fact/method/${method}`, { method: "PUT", body: "{}" })).status).toBe(404);
    }
    expect(await (await ping()).json()).toEqual({ ok: true, token: "t" });
    expect(docket.test.stack.processes.get("sessions")?.pid).toBe(pid);
  });

  it("the deactivation of an actor that the host does not have is done, not an error", async () => {
    expect((await docket.test.callApp("sessions", "/actors/SessionActor/never-seen", { method: "DELETE" })).status).toBe(200);
    expect((await ping()).status).toBe(200);
    expect((await docket.test.callApp("sessions", "/actors/SessionActor/fact", { method: "DELETE" })).status).toBe(200);
    expect((await docket.test.callApp("sessions", "/actors/SessionActor/fact", { method: "DELETE" })).status).toBe(200);
    expect(await (await ping()).json()).toEqual({ ok: true, token: "t" });
  });

  it("7.4: a state-changing actor method needs the key of session hosts, whoever has a sidecar", async () => {
    const session = freshSession("forged");
    const event = { specversion: "1.0", id: "e", source: "s", type: "com.docket.prompt.received.v1", subject: session, agent: "assistant", data: { text: "hello" } };
    for (const key of [undefined, "", "wrong-key-wrong-key"]) {
      const reply = await docket.test.callSidecar("gateway", `/v1.0/actors/SessionActor/${actorIdOf("default", session)}/method/deliver`, {
        method: "PUT", body: JSON.stringify({ key, channel: "tasks", text: JSON.stringify(event), tenant: "default", sessionId: session, token: "t" }),
      });
      expect(await reply.json()).toMatchObject({ ok: false, token: "t" });
    }
    expect((await docket.gateway("GET", `/v1/sessions/${session}`)).status).toBe(404);
  });

  it.each([{ name: "a number", traceparent: 12_345 }, { name: "null", traceparent: null }, { name: "an object", traceparent: { a: 1 } }, { name: "all zeros", traceparent: `00-${"0".repeat(32)}-${"0".repeat(16)}-00` }, { name: "nonsense", traceparent: "00-zz" }])(
    "7.7: $name as trace parent never reaches a sidecar: refused, or replaced by a valid one", async ({ traceparent }) => {
      const session = freshSession("trace");
      const event = { specversion: "1.0", id: freshSession("e"), source: "https://facts.example", type: "com.docket.prompt.received.v1", subject: session, agent: "assistant", datacontenttype: "application/json", data: { text: "hello" }, traceparent };
      const reply = await docket.gateway("POST", "/v1/events", event, { "content-type": "application/cloudevents+json" });
      expect([202, 400, 422]).toContain(reply.status);
      if (reply.status === 202) {
        const journal = await eventually("the run has ended", async () => {
          const entries = await docket.journal(session).catch(() => []);
          return eventsOf(entries, "RunEnded").length > 0 ? entries : undefined;
        }, 30_000);
        expect(eventsOf(journal, "EventReceived")[0]?.traceparent).toMatch(/^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/);
      }
      expect((await ping()).status).toBe(200);
    });

  it("7.7: a sender's trace parent goes all the way into the journal", async () => {
    const session = freshSession("traced");
    const event = { specversion: "1.0", id: freshSession("e"), source: "https://facts.example", type: "com.docket.prompt.received.v1", subject: session, agent: "assistant", datacontenttype: "application/json", data: { text: "hello" }, traceparent: TRACE };
    await docket.ended(await docket.cloudEvent(event));
    expect(eventsOf(await docket.journal(session), "EventReceived")[0]?.traceparent).toBe(TRACE);
  });

  it("7.3: a reminder of nobody's is answered, not thrown at daprd", async () => {
    const path = "/actors/SessionActor/fact/method/remind/guard-1";
    for (const body of ["{}", '{"data":"not json"}', '{"data":{"purpose":"guard"}}', '{"data":"{\\"purpose\\":\\"guard\\",\\"generation\\":1}"}']) {
      expect((await docket.test.callApp("sessions", path, { method: "PUT", body })).status).toBe(200);
    }
    expect(await (await ping()).json()).toEqual({ ok: true, token: "t" });
  });
});
