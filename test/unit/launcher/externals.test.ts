/** What a profile expects outside, where it is looked for, and who counts as an answer. */
import { createServer, type AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { answers, checkExternals, externalsOf } from "../../../src/launcher/externals.js";
import { componentEnv, type ProfileName } from "../../../src/launcher/profiles.js";

const serversOf = (profile: ProfileName, env: NodeJS.ProcessEnv = {}): Record<string, readonly string[]> => Object.fromEntries(externalsOf(profile, env).map(({ name, servers }) => [name, servers]));

async function saying<T>(greeting: string | undefined, reply: string, use: (server: string) => Promise<T>): Promise<T> {
  const listener = createServer((socket) => {
    socket.on("error", () => undefined);
    if (greeting !== undefined) socket.write(Buffer.from(greeting, "latin1"));
    socket.once("data", () => socket.end(Buffer.from(reply, "latin1")));
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  try {
    return await use(`127.0.0.1:${String((listener.address() as AddressInfo).port)}`);
  } finally {
    listener.close();
  }
}

describe("the outside parts", () => {
  it("are those of the profile, at their usual places", () => {
    expect(serversOf("embedded")).toEqual({});
    expect(serversOf("local")).toEqual({ redis: ["127.0.0.1:6379"] });
    expect(serversOf("rabbitmq")).toEqual({ rabbitmq: ["127.0.0.1:5672"], postgresql: ["127.0.0.1:5432"] });
    expect(serversOf("nats")).toEqual({ nats: ["127.0.0.1:4222"], postgresql: ["127.0.0.1:5432"] });
    expect(serversOf("production")).toEqual({ kafka: ["127.0.0.1:9092"], postgresql: ["127.0.0.1:5432"] });
  });

  it("are looked for where the environment says", () => {
    expect(serversOf("production", { DOCKET_KAFKA_BROKERS: "a:9092, b:9093", DOCKET_POSTGRES_URL: "host=db port=6000 user=x" })).toEqual({ kafka: ["a:9092", "b:9093"], postgresql: ["db:6000"] });
    expect(serversOf("rabbitmq", { DOCKET_RABBITMQ_URL: "amqp://u:p@mq/vhost", DOCKET_POSTGRES_URL: "postgres://u@db/x" })).toEqual({ rabbitmq: ["mq:5672"], postgresql: ["db:5432"] });
    // Behind TLS nothing is said before a handshake: the sidecar finds out.
    expect(serversOf("rabbitmq", { DOCKET_RABBITMQ_URL: "amqps://u:p@mq/vhost" })["rabbitmq"]).toEqual([]);
  });

  it.each([
    ["redis", undefined, "+PONG\r\n", true], ["redis", undefined, "HTTP/1.1 400\r\n", false],
    ["nats", "INFO {}\r\n", "", true], ["nats", "SSH-2.0\r\n", "", false],
    ["rabbitmq", undefined, "\x01\x00\x00", true], ["rabbitmq", undefined, "HTTP/1.1 400\r\n", false],
    ["kafka", undefined, "\x00\x00\x00\x06\x00\x00\xd0\xc7\x00\x00", true], ["kafka", undefined, "HTTP/1.1 400\r\n", false],
    ["postgresql", undefined, "N", true], ["postgresql", undefined, "HTTP/1.1 400\r\n", false],
  ] as const)("%s is known by what it says (%j, %j)", async (protocol, greeting, reply, expected) => {
    expect(await saying(greeting, reply, (server) => answers(protocol, server))).toBe(expected);
  });

  it("that do not answer stop the start, with what to do", async () => {
    await expect(checkExternals("production", { DOCKET_KAFKA_BROKERS: "127.0.0.1:1" })).rejects.toThrow("Kafka at 127.0.0.1:1");
  });
});

describe("a sidecar is told", () => {
  const inputs = { dataDir: "/data", replica: "tools", brokerPort: 1, brokerToken: "t", env: { DOCKET_POSTGRES_URL: "postgres://all", DOCKET_POSTGRES_TOOLS: "postgres://own" } } as const;

  it("the database of its own app only", () => {
    const postgres = (appId: "sessions" | "tools" | "console"): string[] => Object.entries(componentEnv("production", { ...inputs, appId })).filter(([key]) => key.startsWith("DOCKET_POSTGRES")).map((entry) => entry.join("="));
    expect(postgres("tools")).toEqual(["DOCKET_POSTGRES_TOOLS=postgres://own"]);
    expect(postgres("sessions")).toEqual(["DOCKET_POSTGRES_SESSIONS=postgres://all"]);
    expect(postgres("console")).toEqual([]);
  });

  it("a name that no other replica has", () => {
    const name = (replica: string): string | undefined => componentEnv("rabbitmq", { ...inputs, appId: "gateway", replica })["DOCKET_REPLICA"];
    expect(name("gateway")).not.toBe(name("gateway-2"));
  });

  it("that Kafka asks for no login unless one is set", () => {
    expect(componentEnv("production", { ...inputs, appId: "sessions" })).toMatchObject({ DOCKET_KAFKA_AUTH_TYPE: "none", DOCKET_KAFKA_SASL_PASSWORD: "" });
  });
});
