/** The fault proxy mistreats what it is told to, as it is told, and leaves everything else alone. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { choosePorts } from "../../../src/launcher/ports.js";
import { eventually } from "../../support/cluster.js";
import { FaultProxy, type ProxyRule } from "../../support/fault-proxy.js";

interface Got { readonly path: string; readonly body: string; readonly token: string | undefined }

let app: Server;
let got: Got[];
let running: number;
let mostRunning: number;
let reachedAtMs: number;
/** What answers wait for, and who ends it. */
let held: Promise<void>;
let secondRuns: () => void;
let holdMs: number;
/** What the app says instead of SUCCESS. */
let respond: { readonly status: number; readonly body: string } | undefined;
let proxy: FaultProxy;
let base: string;

beforeEach(async () => {
  got = [];
  running = 0;
  mostRunning = 0;
  holdMs = 0;
  held = Promise.resolve();
  secondRuns = () => undefined;
  respond = undefined;
  app = createServer((req, res) => {
    let body = "";
    req.on("data", (piece: Buffer) => { body += piece.toString(); });
    req.on("end", () => {
      got.push({ path: req.url ?? "", body, token: req.headers["dapr-api-token"] as string | undefined });
      reachedAtMs = performance.now();
      running += 1;
      mostRunning = Math.max(mostRunning, running);
      if (running === 2) secondRuns();
      const waits = held;
      setTimeout(() => { void waits.then(() => { running -= 1; res.setHeader("x-app", "yes"); res.statusCode = respond?.status ?? 200; res.end(respond?.body ?? JSON.stringify({ status: "SUCCESS", n: got.length })); }); }, holdMs);
    });
  });
  await new Promise<void>((resolve) => app.listen(0, "127.0.0.1", resolve));
  const { proxy: port = 0 } = await choosePorts({ wishes: { proxy: undefined }, mode: "free", overrides: {} });
  proxy = new FaultProxy({ targetPort: (app.address() as AddressInfo).port, logPath: /^\/channels\// });
  await proxy.listen(port);
  base = `http://127.0.0.1:${String(port)}`;
});
afterEach(async () => {
  await proxy.close();
  app.closeAllConnections();
  await new Promise((resolve) => { app.close(resolve); });
});

const deliver = (body: string, path = "/channels/tasks"): Promise<Response> => fetch(`${base}${path}`, { method: "POST", body, headers: { "dapr-api-token": "secret" } });
const rule = (how: ProxyRule["do"], more: Partial<ProxyRule> = {}): void => { proxy.set({ path: /^\/channels\/tasks$/, do: how, ...more }); };
/** Nobody is answered until two run: no pause of the machine lets the first end before the second begins. */
const holdUntilTwoRun = (): void => { held = new Promise((resolve) => { secondRuns = resolve; }); };
const bodies = (): string[] => got.map(({ body }) => body);

describe("without a rule", () => {
  it("gives method, path, headers, body and answer on as they are", async () => {
    const reply = await deliver("one", "/channels/tasks?x=1");
    expect([reply.status, reply.headers.get("x-app"), await reply.json()]).toEqual([200, "yes", { status: "SUCCESS", n: 1 }]);
    expect(got).toEqual([{ path: "/channels/tasks?x=1", body: "one", token: "secret" }]);
    expect(proxy.log).toMatchObject([{ path: "/channels/tasks?x=1", body: "one", rule: undefined, status: 200 }]);
  });

  it("breaks the connection where the app is dead, as a dead app does", async () => {
    app.closeAllConnections();
    await new Promise((resolve) => { app.close(resolve); });
    await expect(deliver("one")).rejects.toThrow();
    expect(proxy.log).toMatchObject([{ status: "cut" }]);
  });
});

describe("with a rule", () => {
  it("mistreats only the paths that it names, and only as often as it says", async () => {
    rule("drop", { times: 1 });
    await deliver("other", "/channels/journal");
    await deliver("first");
    await deliver("second");
    expect(bodies()).toEqual(["other", "second"]);
    expect(proxy.hits).toBe(1);
    proxy.set(undefined);
    expect(proxy.hits).toBe(0);
  });

  it("drop: the broker hears an ack, the app nothing", async () => {
    rule("drop");
    expect(await (await deliver("one")).json()).toEqual({ status: "SUCCESS" });
    expect(got).toEqual([]);
  });

  it("drop of an actor call: a 200 without a body, as daprd gives for a call that failed", async () => {
    proxy.set({ path: /^\/actors\//, do: "drop", dropped: "" });
    const reply = await deliver("{}", "/actors/SessionActor/x/method/deliver");
    expect([reply.status, await reply.text()]).toEqual([200, ""]);
  });

  it("duplicate: the second copy comes while the first still runs; the first answer counts", async () => {
    holdUntilTwoRun();
    rule("duplicate", { ms: 20 });
    expect(await (await deliver("one")).json()).toMatchObject({ status: "SUCCESS" });
    expect(bodies()).toEqual(["one", "one"]);
    expect(mostRunning).toBe(2);
  });

  it("delay: nothing reaches the app before its time", async () => {
    rule("delay", { ms: 150 });
    const sentAtMs = performance.now();
    await deliver("one");
    expect(reachedAtMs - sentAtMs).toBeGreaterThanOrEqual(145);
    expect(bodies()).toEqual(["one"]);
  });

  it("reorder: the one behind goes first", async () => {
    rule("reorder", { ms: 5_000 });
    const first = deliver("first");
    await eventually("the first is held", () => (proxy.hits === 1 ? true : undefined));
    await deliver("second");
    await first;
    expect(bodies()).toEqual(["second", "first"]);
  });

  it("reorder: alone, it goes when its time is over", async () => {
    rule("reorder", { ms: 100 });
    expect((await deliver("alone")).status).toBe(200);
    expect(bodies()).toEqual(["alone"]);
  });

  it("lose-answer: the app has handled it, the caller's connection breaks", async () => {
    rule("lose-answer");
    await expect(deliver("one")).rejects.toThrow();
    expect(bodies()).toEqual(["one"]);
  });

  it("refuse: the caller hears an error, the app nothing", async () => {
    rule("refuse", { times: 1 });
    expect((await deliver("one")).status).toBe(500);
    expect(got).toEqual([]);
    expect((await deliver("two")).status).toBe(200);
  });

  it("hold: nothing gets through until the rule is lifted, then all of it", async () => {
    rule("hold");
    const replies = [deliver("one"), deliver("two")];
    await eventually("both are held", () => (proxy.hits === 2 ? true : undefined));
    expect(got).toEqual([]);
    proxy.set(undefined);
    expect((await Promise.all(replies)).map(({ status }) => status)).toEqual([200, 200]);
    expect(bodies().sort()).toEqual(["one", "two"]);
  });

  it("ack-errors: an app's error or RETRY becomes an ack; what it settled stays as it is and is no hit", async () => {
    rule("ack-errors");
    expect(await (await deliver("one")).json()).toEqual({ status: "SUCCESS", n: 1 });
    expect(proxy.hits).toBe(0);
    for (const [status, body] of [[503, "{}"], [200, '{"status":"RETRY"}']] as const) {
      respond = { status, body };
      const reply = await deliver("again");
      expect([reply.status, await reply.json()]).toEqual([200, { status: "SUCCESS" }]);
    }
    expect(proxy.hits).toBe(2);
    expect(bodies()).toEqual(["one", "again", "again"]);
  });

  it("cut-and-repeat: what takes too long is cut off and asked for again while it still runs; what is in time is left alone", async () => {
    rule("cut-and-repeat", { ms: 2_000 });
    expect((await deliver("fast")).status).toBe(200);
    expect(proxy.hits).toBe(0);
    holdUntilTwoRun();
    expect((await deliver("slow")).status).toBe(200);
    expect(mostRunning).toBe(2);
    expect(bodies()).toEqual(["fast", "slow", "slow"]);
    expect(proxy.hits).toBe(1);
  });

  it("cut-and-repeat elsewhere: every second copy goes to another app, with the headers that it wants", async () => {
    const there: (string | undefined)[] = [];
    const other = createServer((req, res) => { there.push(req.headers["dapr-api-token"] as string | undefined); res.end("{}"); });
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    rule("cut-and-repeat", { ms: 100, elsewhere: { port: (other.address() as AddressInfo).port, headers: { "dapr-api-token": "of the other" } } });
    holdMs = 200;
    for (const body of ["one", "two"]) await deliver(body);
    expect(bodies()).toEqual(["one", "one", "two"]);
    expect(there).toEqual(["of the other"]);
    other.closeAllConnections();
    await new Promise((resolve) => { other.close(resolve); });
  });
});
