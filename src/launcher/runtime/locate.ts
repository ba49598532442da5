/**
 * Owns: where the runtime's binaries come from. Order: DOCKET_RUNTIME_DIR, `~/.dapr/bin` (what `dapr init` left), the cache,
 * a build from the Go modules pinned in `runtime/`. The broker is looked for apart from Dapr: `dapr init` brings none.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { LauncherError } from "../errors.js";
import { buildModule, cacheDirOf, goVersion, type BuildTarget } from "./build.js";

const run = promisify(execFile);

/** NATS below 2.10 lacks consumer settings that the embedded profile uses. */
const MIN_NATS = [2, 10] as const;

export interface DaprBinaries {
  readonly daprd: string;
  readonly placement: string;
  readonly scheduler: string;
  /** For example "1.14.0"; decides the spelling of some flags. */
  readonly version: string;
  readonly source: string;
}

export interface LocateOptions {
  /** The checkout: holds `runtime/`. */
  readonly root: string;
  /** One line of progress each. */
  readonly report: (line: string) => void;
  /** False: never build, throw instead (doctor). */
  readonly build?: boolean;
  readonly env?: NodeJS.ProcessEnv;
}

/** Finds or builds daprd, placement and scheduler. */
export async function locateDapr(options: LocateOptions): Promise<DaprBinaries> {
  const env = options.env ?? process.env;
  const fixed = env["DOCKET_RUNTIME_DIR"];
  if (fixed) {
    const found = await daprIn(fixed, "DOCKET_RUNTIME_DIR");
    if (found) return found;
    const missing = DAPR_NAMES.filter((name) => !existsSync(join(fixed, exe(name))));
    throw new LauncherError("RUNTIME_MISSING", `DOCKET_RUNTIME_DIR is ${fixed}, but ${missing.join(", ")} ${missing.length === 1 ? "is" : "are"} not in it.`, "Point it at a folder with daprd, placement and scheduler, or unset it.");
  }
  const stock = await daprIn(join(env["HOME"] ?? homedir(), ".dapr", "bin"), "dapr init");
  if (stock) return stock;
  const dir = await fromCacheOrBuild("dapr", options);
  const built = await daprIn(dir, "built from runtime/dapr");
  if (built) return built;
  throw new LauncherError("RUNTIME_BUILD_FAILED", `The build left no complete runtime in ${dir}.`, `Remove that folder and start again.`);
}

/** Finds or builds nats-server. */
export async function locateNats(options: LocateOptions): Promise<string> {
  const env = options.env ?? process.env;
  const fixed = env["DOCKET_RUNTIME_DIR"];
  if (fixed && existsSync(join(fixed, exe("nats-server")))) return join(fixed, exe("nats-server"));
  const cached = join(cacheDirOf("nats", options.root, env), exe("nats-server"));
  if (existsSync(cached)) return cached;
  const go = options.build === false ? undefined : await goVersion();
  if (go !== undefined) return join(await fromCacheOrBuild("nats", options), exe("nats-server"));
  const onPath = await natsOnPath(env);
  if (onPath) return onPath;
  throw new LauncherError("BROKER_MISSING", "No nats-server was found, and no Go to build the pinned one with.", `Install Go (https://go.dev/dl) and start again, or put a nats-server >= ${MIN_NATS.join(".")} on PATH, or use the Redis that \`dapr init\` starts: npm run dev -- --profile local`);
}

/** Finds or builds what only tests need: kfake (Kafka's protocol from memory), jaeger (a collector to ask back). */
export async function locateTestServer(name: "kfake" | "jaeger", options: LocateOptions): Promise<string> {
  const env = options.env ?? process.env;
  const fixed = env["DOCKET_RUNTIME_DIR"];
  if (fixed && existsSync(join(fixed, exe(name)))) return join(fixed, exe(name));
  return join(await fromCacheOrBuild(name, options), exe(name));
}

