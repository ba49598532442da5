/** Owns: what can be asked of a stack, and everything that is settled before its first process starts (binaries, ports, secrets). */
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import type { AppId } from "../contracts/channels.js";
import { writeBrokerConfig, type StreamServer } from "./broker.js";
import { readComponents, type ComponentFile } from "./components.js";
import { checkExternals } from "./externals.js";
import type { ExitInfo, ProcessSpec } from "./managed-process.js";
import { prepareMtls } from "./mtls.js";
import { OrphanGuard } from "./orphan-guard.js";
import { chooseInstances, planProcesses, portWishes, type Instance, type InstanceTokens } from "./plan.js";
import { checkPortsFree, choosePorts, type PortMap } from "./ports.js";
import { addressesOf, brokerOf, startsOwnBroker, type ProfileName } from "./profiles.js";
import { readRunFile } from "./run-file.js";
import { locateDapr, locateNats } from "./runtime/locate.js";
import { ensureDataSecrets, randomToken, type DataSecrets } from "./secrets.js";

export interface StackOptions {
  readonly profile: ProfileName;
  /** Everything the stack remembers; made when missing. */
  readonly dataDir: string;
  /** `default`: those of dapr.yaml. `free`: any unused ones, so that stacks run side by side. */
  readonly ports: "default" | "free";
  readonly portOverrides?: PortMap;
  /** The checkout; default the current folder. */
  readonly root?: string;
  readonly runFile?: string;
  /** Component files of another place than components/<profile>. */
  readonly resources?: string;
  /** Sidecars, placement and scheduler know each other by certificates from sentry, as in a cluster. */
  readonly mtls?: boolean;
  readonly gatewayReplicas?: number;
  readonly sessionsReplicas?: number;
  readonly toolsReplicas?: number;
  /** App ids to start; empty or missing means all. */
  readonly only?: readonly string[];
  /** By app id, by the name of one copy (`sessions-2`), or for `all`; the nearer wins. */
  readonly extraEnv?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Another command for an app than dapr.yaml's (tests). */
  readonly commands?: Readonly<Partial<Record<AppId, readonly string[]>>>;
  /** `stop`: an unexpected death ends the stack (dev). `ignore`: it is only reported (tests). */
  readonly onExit?: "stop" | "ignore";
  readonly onUnexpectedExit?: (exit: ExitInfo, lastLines: readonly string[]) => void;
  readonly onLine?: (name: string, line: string) => void;
  /** One line of progress each. */
  readonly report?: (line: string) => void;
  readonly onReady?: (label: string) => void;
  readonly sidecarLogLevel?: string;
  /** For each part; default 60 s. */
  readonly readyTimeoutMs?: number;
  /** Between SIGTERM and SIGKILL when stopping; default 6 s. */
  readonly graceMs?: number;
  readonly env?: NodeJS.ProcessEnv;
  /** Gives up a start that is under way; what was started is stopped. */
  readonly signal?: AbortSignal;
}

/** A stack before its first process. */
export interface Blueprint {
  readonly dataDir: string;
  readonly ports: PortMap;
  readonly instances: readonly Instance[];
  readonly components: readonly ComponentFile[];
  readonly secrets: DataSecrets;
  readonly tokens: Readonly<Record<string, InstanceTokens>>;
  readonly specs: readonly ProcessSpec[];
  /** Where the channels' streams must exist before a sidecar starts; undefined when the broker makes what it needs. */
  readonly streams: StreamServer | undefined;
}

/** Checks and settles everything; throws before anything was started. */
export async function prepareStack(options: StackOptions): Promise<Blueprint> {
  const root = resolve(options.root ?? process.cwd());
  const dataDir = resolve(options.dataDir);
  const env = options.env ?? process.env;
  const report = options.report ?? ((): void => undefined);
  const resources = options.resources ?? join(root, "components", options.profile);

  const runFile = readRunFile(options.runFile ?? join(root, "dapr.yaml"));
  const instances = chooseInstances(runFile, options.only ?? [], { gateway: options.gatewayReplicas ?? 1, sessions: options.sessionsReplicas ?? 1, tools: options.toolsReplicas ?? 1 });
  const components = readComponents(resources);
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const left = await OrphanGuard.cleanUpLeftovers(dataDir);
  if (left > 0) report(`Ended ${left} process(es) that an earlier start had left behind.`);

  const ports = await choosePorts({ wishes: portWishes(instances, options.mtls), mode: options.ports, overrides: options.portOverrides ?? {} });
  await checkPortsFree(usedPorts(ports, options.profile));
  await checkExternals(options.profile, env);
  const dapr = await locateDapr({ root, report, env });
  const natsServer = startsOwnBroker(options.profile) ? await locateNats({ root, report, env }) : undefined;

  const mtls = options.mtls === true ? await prepareMtls({ root, report, env, dataDir, ports }) : undefined;

  const secrets = await ensureDataSecrets(dataDir);
  const tokens = Object.fromEntries(instances.map(({ name }) => [name, { daprApiToken: randomToken(), appApiToken: randomToken() }]));
  const specs = planProcesses({
    root, dataDir, profile: options.profile, resources, instances, ports, dapr, natsServer, secrets, tokens, mtls, env,
    brokerConfig: writeBrokerConfig(dataDir, ports["broker"] ?? 0, secrets.brokerToken),
    extraEnv: options.extraEnv ?? {},
    commands: options.commands ?? {},
    sidecarLogLevel: options.sidecarLogLevel ?? "info",
  });
  return { dataDir, ports, instances, components, secrets, tokens, specs, streams: streamServer(options.profile, ports, secrets, env) };
}

function streamServer(profile: ProfileName, ports: PortMap, secrets: DataSecrets, env: NodeJS.ProcessEnv): StreamServer | undefined {
  if (startsOwnBroker(profile)) return { url: `nats://127.0.0.1:${ports["broker"] ?? 0}`, token: secrets.brokerToken, owned: true };
  if (brokerOf(profile) !== "nats") return undefined;
  return { url: addressesOf(env).nats, token: env["DOCKET_NATS_TOKEN"] ?? "", owned: false };
}

function usedPorts(ports: PortMap, profile: ProfileName): PortMap {
  if (startsOwnBroker(profile)) return ports;
  return Object.fromEntries(Object.entries(ports).filter(([name]) => name !== "broker"));
}
