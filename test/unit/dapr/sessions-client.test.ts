/** Reads of a session through a sidecar that answers as told: a host that comes or goes is waited for a moment, and not for ever. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { SessionsClient } from "../../../src/dapr/sessions-client.js";
import { Sidecar } from "../../../src/dapr/sidecar.js";

let server: Server;
let sidecar: Sidecar;
let asked: number;
/** Refuses that many calls before it answers. */
let refusals: number;

beforeEach(async () => {
  asked = 0;
  server = createServer((request, response) => {
    let body = "";
    request.on("data", (piece: Buffer) => { body += piece.toString(); });
    request.on("end", () => {
      asked += 1;
      const { token } = JSON.parse(body) as { token: string };
      if (asked <= refusals) response.writeHead(500).end('{"errorCode":"ERR_ACTOR_INVOKE_METHOD"}');
      else response.writeHead(200).end(JSON.stringify({ ok: true, token, outcome: { state: "unknown" } }));
    });
  });
  await new Promise<void>((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  sidecar = new Sidecar({ baseUrl: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}` });
});
afterEach(async () => {
  await sidecar.close();
  await new Promise((resolve) => { server.close(resolve); });
});

it("is asked again while the actor's host is on the move", async () => {
  refusals = 3;
  expect(await new SessionsClient(sidecar).readOutcome("default_s", "k")).toEqual({ state: "unknown" });
  expect(asked).toBe(4);
});

it("has failed when its patience is over, and says why", async () => {
  refusals = Infinity;
  const fromMs = performance.now();
  await expect(new SessionsClient(sidecar, 1_000).readOutcome("default_s", "k")).rejects.toMatchObject({ code: "actor_unavailable", retryable: true, message: expect.stringContaining("ERR_ACTOR_INVOKE_METHOD") as string });
  expect(performance.now() - fromMs).toBeLessThan(6_000); // 8 s where nobody says otherwise
  expect(asked).toBeGreaterThan(3);
});
