/**
 * The bus on a real sidecar and broker: what it sends arrives byte for byte, alone or together with others, and what the sidecar
 * could not publish is reported as not published. Partial failures are the broker's own: its stream refuses messages above a size for a while.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { CHANNELS, type ChannelName } from "../../src/contracts/channels.js";
import { serializeEnvelope, type Envelope } from "../../src/contracts/cloudevent.js";
import { DaprBus } from "../../src/dapr/bus.js";
import { Sidecar } from "../../src/dapr/sidecar.js";
import { choosePorts } from "../../src/launcher/ports.js";
import { eventually, startTestStack, type TestStack } from "../support/cluster.js";
import { freshSession } from "../support/docket.js";
import { FaultProxy } from "../support/fault-proxy.js";
import { updateStream } from "../support/streams.js";

const TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

let cluster: TestStack;
/** Between the bus and its sidecar; its log has every request of the bus. */
let proxy: FaultProxy;
let sidecar: Sidecar;
let bus: DaprBus;

beforeAll(async () => {
  cluster = await startTestStack({ probeApps: true, only: ["gateway", "sessions", "console"] });
  const env = cluster.stack.envOf("gateway");
  const { proxy: port = 0 } = await choosePorts({ wishes: { proxy: undefined }, mode: "free", overrides: {} });
  proxy = new FaultProxy({ targetPort: Number(env["DAPR_HTTP_PORT"]), logPath: /\/publish\// });
  await proxy.listen(port);
  sidecar = new Sidecar({ baseUrl: `http://127.0.0.1:${String(port)}`, apiToken: env["DAPR_API_TOKEN"] });
  bus = new DaprBus(sidecar);
});
afterEach(() => { proxy.set(undefined); });
afterAll(async () => {
  await sidecar.close();
  await proxy.close();
  await cluster.close();
});

/** With digits that a double cannot hold, spaces that a parser would drop, and letters beyond ASCII. */
function envelope(id: string, more: Partial<Envelope> = {}): Envelope {
  return { specversion: "1.0", id, source: "test", type: "com.docket.test.v1", subject: "s", partitionkey: "s", data: `{"id": "${id}",  "big": 12345678901234567890.10, "text": "grüße   <&>"}`, ...more };
}
/** Bodies of the deliveries to `sessions`, as they came. */
async function delivered(): Promise<string[]> {
  return ((await (await cluster.callApp("sessions", "/raw")).json()) as { body: string }[]).map(({ body }) => body);
}
const idOf = (body: string): string => (JSON.parse(body) as { id: string }).id;
const deliveredOf = async (ids: readonly string[]): Promise<string[]> => (await delivered()).map(idOf).filter((id) => ids.includes(id));
async function allArrive(ids: readonly string[]): Promise<void> {
  await eventually(`${String(ids.length)} events arrive`, async () => {
    const got = new Set(await deliveredOf(ids));
    return ids.every((id) => got.has(id)) ? true : undefined;
  }, 60_000);
}
/** Nothing of `ids` is still on its way when something that was published later has arrived (the channel has one message in flight). */
async function drained(): Promise<void> {
  const marker = freshSession("marker");
  await bus.publish("tasks", envelope(marker));
  await allArrive([marker]);
}
const fresh = (count: number): string[] => { const name = freshSession("e"); return Array.from({ length: count }, (_, n) => `${name}-${String(n)}`); };
const settle = async (ids: readonly string[], channel: ChannelName = "tasks", sizeOf: (id: string) => number = () => 0): Promise<{ published: string[]; failed: string[]; problems: unknown[] }> => {
  const settled = await Promise.allSettled(ids.map((id) => bus.publish(channel, envelope(id, sizeOf(id) === 0 ? {} : { data: JSON.stringify({ pad: "x".repeat(sizeOf(id)) }) }))));
  return {
    published: ids.filter((_, at) => settled[at]?.status === "fulfilled"), failed: ids.filter((_, at) => settled[at]?.status === "rejected"),
    problems: settled.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : [])),
  };
};
const bulkRequests = (since: number): number => proxy.log.slice(since).filter(({ path }) => path.includes("/publish/bulk/")).length;

