/**
 * Owns: building the pinned Go modules of `runtime/` into a cache outside the checkout, once per content of the modules.
 * A build goes to a folder of its own and is renamed into place, so a half-built runtime is never found; a lock keeps two
 * starters from building at once.
 */
import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { LauncherError } from "../errors.js";
import { identify, isAlive, type ProcessIdentity } from "../process-identity.js";

const run = promisify(execFile);

export type BuildTarget = "dapr" | "nats" | "kfake" | "dapr-control-plane" | "etcd" | "k8s" | "kustomize" | "jaeger";

export interface BuildOptions {
  readonly root: string;
  readonly report: (line: string) => void;
  readonly env?: NodeJS.ProcessEnv;
}

const DAPR_FLAGS = ["-trimpath", "-tags", "stablecomponents", "-ldflags", "-s -w -X github.com/dapr/dapr/pkg/buildinfo.version=1.14.0"];
/** What runtime/k8s/go.mod pins. Without it kubectl and the API server call themselves v0.0.0. */
const K8S_VERSION = ["gitVersion=v1.35.4", "gitMajor=1", "gitMinor=35"].map((value) => `-X k8s.io/component-base/version.${value}`).join(" ");

const TARGETS: Record<BuildTarget, { label: string; expect: string; args: (out: string) => string[] }> = {
  dapr: {
    label: "the pinned Dapr runtime (daprd, placement, scheduler)",
    expect: "about five minutes on two cores, once",
    args: (out) => ["build", "-v", ...DAPR_FLAGS, "-o", `${out}/`, "./cmd/..."],
  },
  nats: {
    label: "the pinned NATS server",
    expect: "about a minute, once",
    args: (out) => ["build", "-v", "-trimpath", "-o", join(out, process.platform === "win32" ? "nats-server.exe" : "nats-server"), "github.com/nats-io/nats-server/v2"],
  },
  kfake: {
    label: "the pinned Kafka stand-in",
    expect: "under a minute, once",
    args: (out) => ["build", "-v", "-trimpath", "-o", join(out, process.platform === "win32" ? "kfake.exe" : "kfake"), "."],
  },
  "dapr-control-plane": {
    label: "the pinned Dapr control plane (sentry, operator, injector)",
    expect: "under a minute after the runtime, once",
    args: (out) => ["build", "-v", ...DAPR_FLAGS, "-o", `${out}/`, "./cmd/...", "github.com/dapr/dapr/cmd/operator", "github.com/dapr/dapr/cmd/injector"],
  },
  kustomize: {
    label: "the pinned kustomize",
    expect: "half a minute, once",
    args: (out) => ["build", "-v", "-trimpath", "-ldflags", "-s -w", "-o", join(out, "kustomize"), "sigs.k8s.io/kustomize/kustomize/v5"],
  },
  etcd: {
    label: "the pinned etcd",
    expect: "under a minute, once",
    args: (out) => ["build", "-v", "-trimpath", "-ldflags", "-s -w", "-o", join(out, "etcd"), "go.etcd.io/etcd/server/v3"],
  },
  k8s: {
    label: "the pinned Kubernetes API server and kubectl",
    expect: "about six minutes on two cores, once",
    args: (out) => ["build", "-v", "-trimpath", "-ldflags", `-s -w ${K8S_VERSION}`, "-o", `${out}/`, "k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kubectl"],
  },
  jaeger: {
    label: "the pinned Jaeger",
    expect: "about five minutes on two cores, once",
    args: (out) => ["build", "-v", "-trimpath", "-ldflags", "-s -w", "-o", join(out, process.platform === "win32" ? "jaeger.exe" : "jaeger"), "github.com/jaegertracing/jaeger/cmd/jaeger"],
  },
};

/** The cache folder for the present content of a module; may not exist yet. */
export function cacheDirOf(target: BuildTarget, root: string, env: NodeJS.ProcessEnv = process.env): string {
  const base = env["DOCKET_CACHE_DIR"] ?? join(env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "docket");
  return join(base, "runtime", `${target}-${moduleHash(join(root, "runtime", target))}-${process.platform}-${process.arch}`);
}

