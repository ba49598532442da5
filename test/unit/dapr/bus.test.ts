/** The bus before a sidecar that answers as told: what is reported as published was published, whatever the sidecar says. What real daprd says is in test/integration/bus.test.ts. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Envelope } from "../../../src/contracts/cloudevent.js";
import { DaprBus } from "../../../src/dapr/bus.js";
import { Sidecar } from "../../../src/dapr/sidecar.js";
import { eventually } from "../../support/cluster.js";

interface Asked { readonly path: string; readonly ids: readonly string[]; answer(status: number, body?: string): void; cut(): void }

let server: Server;
let sidecar: Sidecar;
let bus: DaprBus;
/** Requests that the sidecar has not answered yet, and all there were. */
let asked: Asked[];

const envelope = (id: string, size = 0): Envelope => ({ specversion: "1.0", id, source: "test", type: "com.docket.test.v1", partitionkey: "p", data: JSON.stringify({ pad: "x".repeat(size) }) });
const idsIn = (path: string, body: string): string[] => {
  const texts = path.includes("/bulk/") ? (JSON.parse(body) as { event: string }[]).map(({ event }) => Buffer.from(event, "base64").toString("utf8")) : [body];
  return texts.map((text) => (JSON.parse(text) as { id: string }).id);
};

beforeEach(async () => {
  asked = [];
  server = createServer((request, response) => {
    let body = "";
    request.on("data", (piece: Buffer) => { body += piece.toString(); });
    request.on("end", () => {
      asked.push({ path: request.url ?? "", ids: idsIn(request.url ?? "", body), answer: (status, text = "") => { if (!response.headersSent) response.writeHead(status).end(text); }, cut: () => { response.destroy(); } });
    });
  });
  await new Promise<void>((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  sidecar = new Sidecar({ baseUrl: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}` });
  bus = new DaprBus(sidecar);
});
afterEach(async () => {
  await sidecar.close();
  server.closeAllConnections();
  await new Promise((resolve) => { server.close(resolve); });
});

/** Publishes all at once; resolves, when all are settled, with the ids that were reported as published and those that were not. */
function publishAll(ids: readonly string[], size = 0): Promise<{ published: string[]; failed: string[] }> {
  return Promise.allSettled(ids.map((id) => bus.publish("tasks", envelope(id, size)))).then((settled) => ({
    published: ids.filter((_, at) => settled[at]?.status === "fulfilled"),
    failed: ids.filter((_, at) => settled[at]?.status === "rejected"),
  }));
}
const request = (at: number): Promise<Asked> => eventually(`request ${String(at)} of the bus`, () => asked[at]);

describe("a burst", () => {
  it("goes out as one request and then one for all the rest, in the order of the calls", async () => {
    const done = publishAll(["a", "b", "c", "d"]);
    (await request(0)).answer(204);
    (await request(1)).answer(204);
    expect(await done).toEqual({ published: ["a", "b", "c", "d"], failed: [] });
    expect(asked.map(({ ids }) => ids)).toEqual([["a"], ["b", "c", "d"]]);
    expect(asked.map(({ path }) => path.split("?")[0])).toEqual(["/v1.0/publish/tasks/agent.tasks.incoming", "/v1.0-alpha1/publish/bulk/tasks/agent.tasks.incoming"]);
  });

  it("does not wait behind a request that hangs, and each is judged by its own answer", async () => {
    const done = publishAll(["slow", "b", "c"]);
    const slow = await request(0);
    (await request(1)).answer(204);
    slow.answer(500, "no");
    expect(await done).toEqual({ published: ["b", "c"], failed: ["slow"] });
  });

  it("is cut into requests that a sidecar takes (4 MiB, base64)", async () => {
    const done = publishAll(Array.from({ length: 24 }, (_, n) => `big-${String(n)}`), 240 * 1024);
    const answering = setInterval(() => { for (const one of asked) one.answer(204); }, 20);
    expect((await done).failed).toEqual([]);
    clearInterval(answering);
    for (const { ids } of asked) expect(ids.length * 240 * 1024 * 4 / 3).toBeLessThan(4 * 1024 * 1024);
    expect(asked.flatMap(({ ids }) => ids)).toHaveLength(24);
  });
});

describe("a request for several", () => {
  /** What the bus reports of b, c and d when their request is answered so. */
  async function reported(answer: (one: Asked) => void): Promise<{ published: string[]; failed: string[] }> {
    const done = publishAll(["a", "b", "c", "d"]);
    (await request(0)).answer(204);
    answer(await request(1));
    return done;
  }

  it("fails for those that the answer names, and for no other", async () => {
    expect(await reported((one) => { one.answer(500, JSON.stringify({ failedEntries: [{ entryId: "1", error: "broker said no" }], errorCode: "ERR_PUBSUB_PUBLISH_MESSAGE" })); })).toEqual({ published: ["a", "b", "d"], failed: ["c"] });
  });

  it("says of each failure what the broker said", async () => {
    const done = Promise.allSettled(["a", "b", "c"].map((id) => bus.publish("tasks", envelope(id))));
    (await request(0)).answer(204);
    (await request(1)).answer(500, JSON.stringify({ failedEntries: [{ entryId: "1", error: "broker said no" }] }));
    expect((await done)[2]).toMatchObject({ reason: { code: "broker_unavailable", retryable: true, message: expect.stringContaining("broker said no") as string } });
  });

  it.each([
    { name: "is refused as a whole", answer: (one: Asked) => { one.answer(403, JSON.stringify({ errorCode: "ERR_PUBSUB_FORBIDDEN", message: "no" })); } },
    { name: "fails without saying for whom", answer: (one: Asked) => { one.answer(500, JSON.stringify({ failedEntries: [] })); } },
    { name: "fails for entries that it never had", answer: (one: Asked) => { one.answer(500, JSON.stringify({ failedEntries: [{ entryId: "17" }, { entryId: "x" }] })); } },
    { name: "fails with what is not JSON", answer: (one: Asked) => { one.answer(502, "<html>"); } },
    { name: "fails with JSON null", answer: (one: Asked) => { one.answer(500, "null"); } },
    { name: "gets no answer", answer: (one: Asked) => { one.cut(); } },
  ])("that $name is reported as published for none", async ({ answer }) => {
    expect(await reported(answer)).toEqual({ published: ["a"], failed: ["b", "c", "d"] });
  });

  it("that failed holds nothing up: what comes afterwards goes out", async () => {
    expect((await reported((one) => { one.cut(); })).failed).toHaveLength(3);
    const again = publishAll(["b", "c"]);
    (await request(2)).answer(204);
    (await request(3)).answer(204);
    expect(await again).toEqual({ published: ["b", "c"], failed: [] });
  });
});

it("a sidecar that serves single publications only gets no other", async () => {
  const single = new DaprBus(sidecar, { together: false });
  const done = Promise.all(["a", "b", "c"].map((id) => single.publish("toolResults", envelope(id))));
  for (const at of [0, 1, 2]) (await request(at)).answer(204);
  await done;
  expect(asked.every(({ path, ids }) => path.startsWith("/v1.0/publish/") && ids.length === 1)).toBe(true);
});