describe("a publication", () => {
  it.each([{ name: "alone", burst: 1 }, { name: "in a bulk request", burst: 6 }])("$name arrives byte for byte, its trace parent included, and none is put in", async ({ burst }) => {
    const since = proxy.log.length;
    const sent = [...fresh(burst).map((id) => envelope(id)), ...fresh(burst).map((id) => envelope(id, { traceparent: TRACE }))];
    for (const part of burst === 1 ? sent.map((one) => [one]) : [sent]) await Promise.all(part.map((one) => bus.publish("tasks", one)));
    await allArrive(sent.map(({ id }) => id));
    expect(bulkRequests(since) > 0).toBe(burst > 1);
    const got = (await delivered()).filter((body) => sent.some(({ id }) => id === idOf(body)));
    expect([...got].sort()).toEqual(sent.map(serializeEnvelope).sort());
  });

  it("keeps the order of those who wait for one before the next, also while others fill bulk requests", async () => {
    const since = proxy.log.length;
    const senders = Array.from({ length: 8 }, () => fresh(12));
    await Promise.all(senders.map(async (ids) => { for (const id of ids) await bus.publish("tasks", envelope(id)); }));
    await allArrive(senders.flat());
    expect(bulkRequests(since)).toBeGreaterThan(0);
    expect(proxy.log.length - since).toBeLessThan(senders.flat().length);
    for (const ids of senders) expect(await deliveredOf(ids)).toEqual(ids);
  });
});

describe("a request for several", () => {
  it("that the broker takes in part fails for exactly what it did not take; published again, nothing is lost and nothing else repeated", async () => {
    const ids = fresh(12);
    const isBig = (id: string): boolean => ids.indexOf(id) % 4 === 3;
    await updateStream(cluster, CHANNELS.tasks, { max_msg_size: 4_000 });
    try {
      const since = proxy.log.length;
      const { published, failed, problems } = await settle(ids, "tasks", (id) => (isBig(id) ? 8_000 : 0));
      expect(bulkRequests(since)).toBeGreaterThan(0);
      expect(failed).toEqual(ids.filter(isBig));
      expect(published).toEqual(ids.filter((id) => !isBig(id)));
      for (const problem of problems) expect(problem).toMatchObject({ code: "broker_unavailable", retryable: true, message: expect.stringContaining("message size exceeds maximum allowed") as string });
      await allArrive(published);
      expect(await deliveredOf(failed)).toEqual([]);
    } finally {
      await updateStream(cluster, CHANNELS.tasks);
    }
    const again = await settle(ids.filter(isBig), "tasks", () => 8_000);
    expect(again.failed).toEqual([]);
    await allArrive(ids);
    await drained();
    expect((await deliveredOf(ids)).sort()).toEqual([...ids].sort());
  });

  it("whose answer is lost is published for none, though the broker has it; again, nothing is lost", async () => {
    const ids = fresh(8);
    proxy.set({ path: /\/publish\/bulk\//, do: "lose-answer", times: 1 });
    const { published, failed } = await settle(ids);
    expect(proxy.hits).toBe(1);
    expect(published).toEqual(ids.slice(0, 1));
    expect(failed).toEqual(ids.slice(1));
    expect((await settle(failed)).failed).toEqual([]);
    await allArrive(ids);
  });

  it("to a channel that the app may not use is refused for all; the bus goes on", async () => {
    const ids = fresh(6);
    const since = proxy.log.length;
    const { published, problems } = await settle(ids, "journal");
    expect(published).toEqual([]);
    expect(problems).toHaveLength(6);
    for (const problem of problems) expect(problem).toMatchObject({ code: "broker_unavailable", message: expect.stringMatching(/HTTP 40\d/) as string });
    expect(bulkRequests(since)).toBe(1);
    await drained();
  });

  it("while the broker is dead fails for all, and works when it is back", async () => {
    await cluster.stack.kill("broker");
    const ids = fresh(5);
    const { published } = await settle(ids);
    expect(published).toEqual([]);
    await cluster.stack.startAll();
    await eventually("all are published", async () => ((await settle(ids)).failed.length === 0 ? true : undefined), 60_000);
    await allArrive(ids);
  });
});
