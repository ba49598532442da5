/**
 * Owns: a Kubernetes API server for tests (etcd and kube-apiserver, no controllers, no nodes) and Dapr's sentry, operator and injector on it, all on
 * free ports of this machine. What controllers would do (pods of a Deployment) tests do themselves.
 */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { stringify } from "yaml";
import { locateCluster, type ClusterBinaries } from "../../../src/launcher/runtime/locate.js";
import { randomToken } from "../../../src/launcher/secrets.js";
import { eventually, REPO_ROOT } from "../cluster.js";
import { parseManifests, type Manifest } from "./manifests.js";

const run = promisify(execFile);
const START_MS = 60_000;

export interface TestCluster {
  readonly binaries: ClusterBinaries;
  readonly dir: string;
  readonly url: string;
  readonly kubeconfig: string;
  /** The API server's certificate authority. */
  readonly caFile: string;
  /** Runs kubectl as administrator and returns what it says; `input` goes to its standard input. */
  kubectl(args: readonly string[], input?: string): Promise<string>;
  /** Makes an object, whatever made it before, and returns what the server made of it. */
  create(object: object): Promise<Manifest>;
  get(kind: string, name: string, namespace?: string): Promise<Manifest>;
  /** A child that ends with the cluster. */
  start(name: string, command: string, args: readonly string[], env?: Readonly<Record<string, string>>): void;
  /** Ends a child at once. */
  stop(name: string): void;
  /** The last lines of a child. */
  logs(name: string): string;
  close(): Promise<void>;
}

