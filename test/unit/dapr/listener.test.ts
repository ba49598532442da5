/** The sidecar's side of the door: what a handler gets of a delivery, and what daprd is told of one that is too large to be read (I14). */
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { closeRoutes, createListener, listen } from "../../../src/dapr/listener.js";
import { createLogger } from "../../../src/platform/log.js";
import { routesOf } from "../../support/routes.js";

let server: Awaited<ReturnType<typeof listen>>;
let url: string;
const taken: { channel: string; text: string; bytes?: Uint8Array | undefined }[] = [];
beforeEach(async () => {
  taken.length = 0;
  const logger = createLogger("test", "silent");
  const app = createListener({
    host: "127.0.0.1", port: 0, appToken: undefined, logger,
    subscriptions: {
      tasks: (text) => { taken.push({ channel: "tasks", text }); return Promise.resolve("SUCCESS"); },
      deadLetters: (text, bytes) => { taken.push({ channel: "deadLetters", text, bytes }); return Promise.resolve("SUCCESS"); },
    },
  });
  closeRoutes(app, logger);
  server = await listen(app, "127.0.0.1", 0);
  url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
});
afterEach(() => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); }));

const post = async (channel: string, body: string): Promise<unknown> => (await fetch(`${url}/channels/${channel}`, { method: "POST", body })).json();
const raw = (bytes: Buffer): string => JSON.stringify({ specversion: "1.0", id: "w", data_base64: bytes.toString("base64") });

it("7.8: an idle connection is kept for longer than daprd keeps it (90 s), or a delivery meets a socket that is being closed", () => {
  expect(server.keepAliveTimeout).toBeGreaterThan(90_000);
  expect(server.headersTimeout).toBeGreaterThan(server.keepAliveTimeout);
});

describe("a delivery", () => {
  it("of up to 4 MB reaches its handler whole", async () => {
    const text = "x".repeat(4 * 1024 * 1024);
    expect(await post("tasks", text)).toEqual({ status: "SUCCESS" });
    expect(taken[0]?.text === text).toBe(true);
  });

  it("of more is dropped by the handler's side, so that the sidecar gives it to the dead letters instead of repeating it for ever", async () => {
    expect(await post("tasks", "x".repeat(4 * 1024 * 1024 + 1))).toEqual({ status: "DROP" });
    expect(taken).toEqual([]);
  });

  it("to the dead letters is unwrapped: text as text, bytes that are no text beside it", async () => {
    await post("dead-letters", raw(Buffer.from("Zoë {")));
    const bytes = Buffer.from([0xff, 0x00, 0x41]);
    await post("dead-letters", raw(bytes));
    await post("dead-letters", "not wrapped");
    expect(taken.map(({ text, bytes: given }) => [text, given === undefined ? undefined : Buffer.from(given).toString("hex")])).toEqual([["Zoë {", undefined], [bytes.toString("utf8"), "ff0041"], ["not wrapped", undefined]]);
  });

  it("to the dead letters that is too large even for them is recorded by its size", async () => {
    expect(await post("dead-letters", raw(Buffer.alloc(5_000_000, "x")))).toEqual({ status: "SUCCESS" });
    expect(taken[0]?.text).toHaveLength(5_000_000);
    expect(await post("dead-letters", "x".repeat(49 * 1024 * 1024))).toEqual({ status: "SUCCESS" });
    expect(taken[1]?.text).toBe(`a message of ${String(49 * 1024 * 1024)} bytes, too large to be kept`);
  });
});

describe("the sidecar's port", () => {
  const token = "a token of at least sixteen";
  const withToken = async (work: (base: string, reached: string[]) => Promise<void>): Promise<void> => {
    const reached: string[] = [];
    const logger = createLogger("test", "silent");
    const take = (channel: string) => (): Promise<"SUCCESS"> => { reached.push(channel); return Promise.resolve("SUCCESS"); };
    const app = createListener({ host: "127.0.0.1", port: 0, appToken: token, logger, subscriptions: { tasks: take("tasks"), journal: take("journal"), deadLetters: take("deadLetters"), toolRequests: take("toolRequests") } });
    // What an actor host mounts later stands behind the same door.
    app.put("/actors/:type/:id/method/:name", (_req, res) => { reached.push("actor"); res.json({}); });
    closeRoutes(app, logger);
    const listening = await listen(app, "127.0.0.1", 0);
    try {
      const routes = routesOf(app);
      expect(routes).toEqual(expect.arrayContaining(["POST /channels/tasks", "GET /dapr/subscribe", "PUT /actors/:type/:id/method/:name"]));
      await work(`http://127.0.0.1:${String((listening.address() as AddressInfo).port)}`, reached);
    } finally {
      await new Promise((resolve) => { listening.close(resolve); listening.closeAllConnections(); });
    }
  };

  it.each<[string, Record<string, string>]>([
    ["without the app token", {}], ["with a wrong one", { "dapr-api-token": "another token of sixteen ch" }], ["with a part of it", { "dapr-api-token": token.slice(0, -1) }],
    ["with more than it", { "dapr-api-token": `${token}x` }], ["with it elsewhere", { authorization: `Bearer ${token}` }], ["with an API key", { authorization: "Bearer dk_0000_00000000000000000000" }],
  ])("refuses every route but the health to callers %s, and nothing is handled", (_name, headers) => withToken(async (base, reached) => {
    for (const path of ["/channels/tasks", "/channels/journal", "/channels/dead-letters", "/channels/tool-requests", "/actors/SessionActor/x/method/deliver", "/dapr/subscribe", "/dapr/config", "/anything", "//channels/tasks", "/CHANNELS/tasks"]) {
      for (const method of ["GET", "POST", "PUT", "DELETE"]) expect((await fetch(`${base}${path}`, { method, headers, ...(method === "GET" ? {} : { body: "{}" }) })).status, `${method} ${path}`).toBe(401);
    }
    expect(reached).toEqual([]);
    expect((await fetch(`${base}/healthz`, { headers })).status).toBe(200);
  }));

  it("takes the sidecar, which has it", () => withToken(async (base, reached) => {
    const headers = { "dapr-api-token": token };
    expect((await fetch(`${base}/channels/tasks`, { method: "POST", body: "{}", headers })).status).toBe(200);
    expect((await fetch(`${base}/actors/SessionActor/x/method/deliver`, { method: "PUT", body: "{}", headers })).status).toBe(200);
    expect(reached).toEqual(["tasks", "actor"]);
  }));

  it.each(["0.0.0.0", "::", "10.0.0.5"])("is not opened on %s without a token", (host) => {
    expect(() => createListener({ host, port: 0, appToken: undefined, logger: createLogger("test", "silent"), subscriptions: {} })).toThrow("APP_API_TOKEN is not set");
  });
});
