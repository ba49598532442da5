/** The TCP proxy: cut, hang and delay, and order kept in each. */
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../support/cluster.js";
import { TcpProxy } from "../../support/tcp-proxy.js";

let echo: Server;
let proxy: TcpProxy;
const clients: Socket[] = [];

beforeEach(async () => {
  echo = createServer((socket) => { socket.on("error", () => undefined); socket.pipe(socket); });
  await new Promise<void>((resolve) => echo.listen(0, "127.0.0.1", resolve));
  proxy = await TcpProxy.start({ host: "127.0.0.1", port: (echo.address() as AddressInfo).port });
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await proxy.close();
  await new Promise((resolve) => { echo.close(resolve); });
});

async function open(): Promise<{ socket: Socket; text: () => string }> {
  const socket = connect(proxy.port, "127.0.0.1");
  clients.push(socket);
  socket.on("error", () => undefined);
  let text = "";
  socket.on("data", (bytes: Buffer) => { text += bytes.toString(); });
  await once(socket, "connect");
  return { socket, text: () => text };
}

describe("the TCP proxy", () => {
  it("passes both ways", async () => {
    const client = await open();
    client.socket.write("hello");
    await eventually("the echo", () => (client.text() === "hello" ? true : undefined));
  });

  it("cut: open connections break, new ones are refused, until it passes again", async () => {
    const client = await open();
    client.socket.write("a");
    await eventually("the echo", () => (client.text() === "a" ? true : undefined));
    proxy.set({ do: "cut" });
    await once(client.socket, "close");
    const refused = await open();
    await once(refused.socket, "close");
    expect(proxy.open).toBe(0);
    proxy.set({ do: "pass" });
    const again = await open();
    again.socket.write("b");
    await eventually("the echo", () => (again.text() === "b" ? true : undefined));
  });

  it("hang: connections stay open and nothing gets through; afterwards all of it does, in order", async () => {
    const client = await open();
    client.socket.write("1");
    await eventually("the echo", () => (client.text() === "1" ? true : undefined));
    proxy.set({ do: "hang" });
    client.socket.write("2");
    const later = await open();
    later.socket.write("x");
    client.socket.write("3");
    await eventually("the proxy holds both ends of both", () => (proxy.open === 4 ? true : undefined));
    expect([client.text(), later.text()]).toEqual(["1", ""]);
    proxy.set({ do: "pass" });
    await eventually("everything comes", () => (client.text() === "123" && later.text() === "x" ? true : undefined));
  });

  it("delay: each piece is late, none overtakes another", async () => {
    const client = await open();
    proxy.set({ do: "delay", ms: 80 });
    const sentAtMs = performance.now();
    for (const piece of ["a", "b", "c"]) client.socket.write(piece);
    await eventually("the echo", () => (client.text() === "abc" ? true : undefined));
    // Both ways.
    expect(performance.now() - sentAtMs).toBeGreaterThanOrEqual(155);
  });
});
