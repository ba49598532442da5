/** Server-side request forgery: the list of reliability.md 7.5, each as its own case. CWE-918. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Tool } from "../../../src/agent/definition.js";
import { isPublicAddress } from "../../../src/tools/builtin/address.js";
import { httpTools, type HttpSettings } from "../../../src/tools/builtin/http.js";
import { builtinSettingsFrom } from "../../../src/tools/builtin/index.js";
import { toolContext } from "../../support/tools/context.js";

interface Seen { readonly method: string; readonly url: string; readonly headers: Record<string, unknown>; readonly body: string }
interface Answer { status: number; body: string; truncated: boolean; contentType: string; location?: string; url?: string }

let server: Server;
let other: Server;
let base: string;
let otherPort: number;
const seen: Seen[] = [];

async function listen(created: Server): Promise<number> {
  await new Promise<void>((resolve) => created.listen(0, "127.0.0.1", resolve));
  return (created.address() as AddressInfo).port;
}

beforeAll(async () => {
  other = createServer((_, response) => response.end("the sidecar's secrets"));
  otherPort = await listen(other);
  server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => { body += chunk.toString(); });
    request.on("end", () => {
      seen.push({ method: request.method ?? "", url: request.url ?? "", headers: request.headers, body });
      const path = request.url ?? "/";
      const redirect = /^\/to\?(.*)$/.exec(path);
      if (redirect?.[1] !== undefined) response.writeHead(302, { location: decodeURIComponent(redirect[1]) }).end();
      else if (path === "/loop") response.writeHead(302, { location: "/loop" }).end();
      else if (path === "/big") {
        const chunk = Buffer.alloc(64 * 1024, "x");
        const more = (): void => { while (!response.destroyed && response.write(chunk)); if (!response.destroyed) response.once("drain", more); };
        response.writeHead(200, { "content-type": "text/plain" });
        more();
      } else if (path === "/slow") { response.writeHead(200, { "content-type": "text/plain" }); response.write("a"); }
      else if (path === "/silent") { /* never answers */ }
      else if (path === "/reset") request.socket.destroy();
      else if (path === "/png") response.writeHead(200, { "content-type": "image/png" }).end(Buffer.alloc(10));
      else if (path === "/503") response.writeHead(503).end("down");
      else response.writeHead(200, { "content-type": "application/json" }).end("{\"ok\":true}");
    });
  });
  base = `127.0.0.1:${String(await listen(server))}`;
});
afterAll(() => {
  for (const running of [server, other]) { running.closeAllConnections(); running.close(); }
});

function tools(settings: Partial<HttpSettings> = {}): { get: Tool; send: Tool } {
  const [get, send] = httpTools({ allowHosts: [base], limits: { idleTimeoutMs: 1500, connectTimeoutMs: 1500, ...settings.limits }, ...settings });
  return { get: get!, send: send! };
}
const read = (url: string, settings?: Partial<HttpSettings>): Promise<Answer> => tools(settings).get.run({ url }, toolContext()) as Promise<Answer>;
const send = (args: Record<string, unknown>, settings?: Partial<HttpSettings>): Promise<Answer> => tools(settings).send.run({ method: "POST", ...args }, toolContext()) as Promise<Answer>;

describe("addresses", () => {
  it.each([
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.100.100.200",
    "192.0.0.192", "198.18.0.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "192.0.2.1", "168.63.129.16",
    "::", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:169.254.169.254", "::127.0.0.1", "fe80::1", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2001:0:7f00:1::", "2001:db8::1", "100::1", "not an address", "",
  ])("%s is not public", (address) => { expect(isPublicAddress(address)).toBe(false); });

  it.each(["93.184.216.34", "1.1.1.1", "2606:4700:4700::1111", "::ffff:93.184.216.34"])("%s is public", (address) => { expect(isPublicAddress(address)).toBe(true); });
});

