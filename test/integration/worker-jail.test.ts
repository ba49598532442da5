/**
 * The worker's jail: whoever runs code in the worker has its sidecar, over HTTP and gRPC, with the worker's token. With that he can neither read a
 * session, call an actor or an app, publish a task, a decision or anything else that is not the worker's to say, nor read a secret.
 * Each attempt has a twin that succeeds, so that a refusal is not just a wrong address.
 */
import { connect, type IncomingHttpHeaders } from "node:http2";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CHANNELS, DEAD_LETTER_TOPIC, STATE_STORES, type Channel } from "../../src/contracts/channels.js";
import { eventually, startTestStack, type TestStack } from "../support/cluster.js";

let cluster: TestStack;

beforeAll(async () => {
  cluster = await startTestStack({ probeApps: true });
});
afterAll(async () => { await cluster.close(); });

const event = (id: string): string => JSON.stringify({ specversion: "1.0", id, source: "jail", type: "com.docket.jail.v1", data: { id } });
const publish = (from: string, component: string, topic: string, id: string): Promise<Response> =>
  cluster.callSidecar(from, `/v1.0/publish/${component}/${topic}`, { method: "POST", headers: { "content-type": "application/cloudevents+json" }, body: event(id) });
const status = async (path: string, init: RequestInit = {}, from = "tools"): Promise<number> => (await cluster.callSidecar(from, path, init)).status;
const post = (body: unknown): RequestInit => ({ method: "POST", body: JSON.stringify(body) });

/** One unary gRPC call with string fields: its grpc-status ("0" is success). */
async function grpc(from: string, method: string, fields: Readonly<Record<number, string>> = {}, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const env = cluster.stack.envOf(from);
  const message = Buffer.concat(Object.entries(fields).map(([number, text]) => Buffer.concat([Buffer.from([(Number(number) << 3) | 2, Buffer.byteLength(text)]), Buffer.from(text)])));
  const frame = Buffer.alloc(5);
  frame.writeUInt32BE(message.length, 1);
  const session = connect(`http://127.0.0.1:${env["DAPR_GRPC_PORT"] ?? ""}`);
  try {
    return await new Promise((resolve, reject) => {
      session.once("error", reject);
      const stream = session.request({ ":method": "POST", ":path": method.startsWith("/") ? method : `/dapr.proto.runtime.v1.Dapr/${method}`, "content-type": "application/grpc", te: "trailers", "dapr-api-token": env["DAPR_API_TOKEN"] ?? "", ...headers });
      const settle = ({ "grpc-status": code }: IncomingHttpHeaders): void => { if (typeof code === "string") resolve(code); };
      stream.on("response", settle).on("trailers", settle).on("error", reject).on("end", () => { setImmediate(() => { resolve("none"); }); }).resume();
      stream.end(Buffer.concat([frame, message]));
    });
  } finally {
    session.close();
  }
}

const UNIMPLEMENTED = "12";

describe("the worker cannot read a session", () => {
  beforeAll(async () => {
    expect(await status(`/v1.0/state/${STATE_STORES.sessions}`, post([{ key: "session:victim", value: { secret: 42 } }]), "sessions")).toBe(204);
    expect(await (await cluster.callSidecar("sessions", `/v1.0/state/${STATE_STORES.sessions}/session:victim`)).json()).toEqual({ secret: 42 });
  });

  it.each(Object.values(STATE_STORES).filter((store) => store !== STATE_STORES.tools))("over %s: its sidecar has no such store", async (store) => {
    expect(await status(`/v1.0/state/${store}/session:victim`)).toBe(400);
    expect(await status(`/v1.0/state/${store}/bulk`, post({ keys: ["session:victim"] }))).toBe(400);
    expect(await status(`/v1.0/state/${store}`, post([{ key: "session:victim", value: 1 }]))).toBe(400);
    expect(await status(`/v1.0/state/${store}/transaction`, post({ operations: [{ operation: "delete", request: { key: "session:victim" } }] }))).toBe(400);
    expect(await grpc("tools", "GetState", { 1: store, 2: "session:victim" })).toBe(UNIMPLEMENTED);
  });

  it("over its own store: the same key is another row there", async () => {
    expect(await status(`/v1.0/state/${STATE_STORES.tools}`, post([{ key: "mine", value: 1 }]))).toBe(204);
    expect(await (await cluster.callSidecar("tools", `/v1.0/state/${STATE_STORES.tools}/mine`)).json()).toBe(1);
    expect(await status(`/v1.0/state/${STATE_STORES.tools}/session:victim`)).toBe(204);
    expect(await status(`/v1.0-alpha1/state/${STATE_STORES.tools}/query`, post({ filter: {} }))).toBe(404);
  });

  it("and has changed nothing by trying", async () => {
    expect(await (await cluster.callSidecar("sessions", `/v1.0/state/${STATE_STORES.sessions}/session:victim`)).json()).toEqual({ secret: 42 });
  });
});

