/**
 * The promises of the state store that every turn relies on (DESIGN 3), on a real daprd with the embedded profile's
 * SQLite component: create-only, rollback of the whole transaction, etags, digits of values, bulk reads.
 */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { changeDocument } from "../../src/dapr/cas-document.js";
import { probeFencing } from "../../src/dapr/fencing.js";
import { Sidecar } from "../../src/dapr/sidecar.js";
import { DaprState } from "../../src/dapr/state.js";
import { startTestStack, type TestStack } from "../support/cluster.js";

let test: TestStack;
let sidecar: Sidecar;
let state: DaprState;

beforeAll(async () => {
  test = await startTestStack({ probeApps: true, only: ["sessions"] });
  const env = test.stack.envOf("sessions");
  sidecar = new Sidecar({ baseUrl: `http://127.0.0.1:${env["DAPR_HTTP_PORT"] ?? ""}`, apiToken: env["DAPR_API_TOKEN"] });
  state = new DaprState(sidecar, "session-store");
});

afterAll(async () => {
  await sidecar.close();
  await test.close();
});

describe("the session store on a real sidecar", () => {
  it("accepts a key once when the write is create-only", async () => {
    const key = `t:${randomUUID()}`;
    expect(await state.transact([{ op: "put", key, value: "1", createOnly: true }])).toBe("committed");
    expect(await state.transact([{ op: "put", key, value: "2", createOnly: true }])).toBe("conflict");
    expect((await state.get(key))?.value).toBe("1");
  });

  it("rolls the whole transaction back when one condition fails, whatever its place in the list", async () => {
    const taken = `t:${randomUUID()}`;
    await state.transact([{ op: "put", key: taken, value: "1" }]);
    for (const order of ["first", "last"]) {
      const other = `t:${randomUUID()}`;
      const put = { op: "put", key: other, value: "2" } as const;
      const fence = { op: "put", key: taken, value: "2", createOnly: true } as const;
      expect(await state.transact(order === "first" ? [fence, put] : [put, fence])).toBe("conflict");
      expect(await state.get(other)).toBeUndefined();
    }
  });

  it("lets one of two hundred concurrent writers of a revision win", async () => {
    const key = `journal:${randomUUID()}:000000000001`;
    const results = await Promise.all(Array.from({ length: 200 }, (_, n) => state.transact([{ op: "put", key, value: String(n), createOnly: true }])));
    expect(results.filter((result) => result === "committed")).toHaveLength(1);
  });

  it("refuses a stale etag and takes a fresh one", async () => {
    const key = `t:${randomUUID()}`;
    await state.transact([{ op: "put", key, value: "1" }]);
    const first = await state.get(key);
    expect(await state.transact([{ op: "put", key, value: "2", etag: first?.etag ?? "" }])).toBe("committed");
    expect(await state.transact([{ op: "put", key, value: "3", etag: first?.etag ?? "" }])).toBe("conflict");
    expect((await state.get(key))?.value).toBe("2");
  });

  it("keeps values as they are and leaves missing keys out of a bulk read", async () => {
    const key = `t:${randomUUID()}`;
    const value = JSON.stringify({ text: "9007199254740993 ÄÖÜ \u2028 {\"nested\":\"json\"}", list: [] });
    await state.transact([{ op: "put", key, value }]);
    const found = await state.bulkGet([key, `t:${randomUUID()}`]);
    expect([...found.keys()]).toEqual([key]);
    expect(JSON.parse(found.get(key)?.value ?? "")).toEqual(JSON.parse(value));
    expect(JSON.parse((await state.get(key))?.value ?? "")).toEqual(JSON.parse(value));
  });

  it("is found able to fence at start", async () => {
    await expect(probeFencing(state, "session-store", false)).resolves.toBeUndefined();
  });

  it("changes a shared document without losing an update", async () => {
    const key = `doc:${randomUUID()}`;
    await Promise.all(Array.from({ length: 8 }, () => changeDocument<{ n: number }, undefined>(state, key, (document) => ({ write: { n: (document?.n ?? 0) + 1 }, result: undefined }))));
    expect(JSON.parse((await state.get(key))?.value ?? "")).toEqual({ n: 8 });
  });
});
