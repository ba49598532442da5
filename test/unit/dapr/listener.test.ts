/** The sidecar's side of the door: what a handler gets of a delivery, and what daprd is told of one that is too large to be read (I14). */
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { closeRoutes, createListener, listen } from "../../../src/dapr/listener.js";
import { createLogger } from "../../../src/platform/log.js";

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
