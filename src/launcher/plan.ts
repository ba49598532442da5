/**
 * Owns: turning run file, profile and options into the list of processes to run, each with its full command line and
 * environment. Pure: starts and reads nothing.
 * Does not own: when they are started (stack.ts) or what counts as ready (readiness.ts).
 */
import { join } from "node:path";
import { APPS, type AppId } from "../contracts/channels.js";
import { appBaseEnv, sidecarBaseEnv, withoutSidecarOnly } from "./child-env.js";
import { daprdArgs, placementArgs, portOf, schedulerArgs, sentryArgs } from "./commands.js";
import { LauncherError } from "./errors.js";
import type { ProcessSpec } from "./managed-process.js";
import type { MtlsSetup } from "./mtls.js";
import { infraPortWishes, type PortMap } from "./ports.js";
import { componentEnv, startsOwnBroker, type ProfileName } from "./profiles.js";
import type { RunFile, RunFileApp } from "./run-file.js";
import type { DaprBinaries } from "./runtime/locate.js";
import type { DataSecrets } from "./secrets.js";

/** One running copy of an app: `sessions`, or its second replica `sessions-2`. */
export interface Instance {
  readonly name: string;
  readonly appId: AppId;
  readonly app: RunFileApp;
}

export interface InstanceTokens {
  /** The app shows it to its sidecar. */
  readonly daprApiToken: string;
  /** The sidecar shows it to the app. */
  readonly appApiToken: string;
}

export interface PlanInputs {
  readonly root: string;
  readonly dataDir: string;
  readonly profile: ProfileName;
  readonly resources: string;
  readonly instances: readonly Instance[];
  readonly ports: PortMap;
  readonly dapr: DaprBinaries;
  readonly natsServer: string | undefined;
  readonly brokerConfig: string;
  readonly secrets: DataSecrets;
  readonly tokens: Readonly<Record<string, InstanceTokens>>;
  readonly extraEnv: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly commands: Readonly<Partial<Record<AppId, readonly string[]>>>;
  /** Undefined: plain connections between sidecars, all on loopback. */
  readonly mtls: MtlsSetup | undefined;
  readonly sidecarLogLevel: string;
  readonly env: NodeJS.ProcessEnv;
}

/** The instances to run: the run file's apps, `only` a part of them, each as often as asked (once where nothing is said). */
export function chooseInstances(runFile: RunFile, only: readonly string[], replicas: Readonly<Partial<Record<AppId, number>>>): Instance[] {
  const unknown = only.find((name) => !runFile.apps.some((app) => app.appId === name));
  if (unknown !== undefined) {
    throw new LauncherError("OPTION_INVALID", `--only names the app "${unknown}", which ${runFile.path} does not have.`, `Known apps: ${runFile.apps.map((app) => app.appId).join(", ")}.`);
  }
  return runFile.apps.flatMap((app) => {
    const appId = APPS.find((known) => known === app.appId);
    if (appId === undefined) throw new LauncherError("RUN_FILE_INVALID", `${runFile.path} has an app "${app.appId}" that Docket does not know.`, `Expected app ids: ${APPS.join(", ")}.`);
    if (only.length > 0 && !only.includes(appId)) return [];
    return Array.from({ length: replicas[appId] ?? 1 }, (_, index) => ({ name: index === 0 ? appId : `${appId}-${index + 1}`, appId, app }));
  });
}

/** The port each part would like: run file for the first copy of an app, fixed ones for the infrastructure. */
export function portWishes(instances: readonly Instance[], mtls = false): Record<string, number | undefined> {
  const wishes: Record<string, number | undefined> = { ...infraPortWishes(mtls) };
  for (const { name, appId, app } of instances) {
    const first = name === appId;
    for (const [kind, port] of Object.entries(app.ports)) wishes[`${name}.${kind}`] = first ? (port as number | undefined) : undefined;
    const publicPort = app.env["DOCKET_PUBLIC_PORT"];
    if (publicPort !== undefined) wishes[`${name}.public`] = first ? Number(publicPort) : undefined;
  }
  return wishes;
}

/** All processes in starting order. */
export function planProcesses(inputs: PlanInputs): ProcessSpec[] {
  return [...infraSpecs(inputs), ...inputs.instances.flatMap((instance) => [sidecarSpec(inputs, instance), appSpec(inputs, instance)])];
}