/** Go's version on this machine, or undefined without Go. */
export async function goVersion(): Promise<string | undefined> {
  try {
    const { stdout } = await run("go", ["version"], { timeout: 20_000 });
    return /go(\d+\.\d+(?:\.\d+)?)/.exec(stdout)?.[1];
  } catch {
    return undefined;
  }
}

/** Builds a module into the cache, unless another process just did; returns the folder. */
export async function buildModule(target: BuildTarget, options: BuildOptions): Promise<string> {
  const dir = cacheDirOf(target, options.root, options.env);
  mkdirSync(dirname(dir), { recursive: true });
  const release = await takeLock(`${dir}.lock`, options.report);
  try {
    if (existsSync(dir)) return dir;
    const scratch = `${dir}.build-${process.pid}`;
    mkdirSync(scratch, { recursive: true });
    try {
      await goBuild(target, scratch, options);
      renameSync(scratch, dir);
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
    return dir;
  } finally {
    release();
  }
}

async function goBuild(target: BuildTarget, out: string, options: BuildOptions): Promise<void> {
  const { label, expect, args } = TARGETS[target];
  const started = Date.now();
  const tail: string[] = [];
  let packages = 0;
  options.report(`Building ${label}: ${expect}. Kept in ${dirname(out)}.`);
  const child = spawn("go", args(out), { cwd: join(options.root, "runtime", target), stdio: ["ignore", "ignore", "pipe"] });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    const lines = chunk.split("\n").filter(Boolean);
    packages += lines.length;
    tail.push(...lines);
    tail.splice(0, tail.length - 20);
  });
  const ticker = setInterval(() => {
    options.report(`  ${Math.round((Date.now() - started) / 1000)} s, ${packages} packages compiled or fetched`);
  }, 15_000);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  }).finally(() => {
    clearInterval(ticker);
  });
  if (code !== 0) {
    throw new LauncherError("RUNTIME_BUILD_FAILED", `Building ${label} failed (go exit code ${code}):\n  ${tail.join("\n  ")}`, "If a download failed: check GOPROXY and the network, then start again, what was fetched is kept. If Go is too old: install Go >= 1.26. Or run `dapr init` instead.");
  }
  options.report(`Built ${label} in ${Math.round((Date.now() - started) / 1000)} s.`);
}

async function takeLock(file: string, report: (line: string) => void): Promise<() => void> {
  for (let waited = 0; ; waited++) {
    try {
      writeFileSync(file, JSON.stringify(identify(process.pid)), { flag: "wx" });
      return () => {
        rmSync(file, { force: true });
      };
    } catch (error) {
      if (!existsSync(dirname(file))) throw error;
    }
    const holder = readLock(file);
    if (holder === undefined ? ageMs(file) > 5_000 : !isAlive(holder)) {
      rmSync(file, { force: true });
      continue;
    }
    if (holder !== undefined && waited % 30 === 0) report(`Waiting for process ${holder.pid}, which is building the runtime.`);
    await sleep(1_000);
  }
}

function ageMs(file: string): number {
  return Date.now() - (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
}

function readLock(file: string): ProcessIdentity | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    if (typeof value === "object" && value !== null && "pid" in value && "startedAt" in value) {
      return { pid: Number(value.pid), startedAt: String(value.startedAt) };
    }
  } catch {
    // Being written or removed right now: judged again on the next round.
  }
  return undefined;
}

function moduleHash(dir: string): string {
  const hash = createHash("sha256");
  for (const file of filesUnder(dir)) hash.update(`${relative(dir, file)}\0`).update(readFileSync(file)).update("\0");
  return hash.digest("hex").slice(0, 16);
}

function filesUnder(dir: string): string[] {
  return readdirSync(dir)
    .sort()
    .map((name) => join(dir, name))
    .flatMap((path) => (statSync(path).isDirectory() ? filesUnder(path) : [path]));
}