/** A port that nobody listens on. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  const address = server.address();
  await new Promise((resolve) => { server.close(resolve); });
  if (address === null || typeof address === "string") throw new Error("no port was given");
  return address.port;
}

/** Starts etcd and the API server; pod security and all other default admission is on. */
export async function startCluster(): Promise<TestCluster> {
  const binaries = await locateCluster({ root: REPO_ROOT, report: (line) => process.stderr.write(`[cluster] ${line}\n`) });
  const dir = mkdtempSync(join(tmpdir(), "docket-k8s-"));
  const children = new Map<string, { readonly child: ChildProcess; readonly lines: string[] }>();
  const start: TestCluster["start"] = (name, command, args, env = {}) => {
    const child = spawn(command, args, { cwd: dir, env: { PATH: process.env["PATH"] ?? "", HOME: dir, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    const lines: string[] = [];
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (chunk: string) => { lines.push(...chunk.split("\n").filter(Boolean)); lines.splice(0, lines.length - 60); });
    children.set(name, { child, lines });
  };
  const close = async (): Promise<void> => {
    for (const { child } of [...children.values()].reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const gone = new Promise((resolve) => { child.once("exit", resolve); });
      child.kill("SIGKILL");
      await gone;
    }
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    const [etcd, peer, port] = [await freePort(), await freePort(), await freePort()];
    const url = `https://127.0.0.1:${String(port)}`;
    start("etcd", binaries.etcd, [
      "--data-dir", join(dir, "etcd"), "--listen-client-urls", `http://127.0.0.1:${String(etcd)}`, "--advertise-client-urls", `http://127.0.0.1:${String(etcd)}`,
      "--listen-peer-urls", `http://127.0.0.1:${String(peer)}`, "--initial-advertise-peer-urls", `http://127.0.0.1:${String(peer)}`, "--initial-cluster", `default=http://127.0.0.1:${String(peer)}`,
      "--unsafe-no-fsync", "--log-level", "error",
    ]);
    const token = randomToken();
    const key = generateKeyPairSync("rsa", { modulusLength: 2048, privateKeyEncoding: { type: "pkcs1", format: "pem" }, publicKeyEncoding: { type: "spki", format: "pem" } });
    writeFileSync(join(dir, "sa.key"), key.privateKey, { mode: 0o600 });
    writeFileSync(join(dir, "sa.pub"), key.publicKey);
    writeFileSync(join(dir, "tokens.csv"), `${token},admin,admin,"system:masters"\n`, { mode: 0o600 });
    start("apiserver", binaries.apiserver, [
      "--etcd-servers", `http://127.0.0.1:${String(etcd)}`, "--secure-port", String(port), "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--endpoint-reconciler-type", "none",
      "--cert-dir", join(dir, "certs"), "--token-auth-file", join(dir, "tokens.csv"), "--authorization-mode", "RBAC",
      "--service-account-issuer", "https://kubernetes.default.svc.cluster.local", "--service-account-key-file", join(dir, "sa.pub"), "--service-account-signing-key-file", join(dir, "sa.key"),
      "--service-cluster-ip-range", "10.96.0.0/16", "--v", "1",
    ]);
    const kubeconfig = join(dir, "kubeconfig");
    writeFileSync(kubeconfig, stringify({
      apiVersion: "v1", kind: "Config", "current-context": "test",
      clusters: [{ name: "test", cluster: { server: url, "insecure-skip-tls-verify": true } }], users: [{ name: "admin", user: { token } }],
      contexts: [{ name: "test", context: { cluster: "test", user: "admin" } }],
    }), { mode: 0o600 });
    const kubectl = async (args: readonly string[], input?: string): Promise<string> => {
      const running = run(binaries.kubectl, ["--kubeconfig", kubeconfig, ...args], { maxBuffer: 64 * 1024 * 1024, timeout: 120_000, env: { PATH: process.env["PATH"] ?? "", HOME: dir } });
      running.child.stdin?.end(input ?? "");
      return (await running).stdout;
    };
    const cluster: TestCluster = {
      binaries, dir, url, kubeconfig, caFile: join(dir, "certs", "apiserver.crt"), kubectl, start, close,
      stop: (name) => { children.get(name)?.child.kill("SIGKILL"); },
      logs: (name) => children.get(name)?.lines.join("\n") ?? "",
      create: async (object) => only(await kubectl(["create", "-o", "yaml", "-f", "-"], JSON.stringify(object))),
      get: async (kind, name, namespace) => only(await kubectl(["get", kind, name, "-o", "yaml", ...(namespace === undefined ? [] : ["-n", namespace])])),
    };
    await eventually("the API server is ready", async () => ((await kubectl(["get", "--raw", "/readyz"])) === "ok" ? true : undefined), START_MS).catch((error: unknown) => {
      throw new Error(`the API server did not start:\n${cluster.logs("etcd")}\n${cluster.logs("apiserver")}`, { cause: error });
    });
    return cluster;
  } catch (error) {
    await close();
    throw error;
  }
}

function only(text: string): Manifest {
  const [object] = parseManifests(text);
  if (object === undefined) throw new Error("kubectl printed no object");
  return object;
}

/** Installs CRDs from the modules that define them: Dapr's and KEDA's. */
export async function installCrds(cluster: TestCluster): Promise<void> {
  const dapr = await moduleDir("dapr", "github.com/dapr/dapr");
  const keda = await moduleDir("keda", "github.com/kedacore/keda/v2");
  await cluster.kubectl(["apply", "--server-side", "-f", join(dapr, "charts/dapr/crds")]);
  for (const file of ["keda.sh_scaledobjects.yaml", "keda.sh_triggerauthentications.yaml"]) await cluster.kubectl(["apply", "--server-side", "-f", join(keda, "config/crd/bases", file)]);
  await cluster.kubectl(["wait", "--for=condition=established", "crd", "--all", "--timeout=60s"]);
}

async function moduleDir(module: string, path: string): Promise<string> {
  const { stdout } = await run("go", ["mod", "download", "-json", path], { cwd: join(REPO_ROOT, "runtime", module), maxBuffer: 16 * 1024 * 1024, timeout: 300_000 });
  return (JSON.parse(stdout) as { Dir: string }).Dir;
}