describe("the worker cannot call an actor or an app", () => {
  const actor = "/v1.0/actors/SessionActor/victim";

  it("over HTTP, by any spelling", async () => {
    expect(await status(`${actor}/method/deliver`, { method: "PUT", body: "{}" }, "gateway")).toBe(200);
    for (const path of [`${actor}/method/deliver`, `${actor}/state/x`, `${actor}/reminders/guard`, `${actor}/timers/t`, "/v1.0//actors/SessionActor/victim/method/deliver", "/v1.0/state/../actors/SessionActor/victim/method/deliver", "/v1.0/state/%2e%2e/actors/SessionActor/victim/method/deliver", "/V1.0/actors/SessionActor/victim/method/deliver"]) {
      for (const method of ["PUT", "POST", "GET"]) expect({ path, method, status: await status(path, { method, ...(method === "GET" ? {} : { body: "{}" }) }) }).toMatchObject({ status: expect.toSatisfy((code: number) => code >= 400 && code < 500) as number });
    }
    for (const app of ["gateway", "sessions", "console"]) expect(await status(`/v1.0/invoke/${app}/method/healthz`)).toBe(404);
    expect(await status("/healthz", { headers: { "dapr-app-id": "sessions" } })).toBe(404);
  });

  it("over gRPC, which an allow-list of HTTP routes alone leaves wide open", async () => {
    const fields = { 1: "SessionActor", 2: "victim", 3: "deliver" };
    expect(await grpc("gateway", "InvokeActor", fields)).toBe("0");
    expect(await grpc("tools", "InvokeActor", fields)).toBe(UNIMPLEMENTED);
    expect(await grpc("tools", "InvokeService", { 1: "sessions" })).toBe(UNIMPLEMENTED);
    expect(await grpc("tools", "GetActorState", { 1: "SessionActor", 2: "victim", 3: "x" })).toBe(UNIMPLEMENTED);
    expect(await grpc("tools", "RegisterActorReminder", { 1: "SessionActor", 2: "victim", 3: "guard" })).toBe(UNIMPLEMENTED);
    expect(await grpc("tools", "/docket.Jail/Break", {}, { "dapr-app-id": "sessions" })).not.toBe("0");
    expect(await grpc("tools", "GetMetadata")).toBe("0");
  });

  it("and no actor heard of it", async () => {
    const calls = (await (await cluster.callApp("sessions", "/calls")).json()) as { path: string }[];
    // The two twins, from the gateway.
    expect(calls.filter(({ path }) => path.includes("/method/deliver"))).toHaveLength(2);
  });
});

describe("the worker cannot say what is not its to say", () => {
  const own: Channel = CHANNELS.toolResults;
  const others = Object.values<Channel>(CHANNELS).filter(({ component }) => component !== own.component && component !== CHANNELS.deadLetters.component);

  it("on another channel, or another channel's topic on its own", async () => {
    expect((await publish("tools", own.component, own.topic, "allowed-result")).status).toBe(204);
    for (const { component, topic } of others) {
      expect({ component, status: (await publish("tools", component, topic, "forged")).status }).not.toMatchObject({ status: 204 });
      for (const mine of [own, CHANNELS.toolRequests, CHANNELS.deadLetters]) expect({ component: mine.component, topic, status: (await publish("tools", mine.component, topic, "forged")).status }).toMatchObject({ status: 403 });
    }
    for (const topic of ["agent.tasks.>", "agent.*", "AGENT.TASKS.INCOMING", "agent.tasks.incoming%20", "%24JS.API.STREAM.PURGE.DOCKET_TASKS"]) expect({ topic, status: (await publish("tools", own.component, topic, "forged")).status }).toMatchObject({ status: 403 });
  });

  it("in bulk, or over gRPC", async () => {
    const bulk = post([{ entryId: "1", event: { id: "forged" }, contentType: "application/json" }]);
    expect(await status(`/v1.0-alpha1/publish/bulk/${CHANNELS.tasks.component}/${CHANNELS.tasks.topic}`, bulk)).toBe(404);
    expect(await status(`/v1.0-alpha1/publish/bulk/${own.component}/${CHANNELS.tasks.topic}`, bulk)).toBe(404);
    expect(await grpc("gateway", "PublishEvent", { 1: CHANNELS.tasks.component, 2: CHANNELS.tasks.topic, 3: "{}" })).toBe("0");
    for (const { component, topic } of Object.values<Channel>(CHANNELS)) expect(await grpc("tools", "PublishEvent", { 1: component, 2: topic, 3: "{}" })).toBe(UNIMPLEMENTED);
    expect(await grpc("tools", "BulkPublishEventAlpha1", { 1: own.component, 2: own.topic })).toBe(UNIMPLEMENTED);
    expect(await grpc("tools", "SubscribeTopicEventsAlpha1")).toBe(UNIMPLEMENTED);
  });

  it("and nobody got anything but the result", async () => {
    const seen = async (app: string): Promise<{ channel: string; event: { id: string; source: string } }[]> => (await (await cluster.callApp(app, "/seen")).json()) as { channel: string; event: { id: string; source: string } }[];
    await eventually("the result arrives", async () => ((await seen("sessions")).some(({ event: { id } }) => id === "allowed-result") ? true : undefined));
    for (const app of ["gateway", "sessions", "console"]) expect((await seen(app)).filter(({ event: { id } }) => id === "forged")).toEqual([]);
  });

  it("and may write dead letters, which every app may", async () => {
    expect((await publish("tools", CHANNELS.deadLetters.component, DEAD_LETTER_TOPIC, "letter")).status).toBe(204);
  });
});