/** A Kubernetes API server to try manifests on, and Dapr's control plane for it. */
export interface ClusterBinaries {
  readonly apiserver: string;
  readonly kubectl: string;
  readonly etcd: string;
  readonly sentry: string;
  readonly operator: string;
  readonly injector: string;
}

/** Finds or builds what `npm run test:k8s` starts. */
export async function locateCluster(options: LocateOptions): Promise<ClusterBinaries> {
  const etcd = await fromCacheOrBuild("etcd", options);
  const dapr = await fromCacheOrBuild("dapr-control-plane", options);
  const k8s = await fromCacheOrBuild("k8s", options);
  return {
    apiserver: join(k8s, exe("kube-apiserver")), kubectl: join(k8s, exe("kubectl")), etcd: join(etcd, exe("etcd")),
    sentry: join(dapr, exe("sentry")), operator: join(dapr, exe("operator")), injector: join(dapr, exe("injector")),
  };
}

/** Finds or builds kustomize, which says what an overlay of k8s/ comes to. */
export async function locateKustomize(options: LocateOptions): Promise<string> {
  return join(await fromCacheOrBuild("kustomize", options), exe("kustomize"));
}

/** Finds or builds Dapr's certificate authority. */
export async function locateSentry(options: LocateOptions): Promise<string> {
  const fixed = (options.env ?? process.env)["DOCKET_RUNTIME_DIR"];
  if (fixed && existsSync(join(fixed, exe("sentry")))) return join(fixed, exe("sentry"));
  return join(await fromCacheOrBuild("dapr-control-plane", options), exe("sentry"));
}

const DAPR_NAMES = ["daprd", "placement", "scheduler"] as const;

function exe(name: string): string {
  return process.platform === "win32" ? `${name}.exe` : name;
}

async function daprIn(dir: string, source: string): Promise<DaprBinaries | undefined> {
  const [daprd, placement, scheduler] = DAPR_NAMES.map((name) => join(dir, exe(name)));
  if (!daprd || !placement || !scheduler) return undefined;
  if (![daprd, placement, scheduler].every((file) => existsSync(file))) return undefined;
  return { daprd, placement, scheduler, version: await daprVersion(daprd), source: `${source} (${dir})` };
}

async function daprVersion(daprd: string): Promise<string> {
  try {
    const { stdout } = await run(daprd, ["--version"], { timeout: 10_000 });
    return stdout.trim().split(/\s+/)[0] ?? "";
  } catch (error) {
    throw new LauncherError("RUNTIME_MISSING", `${daprd} is there but does not run.`, "Remove it so that another one is looked for, or reinstall it (dapr uninstall, dapr init).", { cause: error });
  }
}

async function fromCacheOrBuild(target: BuildTarget, options: LocateOptions): Promise<string> {
  const dir = cacheDirOf(target, options.root, options.env ?? process.env);
  if (existsSync(dir)) return dir;
  if (options.build === false || (await goVersion()) === undefined) {
    throw new LauncherError(
      "RUNTIME_MISSING",
      target === "dapr" ? "No Dapr runtime on this machine: not in ~/.dapr/bin, not in Docket's cache, and no Go to build it with." : `No ${target} on this machine: not in Docket's cache, and no Go to build it with.`,
      "Either install Go >= 1.26 (https://go.dev/dl) and start again: the pinned runtime is built once, about five minutes.\nOr install the Dapr CLI and run `dapr init` (https://docs.dapr.io/getting-started).",
    );
  }
  return buildModule(target, options);
}

async function natsOnPath(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  for (const dir of [...(env["PATH"] ?? "").split(delimiter), "/usr/sbin"]) {
    const file = join(dir, exe("nats-server"));
    if (!dir || !existsSync(file)) continue;
    const text = await run(file, ["--version"], { timeout: 5_000 }).then((result) => result.stdout, () => "");
    const match = /v(\d+)\.(\d+)/.exec(text);
    const [major, minor] = [Number(match?.[1]), Number(match?.[2])];
    if (major > MIN_NATS[0] || (major === MIN_NATS[0] && minor >= MIN_NATS[1])) return file;
  }
  return undefined;
}
