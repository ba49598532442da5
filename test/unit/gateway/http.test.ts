/** The public listener against clients that do not behave (research 7.3, HTTP). */
import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createHttpApp, finishRoutes, listen, rawBody, bodyText, type Listening } from "../../../src/platform/http.js";
import { createLogger } from "../../../src/platform/log.js";

let server: Listening;
let port = 0;
beforeEach(async () => {
  const app = createHttpApp();
  app.post("/echo", rawBody(1_000), (req, res) => { res.type("text/plain").send(bodyText(req)); });
  app.get("/slow", (_req, res) => { res.write("start\n"); });
  app.get("/fails", () => { throw new Error("at /srv/app: password=hunter2"); });
  finishRoutes(app, createLogger("test", "silent"));
  server = await listen(app, { host: "127.0.0.1", port: 0, headersTimeoutMs: 200, requestTimeoutMs: 400 });
  port = Number(new URL(server.url).port);
});
afterEach(async () => { await server.close(10); });

/** Writes pieces with pauses, and gives everything that came back once the server closed the connection. */
function talk(pieces: readonly string[], pauseMs = 0): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(port, "127.0.0.1");
    const timer = setTimeout(() => { socket.destroy(); }, 3_000);
    socket.on("data", (chunk) => { text += chunk.toString(); });
    socket.on("error", () => undefined);
    socket.on("close", () => { clearTimeout(timer); resolve(text); });
    const write = (at: number): void => {
      const piece = pieces[at];
      if (piece === undefined || socket.destroyed) return;
      socket.write(piece);
      setTimeout(() => { write(at + 1); }, pauseMs);
    };
    write(0);
  });
}

const head = "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";

describe("listener", () => {
  it("echoes raw bytes, BOM and all", async () => {
    const res = await fetch(`${server.url}/echo`, { method: "POST", body: "\ufeffa\r\n" });
    expect(Buffer.from(await res.arrayBuffer()).toString("hex")).toBe(Buffer.from("\ufeffa\r\n").toString("hex"));
  });

  it("cuts slow headers and slow bodies (slowloris)", async () => {
    const slowHeaders = await talk(["POST /echo HTTP/1.1\r\n", ...Array.from({ length: 40 }, (_, n) => `X-${n}: y\r\n`)], 50);
    expect(slowHeaders).toContain("408");
    const slowBody = await talk([`${head}Content-Length: 100\r\n\r\n`, ...Array.from({ length: 60 }, () => "x")], 50);
    expect(slowBody).not.toContain("200 OK");
  });

  it.each([
    ["both length and chunked (CL.TE)", `${head}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /admin HTTP/1.1\r\n\r\n`],
    ["two lengths", `${head}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc`],
    ["a broken chunk", `${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n`],
    ["a header of 20 KB", `${head}X-Long: ${"y".repeat(20_000)}\r\n\r\n`],
    ["an unknown method", "BREW /echo HTTP/1.1\r\nHost: x\r\n\r\n"],
    ["no HTTP at all", "\x00\x01\x02\r\n\r\n"],
  ])("refuses %s and goes on", async (_name, text) => {
    expect(await talk([text])).toMatch(/^HTTP\/1\.1 4\d\d/);
    expect((await fetch(`${server.url}/echo`, { method: "POST", body: "ok" })).status).toBe(200);
  });

  it("counts a chunked body, and refuses a length that is too large before reading", async () => {
    const chunk = `3e8\r\n${"x".repeat(1_000)}\r\n`;
    expect(await talk([`${head}Transfer-Encoding: chunked\r\n\r\n${chunk}${chunk}`])).toContain("413");
    expect(await talk([`${head}Content-Length: 99999999999999999999\r\n\r\n`])).toMatch(/ 4(00|13) /);
    expect(await talk([`${head}Content-Length: 1001\r\n\r\n`])).toContain("413");
  });

  it("drops a request whose client left in the middle of its body", async () => {
    const socket = connect(port, "127.0.0.1", () => { socket.write(`${head}Content-Length: 10\r\n\r\nabc`); setTimeout(() => { socket.destroy(); }, 20); });
    await new Promise((resolve) => socket.once("close", resolve));
    expect((await fetch(`${server.url}/echo`, { method: "POST", body: "ok" })).status).toBe(200);
  });

  it("says nothing of what failed inside", async () => {
    const res = await fetch(`${server.url}/fails`);
    expect(res.status).toBe(500);
    const text = await res.text();
    expect(text).not.toContain("hunter2");
    expect(JSON.parse(text)).toMatchObject({ code: "internal", type: "urn:docket:problem:internal" });
  });

  it("takes a sane request id over and replaces another", async () => {
    const id = async (given: string): Promise<string | null> => (await fetch(server.url, { headers: { "x-request-id": given } })).headers.get("x-request-id");
    expect(await id("abc-1")).toBe("abc-1");
    expect(await id("a b<script>")).toMatch(/^[0-9a-f-]{36}$/);
  });

  it("rejects when the port is taken, and closes with a request open", async () => {
    await expect(listen(createHttpApp(), { host: "127.0.0.1", port })).rejects.toMatchObject({ code: "EADDRINUSE" });
    const answer = await fetch(`${server.url}/slow`); // its head and first line are here, the rest never comes
    const rest = answer.text().catch(() => "cut");
    await server.close(50);
    expect(await rest).toBe("cut");
  });
});
