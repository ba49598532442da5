/** Owns: what each profile that this machine can run needs beside the apps, and the variables its component files read. */
import { createConnection } from "node:net";
import { join } from "node:path";
import { LauncherError } from "./errors.js";

export const PROFILES = ["embedded", "local"] as const;
/** A folder of components/ that the launcher can start. The other folders are for clusters. */
export type ProfileName = (typeof PROFILES)[number];

export interface ProfileInputs {
  readonly dataDir: string;
  readonly brokerPort: number;
  readonly brokerToken: string;
  readonly env: NodeJS.ProcessEnv;
}

/** True when the launcher starts the profile's broker itself. */
export function startsOwnBroker(profile: ProfileName): boolean {
  return profile === "embedded";
}

/** The variables that the component files refer to by `envRef`; they go to the sidecars and never to the apps. */
export function componentEnv(profile: ProfileName, inputs: ProfileInputs): Record<string, string> {
  const state = join(inputs.dataDir, "state");
  const shared = {
    DOCKET_SQLITE_SESSIONS: join(state, "sessions.db"),
    DOCKET_SQLITE_INBOX: join(state, "inbox.db"),
    DOCKET_SQLITE_TOOLS: join(state, "tools.db"),
    DOCKET_SQLITE_NAMES: join(inputs.dataDir, "names.db"),
  };
  switch (profile) {
    case "embedded":
      return { ...shared, DOCKET_NATS_URL: `nats://127.0.0.1:${inputs.brokerPort}`, DOCKET_NATS_TOKEN: inputs.brokerToken };
    case "local":
      return { ...shared, DOCKET_REDIS_HOST: redisHost(inputs.env), DOCKET_REDIS_PASSWORD: inputs.env["DOCKET_REDIS_PASSWORD"] ?? "" };
  }
}

/** Where the `local` profile expects Redis. */
export function redisHost(env: NodeJS.ProcessEnv): string {
  return env["DOCKET_REDIS_HOST"] ?? "127.0.0.1:6379";
}

/** Throws unless the broker that the profile does not start itself answers. */
export async function checkExternalBroker(profile: ProfileName, env: NodeJS.ProcessEnv): Promise<void> {
  if (startsOwnBroker(profile)) return;
  const host = redisHost(env);
  if (await answersPing(host)) return;
  throw new LauncherError("BROKER_UNREACHABLE", `The profile "${profile}" needs Redis at ${host}, and nothing answers there.`, "Start it (`dapr init` leaves one at localhost:6379; DOCKET_REDIS_HOST names another), or use the profile without outside parts: npm run dev -- --profile embedded");
}

/** True when a Redis server answers, with or without asking for a password first. */
export function answersPing(hostAndPort: string): Promise<boolean> {
  const colon = hostAndPort.lastIndexOf(":");
  const host = colon < 0 ? hostAndPort : hostAndPort.slice(0, colon);
  const port = colon < 0 ? 6379 : Number(hostAndPort.slice(colon + 1));
  return new Promise((resolve) => {
    const socket = createConnection({ host, port, timeout: 2_000 });
    const settle = (ok: boolean): void => {
      socket.destroy();
      resolve(ok);
    };
    socket.once("connect", () => socket.write("PING\r\n"));
    socket.once("data", (data) => {
      settle(/^(\+PONG|-NOAUTH)/.test(data.toString("latin1")));
    });
    socket.once("timeout", () => {
      settle(false);
    });
    socket.once("error", () => {
      settle(false);
    });
  });
}
