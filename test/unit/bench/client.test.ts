/** The bench's users see the end of every run, or say that they did not: a bench that waits for ever reports nothing. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Users } from "../../../bench/client.js";

let server: Server;
let users: Users;
const failures: string[] = [];
const streams: { lastId: string | undefined }[] = [];
let onStream: (response: ServerResponse, nth: number) => void;
beforeEach(async () => {
  failures.length = 0;
  streams.length = 0;
  server = createServer((request: IncomingMessage, response) => {
    if (request.method === "POST") { response.writeHead(202).end(JSON.stringify({ runId: "run_1", eventKey: "k" })); return; }
    streams.push({ lastId: request.headers["last-event-id"] as string | undefined });
    onStream(response, streams.length);
  });
  await new Promise<void>((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  users = new Users(`http://127.0.0.1:${String((server.address() as AddressInfo).port)}`, ["key"], (error) => { failures.push(error.message); });
});
afterEach(async () => {
  vi.useRealTimers();
  await users.close();
  server.closeAllConnections();
  await new Promise((resolve) => { server.close(resolve); });
});

const entry = (rev: number, events: object[]): string => `id: ${String(rev)}\nevent: journal\ndata: ${JSON.stringify({ rev, events })}\n\n`;
const end = entry(2, [{ type: "RunEnded", runId: "run_1", outcome: "completed" }]);
const said = async () => await (await users.open("s").say("t", "hello")).ended;

describe("a user of the bench", () => {
  it("waits for a session that comes later than the gateway waits for it", async () => {
    onStream = (response, nth) => { if (nth === 1) response.writeHead(404).end("{}"); else response.writeHead(200).write(end); };
    expect(await said()).toBe("completed");
    expect(failures).toEqual([]);
  });

  it("connects again where a stream ended or broke, behind what it has", async () => {
    onStream = (response, nth) => {
      response.writeHead(200);
      if (nth === 1) response.end(entry(1, []));
      else if (nth === 2) response.write("id: 7", () => { response.destroy(); });
      else response.write(end);
    };
    expect(await said()).toBe("completed");
    expect(streams.map(({ lastId }) => lastId)).toEqual([undefined, "1", "1"]);
  });

  it("says so at once where no stream is given to it", async () => {
    onStream = (response) => { response.writeHead(429).end("{}"); };
    const session = users.open("s");
    for (let turn = 0; turn < 2; turn += 1) expect(await (await session.say("t", "hello")).ended).toBe("without a stream");
    expect(failures).toEqual(["the stream answered 429"]);
  });

  it("gives an answer up that does not come", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onStream = (response) => { response.writeHead(200).write(entry(1, [])); };
    const { ended } = await users.open("s").say("t", "hello");
    vi.advanceTimersByTime(120_000);
    expect(await ended).toBe("not within 120 s");
  });
});