describe("a URL is refused before anything is resolved or sent", () => {
  const resolve = (): never => { throw new Error("resolved"); };
  it.each([
    ["loopback", "http://127.0.0.1/"], ["loopback v6", "http://[::1]/"], ["zero", "http://0/"], ["decimal", "http://2130706433/"], ["hex", "http://0x7f.1/"],
    ["octal", "http://0177.0.0.1/"], ["short", "http://127.1/"], ["mapped", "http://[::ffff:127.0.0.1]/"], ["metadata", "http://169.254.169.254/latest/meta-data/"],
    ["full-width digits", "http://①②⑦.⓪.⓪.①/"], ["private", "http://10.1.2.3/"], ["carrier NAT", "http://100.64.1.1/"], ["multicast", "http://224.0.0.1/"],
    ["userinfo", "http://good.example@127.0.0.1/"], ["userinfo on a good host", "http://user:pass@example.com/"],
    ["file", "file:///etc/passwd"], ["gopher", "gopher://example.com/"], ["unix socket", "unix:/run/daprd.sock"], ["ftp", "ftp://example.com/"], ["data", "data:text/plain,x"],
    ["port of daprd", "http://example.com:3500/"], ["port of Redis", "http://example.com:6379/"], ["port of PostgreSQL", "http://example.com:5432/"], ["port of placement", "http://example.com:50005/"],
    ["no URL", "not a url"], ["no host", "http://"], ["relative", "//example.com/"],
  ])("%s", async (_, url) => {
    await expect(read(url, { resolve })).rejects.toMatchObject({ reason: "permanent", message: expect.stringContaining("refused") as string });
    await expect(send({ url }, { resolve })).rejects.toMatchObject({ reason: "permanent" });
  });
});

describe("a name is refused by what it resolves to", () => {
  it.each([
    ["loopback", ["127.0.0.1"]], ["loopback v6", ["::1"]], ["metadata", ["169.254.169.254"]], ["private", ["192.168.0.5"]], ["public and private", ["93.184.216.34", "10.0.0.1"]],
    ["mapped", ["::ffff:10.0.0.1"]],
  ])("%s", async (_, addresses) => {
    const resolve: HttpSettings["resolve"] = () => Promise.resolve(addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })));
    await expect(read("http://evil.example/", { resolve })).rejects.toMatchObject({ reason: "permanent", message: expect.stringContaining("not a public address") as string });
    await expect(send({ url: "http://evil.example/" }, { resolve })).rejects.toMatchObject({ reason: "permanent" });
  });

  it("localhost and localhost. with the real resolver", async () => {
    for (const host of ["localhost", "localhost.", "LOCALHOST", "api.localhost"]) await expect(read(`http://${host}/`)).rejects.toMatchObject({ reason: "permanent" });
  });

  it("rebinding: what is checked is what is connected to, there is no second look-up", async () => {
    let lookups = 0;
    const resolve: HttpSettings["resolve"] = () => { lookups += 1; return Promise.resolve([{ address: lookups === 1 ? "192.0.2.1" : "127.0.0.1", family: 4 }]); };
    await expect(read("http://rebind.example/", { resolve })).rejects.toMatchObject({ reason: "permanent" });
    expect(lookups).toBe(1);
  });

  it("a name without address, or a resolver that fails: a read may be retried, a request has not started", async () => {
    const none: HttpSettings["resolve"] = () => Promise.reject(Object.assign(new Error("getaddrinfo ENOTFOUND"), { code: "ENOTFOUND" }));
    await expect(read("http://nowhere.example/", { resolve: none })).rejects.toMatchObject({ reason: "transient" });
    await expect(send({ url: "http://nowhere.example/" }, { resolve: none })).rejects.toMatchObject({ reason: "not_started" });
  });
});

describe("redirects", () => {
  it.each([
    ["loopback on another port", () => `http://127.0.0.1:${String(otherPort)}/`], ["metadata", () => "http://169.254.169.254/"], ["a file", () => "file:///etc/passwd"], ["userinfo", () => `http://a@${base}/`],
  ])("to %s are refused", async (_, target) => {
    await expect(read(`http://${base}/to?${encodeURIComponent(target())}`)).rejects.toMatchObject({ reason: "permanent", message: expect.stringContaining("refused") as string });
  });

  it("to an allowed place are followed, also relative ones", async () => {
    expect(await read(`http://${base}/to?${encodeURIComponent("/ok")}`)).toMatchObject({ status: 200, url: `http://${base}/ok` });
  });

  it("in a loop end after five", async () => {
    const before = seen.length;
    await expect(read(`http://${base}/loop`)).rejects.toMatchObject({ reason: "permanent" });
    expect(seen.length - before).toBe(6);
  });

  it("of a request with effects are reported, not followed", async () => {
    expect(await send({ url: `http://${base}/to?${encodeURIComponent("/ok")}` })).toMatchObject({ status: 302, location: "/ok" });
  });
});

