/**
 * Owns: reading `dapr.yaml`, the multi-app run file that `dapr run -f dapr.yaml` takes, into one settled record per app
 * (common values merged under the app's own, paths absolute).
 * Does not own: what the launcher does with it (plan.ts).
 */
import { readFileSync } from "node:fs";
import { dirname, isAbsolute, resolve } from "node:path";
import { parseDocument } from "yaml";
import { z } from "zod";
import { LauncherError, messageOf } from "./errors.js";

const port = z.int().min(1).max(65_535);
const scalar = z.union([z.string(), z.number(), z.boolean()]).transform(String);

/** Fields that may stand in `common` or in an app (dapr/cli pkg/standalone/run.go SharedRunConfig). */
const shared = {
  resourcesPaths: z.array(z.string()).optional(),
  resourcesPath: z.string().optional(),
  configFilePath: z.string().optional(),
  appProtocol: z.enum(["http", "grpc", "https", "grpcs", "h2c"]).optional(),
  apiListenAddresses: z.string().optional(),
  enableAppHealthCheck: z.boolean().optional(),
  appHealthCheckPath: z.string().optional(),
  appHealthProbeInterval: z.int().positive().optional(),
  appHealthProbeTimeout: z.int().positive().optional(),
  appHealthThreshold: z.int().positive().optional(),
  appMaxConcurrency: z.int().optional(),
  maxBodySize: scalar.optional(),
  readBufferSize: scalar.optional(),
  enableApiLogging: z.boolean().optional(),
  logLevel: z.enum(["debug", "info", "warn", "error", "fatal", "panic"]).optional(),
  placementHostAddress: z.string().optional(),
  schedulerHostAddress: z.string().optional(),
  appLogDestination: z.string().optional(),
  daprdLogDestination: z.string().optional(),
  runtimePath: z.string().optional(),
  env: z.record(z.string(), scalar).optional(),
};

const runFileSchema = z.strictObject({
  version: z.literal(1),
  common: z.strictObject(shared).optional(),
  apps: z
    .array(
      z.strictObject({
        ...shared,
        appID: z.string().regex(/^[a-z0-9][a-z0-9-]*$/, "lower-case letters, digits and dashes"),
        appDirPath: z.string(),
        command: z.array(z.string()).min(1),
        appPort: port,
        daprHTTPPort: port.optional(),
        daprGRPCPort: port.optional(),
        daprInternalGRPCPort: port.optional(),
        metricsPort: port.optional(),
        profilePort: port.optional(),
        unixDomainSocket: z.string().optional(),
      }),
    )
    .min(1),
});

type RawApp = z.infer<typeof runFileSchema>["apps"][number];

/** The ports `dapr.yaml` gives one app; what it leaves out is chosen at start. */
export interface RunFilePorts {
  readonly app: number;
  readonly http: number | undefined;
  readonly grpc: number | undefined;
  readonly internal: number | undefined;
  readonly metrics: number | undefined;
}

/** One app of the run file, settled. */
export interface RunFileApp {
  readonly appId: string;
  readonly dir: string;
  readonly command: readonly string[];
  readonly ports: RunFilePorts;
  readonly env: Readonly<Record<string, string>>;
  readonly configFile: string | undefined;
  readonly resourcesPaths: readonly string[];
  readonly logLevel: string | undefined;
  /** daprd flags that follow from the file's other settings, in daprd's own spelling. */
  readonly daprdFlags: readonly string[];
}

export interface RunFile {
  readonly path: string;
  readonly apps: readonly RunFileApp[];
}

/** Reads and checks a run file; throws one LauncherError that names every wrong field. */
export function readRunFile(path: string): RunFile {
  const file = resolve(path);
  const parsed = runFileSchema.safeParse(parseYaml(file));
  if (!parsed.success) {
    const list = parsed.error.issues.map((issue) => `${issue.path.join(".") || "(top level)"}: ${issue.message}`);
    throw new LauncherError(
      "RUN_FILE_INVALID",
      `${file} is not a valid Dapr run file:\n  ${list.join("\n  ")}`,
      "Correct the fields above. The format is Dapr's multi-app run template, version 1.",
    );
  }
  const seen = new Set<number>();
  for (const app of parsed.data.apps) {
    if (seen.has(app.appPort)) {
      throw new LauncherError("RUN_FILE_INVALID", `${file}: two apps have appPort ${app.appPort}`, "Give each app its own appPort.");
    }
    seen.add(app.appPort);
  }
  const root = dirname(file);
  return { path: file, apps: parsed.data.apps.map((app) => settle(app, parsed.data.common ?? {}, root)) };
}

function parseYaml(file: string): unknown {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new LauncherError("RUN_FILE_INVALID", `Cannot read the run file ${file}: ${messageOf(error)}`, "Start from the repository's root folder, or pass another file with --run-file.", { cause: error });
  }
  const document = parseDocument(text);
  const first = document.errors[0];
  if (first) {
    throw new LauncherError("RUN_FILE_INVALID", `${file} is not valid YAML: ${first.message}`, "Correct the line named above.");
  }
  return document.toJS();
}

function settle(app: RawApp, common: Partial<RawApp>, root: string): RunFileApp {
  const merged = { ...common, ...app };
  const absolute = (path: string): string => (isAbsolute(path) ? path : resolve(root, path));
  const resources = merged.resourcesPaths ?? (merged.resourcesPath === undefined ? [] : [merged.resourcesPath]);
  return {
    appId: app.appID,
    dir: absolute(app.appDirPath),
    command: app.command,
    ports: { app: app.appPort, http: app.daprHTTPPort, grpc: app.daprGRPCPort, internal: app.daprInternalGRPCPort, metrics: app.metricsPort },
    env: { ...common.env, ...app.env },
    configFile: merged.configFilePath === undefined ? undefined : absolute(merged.configFilePath),
    resourcesPaths: resources.map(absolute),
    logLevel: merged.logLevel,
    daprdFlags: daprdFlagsOf(merged),
  };
}

function daprdFlagsOf(app: Partial<RawApp>): string[] {
  const flags: string[] = ["--app-protocol", app.appProtocol ?? "http"];
  const add = (flag: string, value: string | number | undefined): void => {
    if (value !== undefined) flags.push(flag, String(value));
  };
  if (app.enableAppHealthCheck) flags.push("--enable-app-health-check");
  add("--app-health-check-path", app.appHealthCheckPath);
  add("--app-health-probe-interval", app.appHealthProbeInterval);
  add("--app-health-probe-timeout", app.appHealthProbeTimeout);
  add("--app-health-threshold", app.appHealthThreshold);
  add("--app-max-concurrency", app.appMaxConcurrency);
  add("--max-body-size", app.maxBodySize);
  add("--read-buffer-size", app.readBufferSize);
  if (app.enableApiLogging) flags.push("--enable-api-logging");
  return flags;
}