function infraSpecs(inputs: PlanInputs): ProcessSpec[] {
  const base = { cwd: inputs.dataDir, env: { ...sidecarBaseEnv(inputs.env), DAPR_HOST_IP: "127.0.0.1" } };
  const spec = (name: "broker" | "sentry" | "placement" | "scheduler", command: string, args: string[]): ProcessSpec => ({ ...base, name, kind: name, command, args, logFile: logFile(inputs, name) });
  return [
    ...(startsOwnBroker(inputs.profile) && inputs.natsServer !== undefined ? [spec("broker", inputs.natsServer, ["-c", inputs.brokerConfig])] : []),
    ...(inputs.mtls === undefined ? [] : [spec("sentry", inputs.mtls.sentry, sentryArgs(inputs.ports, inputs.mtls.credentialsDir))]),
    spec("placement", inputs.dapr.placement, placementArgs(inputs.ports, inputs.mtls)),
    spec("scheduler", inputs.dapr.scheduler, schedulerArgs(inputs.ports, inputs.dataDir, inputs.dapr.version, inputs.mtls)),
  ];
}

function sidecarSpec(inputs: PlanInputs, instance: Instance): ProcessSpec {
  const name = `${instance.name}-daprd`;
  const components = componentEnv(inputs.profile, {
    dataDir: inputs.dataDir,
    appId: instance.appId,
    replica: instance.name,
    brokerPort: Number(portOf(inputs.ports, "broker")),
    brokerToken: inputs.secrets.brokerToken,
    env: inputs.env,
  });
  return {
    name,
    kind: "daprd",
    command: inputs.dapr.daprd,
    args: daprdArgs({
      appId: instance.appId,
      instance: instance.name,
      ports: inputs.ports,
      resources: inputs.resources,
      configFile: instance.app.configFile,
      flags: instance.app.daprdFlags,
      logLevel: instance.app.logLevel ?? inputs.sidecarLogLevel,
      mtls: inputs.mtls,
    }),
    cwd: instance.app.dir,
    env: { ...sidecarBaseEnv(inputs.env), DAPR_HOST_IP: "127.0.0.1", ...components, ...tokenEnv(inputs, instance), ...(inputs.mtls === undefined ? {} : { DAPR_TRUST_ANCHORS: inputs.mtls.trustAnchors }) },
    logFile: logFile(inputs, name),
  };
}

function appSpec(inputs: PlanInputs, instance: Instance): ProcessSpec {
  const [command, ...args] = inputs.commands[instance.appId] ?? instance.app.command;
  return {
    name: instance.name,
    kind: "app",
    command: command === undefined || command === "node" ? process.execPath : command,
    args,
    cwd: instance.app.dir,
    env: { ...appBaseEnv(instance.appId, inputs.env), ...withoutSidecarOnly(instance.app.env), ...appSettings(inputs, instance), ...inputs.extraEnv["all"], ...inputs.extraEnv[instance.appId], ...(instance.name === instance.appId ? {} : inputs.extraEnv[instance.name]) },
    logFile: logFile(inputs, instance.name),
  };
}

function appSettings(inputs: PlanInputs, instance: Instance): Record<string, string> {
  const { ports, secrets } = inputs;
  const publicPort = ports[`${instance.name}.public`];
  const consolePort = ports["console.public"];
  const metricsPort = inputs.env["DOCKET_METRICS_PORT"];
  return {
    ...tokenEnv(inputs, instance),
    APP_ID: instance.appId,
    APP_PORT: portOf(ports, `${instance.name}.app`),
    DAPR_HTTP_PORT: portOf(ports, `${instance.name}.http`),
    DAPR_GRPC_PORT: portOf(ports, `${instance.name}.grpc`),
    DOCKET_PROFILE: inputs.profile,
    DOCKET_DATA_DIR: inputs.dataDir,
    DOCKET_KEYS_DIR: secrets.keysDir,
    ...(publicPort === undefined ? {} : { DOCKET_PUBLIC_PORT: String(publicPort) }),
    ...(metricsPort === undefined || metricsPort === "" ? {} : { DOCKET_METRICS_PORT: String(Number(metricsPort) + inputs.instances.indexOf(instance)) }),
    ...(consolePort === undefined ? {} : { DOCKET_CONSOLE_URL: `http://127.0.0.1:${consolePort}` }),
    ...(instance.appId === "sessions" ? { DOCKET_SESSIONS_ACTOR_KEY: secrets.sessionsActorKey } : {}),
  };
}

function tokenEnv(inputs: PlanInputs, instance: Instance): Record<string, string> {
  const tokens = inputs.tokens[instance.name];
  return tokens === undefined ? {} : { DAPR_API_TOKEN: tokens.daprApiToken, APP_API_TOKEN: tokens.appApiToken };
}

function logFile(inputs: PlanInputs, name: string): string {
  return join(inputs.dataDir, "logs", `${name}.log`);
}