describe("answers", () => {
  it("text comes as text, other types as their size", async () => {
    expect(await read(`http://${base}/ok`)).toMatchObject({ status: 200, contentType: "application/json", body: "{\"ok\":true}", truncated: false });
    expect(await read(`http://${base}/png`)).toMatchObject({ body: "[10 bytes of image/png]" });
  });

  it("an endless answer is cut at the cap", async () => {
    const answer = await read(`http://${base}/big`, { limits: { maxBodyBytes: 100_000, idleTimeoutMs: 1500, connectTimeoutMs: 1500 } });
    expect(answer).toMatchObject({ truncated: true });
    expect(answer.body).toHaveLength(100_000);
  });

  it("a server that stops in the middle, or never answers, is given up", async () => {
    await expect(read(`http://${base}/slow`)).rejects.toMatchObject({ reason: "transient" });
    await expect(read(`http://${base}/silent`)).rejects.toMatchObject({ reason: "transient" });
    await expect(send({ url: `http://${base}/silent` })).rejects.toMatchObject({ reason: "outcome_unknown" });
    await expect(send({ url: `http://${base}/reset` })).rejects.toMatchObject({ reason: "outcome_unknown" });
  });

  it("nobody listens: a read may be retried, a request has not started", async () => {
    const dead = createServer();
    const port = await listen(dead);
    await new Promise((resolve) => dead.close(resolve));
    const settings = { allowHosts: [`127.0.0.1:${String(port)}`] };
    await expect(read(`http://127.0.0.1:${String(port)}/`, settings)).rejects.toMatchObject({ reason: "transient" });
    await expect(send({ url: `http://127.0.0.1:${String(port)}/` }, settings)).rejects.toMatchObject({ reason: "not_started" });
  });

  it("503 to a read may be retried, 503 to a request is an answer", async () => {
    await expect(read(`http://${base}/503`)).rejects.toMatchObject({ reason: "transient" });
    expect(await send({ url: `http://${base}/503` })).toMatchObject({ status: 503 });
  });

  it("the deadline's signal stops a request", async () => {
    const abort = new AbortController();
    const running = tools().get.run({ url: `http://${base}/silent` }, toolContext({ signal: abort.signal }));
    abort.abort(new Error("deadline"));
    await expect(running).rejects.toMatchObject({ reason: "transient" });
  });
});

describe("what is sent", () => {
  it("the body, the idempotency key and allowed headers; no proxy of the environment", async () => {
    process.env["HTTP_PROXY"] = process.env["http_proxy"] = `http://127.0.0.1:${String(otherPort)}`;
    try {
      await send({ url: `http://${base}/ok`, body: "{\"a\":1}", headers: { "content-type": "application/json" } });
    } finally {
      delete process.env["HTTP_PROXY"];
      delete process.env["http_proxy"];
    }
    expect(seen.at(-1)).toMatchObject({ method: "POST", body: "{\"a\":1}", headers: { "content-type": "application/json", "idempotency-key": "key-1" } });
  });

  it.each([["authorization", "Bearer x"], ["cookie", "a=b"], ["host", "evil"], ["x-forwarded-for", "127.0.0.1"], ["accept", "a\r\nx: y"]])("the header %s is against the schema", async (name, value) => {
    expect(await tools().send.violations({ method: "POST", url: "http://example.com/", headers: { [name]: value } })).not.toEqual([]);
  });

  it("the allow-list is of hosts and ports", () => {
    expect(builtinSettingsFrom({ DOCKET_HTTP_ALLOW_HOSTS: "localhost:8080, [::1]:9000,api.internal" }).http.allowHosts).toEqual(["localhost:8080", "::1:9000", "api.internal"]);
    expect(() => builtinSettingsFrom({ DOCKET_HTTP_ALLOW_HOSTS: "http://x/" })).toThrow(/expected host or host:port/);
    expect(() => builtinSettingsFrom({ DOCKET_SQL_SHOP: "mysql://x" })).toThrow(/DOCKET_SQL_SHOP/);
  });
});
