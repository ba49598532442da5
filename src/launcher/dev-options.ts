/** Owns: the command line of `npm run dev`. */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { LauncherError, messageOf } from "./errors.js";
import { parsePortOverrides, type PortMap } from "./ports.js";
import { PROFILES, type ProfileName } from "./profiles.js";

export const DEV_HELP = `npm run dev -- [options]     Starts Docket on this machine and keeps it running until Ctrl-C.

  --profile <name>      ${PROFILES.join(" | ")} (default embedded: NATS JetStream and SQLite, nothing else needed;
                        local: the Redis that \`dapr init\` starts; rabbitmq, nats and production (Kafka) with
                        PostgreSQL: yours, see docs/configuration.md for their addresses)
  --only <apps>         start only these apps, comma-separated (gateway, sessions, tools, console)
  --sessions <n>        session hosts to start (default 1)
  --data-dir <folder>   where sessions, streams and logs live (default .docket)
  --ports <mode>        default | free: those of dapr.yaml, or any that are free
  --port <name=number>  one port, repeatable: gateway.public=7400 (also DOCKET_PORTS, comma-separated)
  --run-file <file>     default dapr.yaml
  --mtls                sidecars, placement and scheduler use certificates of Dapr's sentry, as in a cluster
  --verbose             also show what sidecars, broker, placement and scheduler say
  --help

State is kept in the data folder: the next start finds its sessions again. Remove the folder to start anew.`;

export interface DevOptions {
  readonly profile: ProfileName;
  readonly only: readonly string[];
  readonly sessionsReplicas: number;
  readonly dataDir: string;
  readonly ports: "default" | "free";
  readonly portOverrides: PortMap;
  readonly runFile: string | undefined;
  readonly mtls: boolean;
  readonly verbose: boolean;
  readonly help: boolean;
}

/** Parses the arguments; throws one error that says what was expected. */
export function parseDevOptions(args: readonly string[], env: NodeJS.ProcessEnv): DevOptions {
  const values = parse(args);
  const list = (text: string | undefined): string[] => (text ?? "").split(",").map((item) => item.trim()).filter(Boolean);
  const sessions = Number(values.sessions ?? 1);
  if (!Number.isInteger(sessions) || sessions < 1 || sessions > 8) throw wrong("--sessions", String(values.sessions), "a number from 1 to 8");
  return {
    profile: oneOf("--profile", values.profile ?? env["DOCKET_PROFILE"] ?? "embedded", PROFILES),
    only: list(values.only),
    sessionsReplicas: sessions,
    dataDir: resolve(values["data-dir"] ?? env["DOCKET_DATA_DIR"] ?? ".docket"),
    ports: oneOf("--ports", values.ports ?? "default", ["default", "free"] as const),
    portOverrides: parsePortOverrides([env["DOCKET_PORTS"] ?? "", ...(values.port ?? [])]),
    runFile: values["run-file"],
    mtls: values.mtls ?? false,
    verbose: values.verbose ?? false,
    help: values.help ?? false,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        profile: { type: "string" },
        only: { type: "string" },
        sessions: { type: "string" },
        "data-dir": { type: "string" },
        ports: { type: "string" },
        port: { type: "string", multiple: true },
        "run-file": { type: "string" },
        mtls: { type: "boolean" },
        verbose: { type: "boolean", short: "v" },
        help: { type: "boolean", short: "h" },
      },
    }).values;
  } catch (error) {
    throw new LauncherError("OPTION_INVALID", messageOf(error), "npm run dev -- --help lists the options.", { cause: error });
  }
}

function oneOf<T extends string>(flag: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find((item) => item === value);
  if (found === undefined) throw wrong(flag, value, `one of ${allowed.join(", ")}`);
  return found;
}

function wrong(flag: string, value: string, expected: string): LauncherError {
  return new LauncherError("OPTION_INVALID", `${flag} is "${value}".`, `Expected ${expected}.`);
}
