/**
 * Owns: the outside parts that a profile expects on the network (its broker, PostgreSQL): where they are, and whether what
 * listens there speaks the right protocol. No part is logged in to: a wrong password is the sidecar's to report.
 */
import { createConnection } from "node:net";
import { LauncherError } from "./errors.js";
import { addressesOf, brokerOf, startsOwnBroker, usesPostgres, type ProfileName } from "./profiles.js";

type Protocol = "redis" | "nats" | "rabbitmq" | "kafka" | "postgresql";

/** One outside part of a profile. */
export interface External {
  readonly name: Protocol;
  readonly label: string;
  /** `host:port` of each server that may answer; empty when the setting is not one that can be looked at from here. */
  readonly servers: readonly string[];
  /** What to do when none answers. */
  readonly fix: string;
}

/** Comes back in Kafka's reply, after four bytes of length. */
const CORRELATION_ID = 0xd0c7;

/** What is said first, and how the right server answers it. */
const GREETINGS: Record<Protocol, { readonly hello: Buffer | undefined; readonly isAnswer: (data: Buffer) => boolean }> = {
  redis: { hello: Buffer.from("PING\r\n"), isAnswer: (data) => /^(\+PONG|-NOAUTH)/.test(data.toString("latin1")) },
  nats: { hello: undefined, isAnswer: (data) => data.toString("latin1", 0, 5) === "INFO " },
  // Connection.Start is a method frame, whose type is 1; a server of another version says its own greeting.
  rabbitmq: { hello: Buffer.from([...Buffer.from("AMQP"), 0, 0, 9, 1]), isAnswer: (data) => data[0] === 1 || data.toString("latin1", 0, 4) === "AMQP" },
  // ApiVersions, version 0: every Kafka answers it, before any login.
  kafka: { hello: Buffer.from([0, 0, 0, 10, 0, 18, 0, 0, 0, 0, CORRELATION_ID >> 8, CORRELATION_ID & 0xff, 0xff, 0xff]), isAnswer: (data) => data.length >= 8 && data.readUInt32BE(4) === CORRELATION_ID },
  // SSLRequest: S or N comes back before any login.
  postgresql: { hello: Buffer.from([0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f]), isAnswer: (data) => /^[SN]/.test(data.toString("latin1")) },
};

const FIXES: Record<Protocol, { readonly label: string; readonly fix: string }> = {
  redis: { label: "Redis", fix: "`dapr init` leaves one at localhost:6379; DOCKET_REDIS_HOST names another" },
  nats: { label: "NATS", fix: "Start nats-server with -js; DOCKET_NATS_URL names another address" },
  rabbitmq: { label: "RabbitMQ", fix: "Start it; DOCKET_RABBITMQ_URL names another address, user and virtual host" },
  kafka: { label: "Kafka", fix: "Start it; DOCKET_KAFKA_BROKERS names other addresses" },
  postgresql: { label: "PostgreSQL", fix: "Start it; DOCKET_POSTGRES_URL names another server and database" },
};

const DEFAULT_PORTS: Record<Protocol, number> = { redis: 6379, nats: 4222, rabbitmq: 5672, kafka: 9092, postgresql: 5432 };

/** What a profile expects to find running. */
export function externalsOf(profile: ProfileName, env: NodeJS.ProcessEnv): External[] {
  const addresses = addressesOf(env);
  const broker = brokerOf(profile);
  return [
    ...(startsOwnBroker(profile) ? [] : [{ name: broker, ...FIXES[broker], servers: serversIn(addresses[broker], DEFAULT_PORTS[broker]) }]),
    ...(usesPostgres(profile) ? [{ name: "postgresql" as const, ...FIXES.postgresql, servers: serversIn(addresses.postgresql, DEFAULT_PORTS.postgresql) }] : []),
  ];
}

/** Throws for the first outside part that does not answer. */
export async function checkExternals(profile: ProfileName, env: NodeJS.ProcessEnv): Promise<void> {
  for (const external of externalsOf(profile, env)) {
    if (external.servers.length === 0 || (await isThere(external))) continue;
    throw new LauncherError("BROKER_UNREACHABLE", `The profile "${profile}" needs ${external.label} at ${external.servers.join(" or ")}, and none answers there.`, `${external.fix}.\nOr use the profile without outside parts: npm run dev -- --profile embedded`);
  }
}

/** True when any of its servers answers. */
export async function isThere(external: External): Promise<boolean> {
  return (await Promise.all(external.servers.map((server) => answers(external.name, server)))).includes(true);
}

/** True when what listens at `host:port` speaks the protocol. */
export function answers(protocol: Protocol, server: string): Promise<boolean> {
  const { hello, isAnswer } = GREETINGS[protocol];
  const colon = server.lastIndexOf(":");
  return new Promise((resolve) => {
    const socket = createConnection({ host: server.slice(0, colon), port: Number(server.slice(colon + 1)), timeout: 2_000 });
    const settle = (ok: boolean): void => {
      socket.destroy();
      resolve(ok);
    };
    socket.once("connect", () => {
      if (hello !== undefined) socket.write(hello);
    });
    socket.once("data", (data) => {
      settle(isAnswer(data));
    });
    for (const event of ["timeout", "error", "end"]) socket.once(event, () => {
      settle(false);
    });
  });
}

/** `host:port` of each address in a list of URLs, of `host:port`, or in a PostgreSQL keyword string. TLS is not looked behind. */
function serversIn(setting: string, defaultPort: number): string[] {
  const keywords = /\bhost=(\S+)/.exec(setting)?.[1];
  if (keywords !== undefined) return [`${keywords}:${/\bport=(\d+)/.exec(setting)?.[1] ?? String(defaultPort)}`];
  return setting.split(",").flatMap((item) => {
    const text = item.trim();
    if (/^(amqps|tls|rediss):/.test(text)) return [];
    const address = text.includes("://") ? text : `tcp://${text}`;
    if (!URL.canParse(address)) return [];
    const { hostname, port } = new URL(address);
    return hostname === "" ? [] : [`${hostname}:${port === "" ? String(defaultPort) : port}`];
  });
}
