/** Owns: what each profile needs beside the apps, and the variables its component files read. Whether it answers: externals.ts. */
import { join } from "node:path";
import { STATE_STORES, type AppId } from "../contracts/channels.js";

export const PROFILES = ["embedded", "local", "rabbitmq", "nats", "production"] as const;
/** A folder of components/. */
export type ProfileName = (typeof PROFILES)[number];
export type BrokerKind = "nats" | "redis" | "rabbitmq" | "kafka";

const PARTS: Record<ProfileName, { readonly broker: BrokerKind; readonly ownBroker: boolean; readonly postgres: boolean }> = {
  embedded: { broker: "nats", ownBroker: true, postgres: false },
  local: { broker: "redis", ownBroker: false, postgres: false },
  rabbitmq: { broker: "rabbitmq", ownBroker: false, postgres: true },
  nats: { broker: "nats", ownBroker: false, postgres: true },
  production: { broker: "kafka", ownBroker: false, postgres: true },
};

/** Whose state store each variable opens: a sidecar is told its own app's address only. */
const POSTGRES_OF: Partial<Record<AppId, { readonly variable: string; readonly store: string }>> = {
  sessions: { variable: "DOCKET_POSTGRES_SESSIONS", store: STATE_STORES.sessions },
  gateway: { variable: "DOCKET_POSTGRES_INBOX", store: STATE_STORES.inbox },
  tools: { variable: "DOCKET_POSTGRES_TOOLS", store: STATE_STORES.tools },
};

export interface ProfileInputs {
  readonly dataDir: string;
  readonly appId: AppId;
  /** The running copy's name, `gateway-2`: names what only this replica may read. */
  readonly replica: string;
  readonly brokerPort: number;
  readonly brokerToken: string;
  readonly env: NodeJS.ProcessEnv;
}

export function brokerOf(profile: ProfileName): BrokerKind {
  return PARTS[profile].broker;
}

/** True when the launcher starts the profile's broker itself. */
export function startsOwnBroker(profile: ProfileName): boolean {
  return PARTS[profile].ownBroker;
}

/** True when the profile's component files name PostgreSQL as state store. */
export function usesPostgres(profile: ProfileName): boolean {
  return PARTS[profile].postgres;
}

/** Where the outside parts are, as set or as they are by default. */
export function addressesOf(env: NodeJS.ProcessEnv): Record<BrokerKind | "postgresql", string> {
  return {
    redis: env["DOCKET_REDIS_HOST"] ?? "127.0.0.1:6379",
    nats: env["DOCKET_NATS_URL"] ?? "nats://127.0.0.1:4222",
    rabbitmq: env["DOCKET_RABBITMQ_URL"] ?? "amqp://guest:guest@127.0.0.1:5672/",
    kafka: env["DOCKET_KAFKA_BROKERS"] ?? "127.0.0.1:9092",
    postgresql: env["DOCKET_POSTGRES_URL"] ?? "postgres://postgres@127.0.0.1:5432/docket",
  };
}

/** The variables that the component files refer to by `envRef`; they go to the sidecars and never to the apps. */
export function componentEnv(profile: ProfileName, inputs: ProfileInputs): Record<string, string> {
  const state = join(inputs.dataDir, "state");
  return {
    DOCKET_SQLITE_SESSIONS: join(state, "sessions.db"),
    DOCKET_SQLITE_INBOX: join(state, "inbox.db"),
    DOCKET_SQLITE_TOOLS: join(state, "tools.db"),
    DOCKET_SQLITE_NAMES: join(inputs.dataDir, "names.db"),
    DOCKET_REPLICA: `live-${inputs.replica}`,
    ...postgresEnv(profile, inputs),
    ...brokerEnv(profile, inputs),
  };
}

function brokerEnv(profile: ProfileName, inputs: ProfileInputs): Record<string, string> {
  const { env } = inputs;
  const given = (variable: string, fallback = ""): Record<string, string> => ({ [variable]: env[variable] ?? fallback });
  if (startsOwnBroker(profile)) return { DOCKET_NATS_URL: `nats://127.0.0.1:${inputs.brokerPort}`, DOCKET_NATS_TOKEN: inputs.brokerToken };
  const addresses = addressesOf(env);
  switch (brokerOf(profile)) {
    case "nats":
      return { DOCKET_NATS_URL: addresses.nats, ...given("DOCKET_NATS_TOKEN") };
    case "redis":
      return { DOCKET_REDIS_HOST: addresses.redis, ...given("DOCKET_REDIS_PASSWORD") };
    case "rabbitmq":
      return { DOCKET_RABBITMQ_URL: addresses.rabbitmq };
    case "kafka":
      return {
        DOCKET_KAFKA_BROKERS: addresses.kafka, ...given("DOCKET_KAFKA_AUTH_TYPE", "none"),
        ...given("DOCKET_KAFKA_SASL_MECHANISM"), ...given("DOCKET_KAFKA_SASL_USERNAME"), ...given("DOCKET_KAFKA_SASL_PASSWORD"), ...given("DOCKET_KAFKA_CA_CERT"),
      };
  }
}

/** Also for a profile with SQLite files when an address is set: tests put PostgreSQL under any broker. */
function postgresEnv(profile: ProfileName, { appId, env }: ProfileInputs): Record<string, string> {
  const own = POSTGRES_OF[appId];
  if (own === undefined) return {};
  const address = env[own.variable] ?? env["DOCKET_POSTGRES_URL"] ?? (usesPostgres(profile) ? addressesOf(env).postgresql : undefined);
  return address === undefined ? {} : { [own.variable]: address };
}