describe("the worker cannot read a secret or rule its sidecar", () => {
  it.each([
    "/v1.0/secrets/kubernetes/session-store", "/v1.0/secrets/kubernetes/bulk", "/v1.0/secrets/envvar/DOCKET_NATS_TOKEN", "/v1.0/configuration/x?key=a", "/v1.0/bindings/x", "/v1.0-alpha1/lock/x",
    "/v1.0-alpha1/workflows/dapr/w/start", "/v1.0-alpha1/jobs/x", "/v1.0-alpha1/crypto/x/encrypt", "/v1.0/shutdown", "/v1.0-alpha1/conversation/x/converse",
  ])("by %s", async (path) => {
    expect(await status(path, { method: "GET" })).toBe(404);
    expect(await status(path, post({}))).toBe(404);
  });

  it("over gRPC", async () => {
    for (const method of ["GetSecret", "GetBulkSecret", "GetConfiguration", "InvokeBinding", "TryLockAlpha1", "StartWorkflowBeta1", "ScheduleJobAlpha1", "SubtleGetKeyAlpha1", "Shutdown"]) expect({ method, status: await grpc("tools", method) }).toEqual({ method, status: UNIMPLEMENTED });
    expect(await grpc("tools", "/dapr.proto.internals.v1.ServiceInvocation/CallActor")).not.toBe("0");
  });

  it("from its environment, or what its sidecar tells of itself", async () => {
    const env = (await (await cluster.callApp("tools", "/env")).json()) as Record<string, string>;
    expect(Object.keys(env).filter((key) => /^DOCKET_(NATS|SQLITE|POSTGRES|KAFKA|REDIS|RABBITMQ|SESSIONS)_|ANTHROPIC|OPENAI|OIDC/.test(key))).toEqual([]);
    const metadata = await (await cluster.callSidecar("tools", "/v1.0/metadata")).text();
    const { components } = JSON.parse(metadata) as { components: { name: string }[] };
    expect(components.map(({ name }) => name).sort()).toEqual([CHANNELS.deadLetters.component, STATE_STORES.tools, CHANNELS.toolRequests.component, CHANNELS.toolResults.component].sort());
    for (const name of ["sessions-daprd", "gateway-daprd", "tools-daprd"]) {
      const { DOCKET_NATS_TOKEN: token = "no token" } = cluster.stack.envOf(name);
      expect(metadata).not.toContain(token);
    }
  });

  it("and its sidecar still runs", async () => {
    expect(await status("/v1.0/healthz")).toBe(204);
  });
});

describe("the worker needs no way to placement or scheduler, which its NetworkPolicy closes", () => {
  it("its sidecar starts without them, and serves what the worker may do", async () => {
    await cluster.stack.kill("placement");
    await cluster.stack.kill("scheduler");
    await cluster.stack.restart("tools-daprd");
    await eventually("the sidecar is ready", async () => ((await status("/v1.0/healthz")) === 204 ? true : undefined), 40_000);
    expect(await status(`/v1.0/state/${STATE_STORES.tools}`, post([{ key: "alone", value: 1 }]))).toBe(204);
    expect((await publish("tools", CHANNELS.toolResults.component, CHANNELS.toolResults.topic, "alone-result")).status).toBe(204);
    expect((await publish("sessions", CHANNELS.toolRequests.component, CHANNELS.toolRequests.topic, "alone-request")).status).toBe(204);
    await eventually("a request arrives", async () => (((await (await cluster.callApp("tools", "/seen")).json()) as { event: { id: string } }[]).some(({ event: { id } }) => id === "alone-request") ? true : undefined), 40_000);
  });
});
