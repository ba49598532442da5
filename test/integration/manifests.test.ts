/** k8s/: what every overlay comes to, checked for what an API server does not see. `npm run test:k8s` does the rest. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";
import { makeClusterValues } from "../../src/launcher/cluster/secrets.js";
import { locateNats } from "../../src/launcher/runtime/locate.js";
import { REPO_ROOT } from "../support/cluster.js";
import { manifestProblems } from "../support/k8s/checks.js";
import { appsIn, mainContainer, ofKind, OVERLAYS, render, type Manifest, type Overlay } from "../support/k8s/manifests.js";
import { read, rows, section, sources } from "../unit/docs/pages.js";

const rendered = new Map<Overlay, Manifest[]>();

beforeAll(async () => {
  for (const overlay of OVERLAYS) rendered.set(overlay, await render(overlay));
});

const objectsOf = (overlay: Overlay): Manifest[] => structuredClone(rendered.get(overlay) ?? []);

describe("the manifests", () => {
  it.each([...OVERLAYS])("of %s pass every check", (overlay) => {
    expect(objectsOf(overlay).length).toBeGreaterThan(40);
    expect(manifestProblems(objectsOf(overlay), overlay)).toEqual([]);
  });

  it("ask for what docs/sizing.md says, in production", () => {
    const objects = objectsOf("production");
    const replicas = (app: string): string => {
      const scaler = [...ofKind(objects, "ScaledObject"), ...ofKind(objects, "HorizontalPodAutoscaler")].find(({ metadata }) => metadata.name === app)?.["spec"] as Record<string, number> | undefined;
      const fixed = ofKind(objects, "Deployment").find(({ metadata }) => metadata.name === app)?.["spec"] as { replicas?: number } | undefined;
      return scaler === undefined ? String(fixed?.replicas) : `${String(scaler["minReplicaCount"] ?? scaler["minReplicas"])} to ${String(scaler["maxReplicaCount"] ?? scaler["maxReplicas"])}`;
    };
    expect(rows(section(read("docs/sizing.md"), "Requests")).map((row) => row.slice(0, 6)).sort()).toEqual(appsIn(objects).map((app) => {
      const { requests, limits } = mainContainer(app).resources;
      const sidecar = (what: string): string | undefined => app.template.metadata.annotations[`dapr.io/sidecar-${what}`];
      expect(limits["cpu"]).toBeUndefined();
      return [app.name, replicas(app.name), requests["cpu"], limits["memory"], sidecar("cpu-request"), `${sidecar("memory-request") ?? ""} to ${sidecar("memory-limit") ?? ""}`];
    }).sort());
  });

  it.each([...OVERLAYS])("of %s have their numbers found by observability/scrape.yaml, under the jobs that the alerts miss when they are away", (overlay) => {
    const apps = appsIn(objectsOf(overlay));
    const jobs = (scrape: Scrape, phase = "Running"): string[] => apps.filter(({ namespace }) => scrape.kubernetes_sd_configs.some((one) => one.role === "pod" && one.namespaces.names.includes(namespace))).flatMap((app) => {
      const { labels, annotations } = app.template.metadata;
      const pod = { ...meta("pod_label", labels), ...meta("pod_annotation", annotations), __meta_kubernetes_pod_name: `${app.name}-0`, __meta_kubernetes_pod_phase: phase, job: scrape.job_name };
      const ports = [...mainContainer(app).ports.map(({ name }) => [app.name, name]), ["daprd", "dapr-http"], ["daprd", "dapr-metrics"]];
      return ports.flatMap(([container = "", port = ""]) => relabelled({ ...pod, __meta_kubernetes_pod_container_name: container, __meta_kubernetes_pod_container_port_name: port }, scrape.relabel_configs)["job"] ?? []);
    }).sort();
    const [own, sidecars] = Scrapes.parse(parse(read("observability/scrape.yaml"))).scrape_configs as [Scrape, Scrape];
    expect(jobs(own)).toEqual(apps.map(({ name }) => `docket-${name}`).sort());
    expect(jobs(sidecars)).toEqual(apps.map(({ name }) => `dapr-${name}`).sort());
    // One that was evicted stays in the list of pods, and is no consumer that is down; one that does not start is.
    for (const scrape of [own, sidecars]) expect([jobs(scrape, "Failed"), jobs(scrape, "Succeeded"), jobs(scrape, "Pending").length]).toEqual([[], [], apps.length]);
    expect([...read("observability/alerts.yaml").matchAll(/absent\(up\{job="([a-z-]+)"\}\)/g)].map(([, job]) => job).sort()).toEqual(jobs(own));
  });

  it("have a NATS that starts with whatever token the setup Job makes", async () => {
    const nats = await locateNats({ root: REPO_ROOT, report: (line) => process.stderr.write(`[nats] ${line}\n`) });
    const config = ofKind(objectsOf("dev"), "ConfigMap").find(({ metadata }) => metadata.name === "nats")?.["data"] as Record<string, string>;
    const dir = mkdtempSync(join(tmpdir(), "docket-nats-"));
    writeFileSync(join(dir, "nats.conf"), config["nats.conf"] ?? "");
    const check = (token: string): Promise<unknown> => promisify(execFile)(nats, ["-t", "-c", join(dir, "nats.conf")], { env: { POD_NAME: "nats-0", TOKEN: token } });
    try {
      // What a variable of NATS may not look like: a number, a date, a word of its own. 256 random bits begin like that once in sixty times.
      await expect(check("-aB3_x")).rejects.toThrow(/could not be parsed/);
      for (const start of ["-a", "1-", "12-a", "0", "true", "_", "a"]) await expect(check((await makeClusterValues(() => start.padEnd(43, "7"))).brokerToken), start).resolves.toBeDefined();
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });

  it("have one patch to a file: kubectl takes several from 1.31 on only, and 1.30 is what docs/kubernetes.md asks for", () => {
    const patches = sources("k8s", "kustomization.yaml").flatMap(({ path, text }) => ((parse(text) as { patches?: { path?: string }[] }).patches ?? []).flatMap((patch) => (patch.path === undefined ? [] : [join(dirname(path), patch.path)])));
    expect(patches.length).toBeGreaterThan(5);
    expect(patches.filter((path) => parseAllDocuments(read(path)).length !== 1)).toEqual([]);
  });

  it("declare no Subscription: each app lists its own to its sidecar, and the same in both places would be two readers", () => {
    for (const overlay of OVERLAYS) expect(objectsOf(overlay).filter(({ kind }) => kind === "Subscription")).toEqual([]);
  });
});

const Relabel = z.object({ source_labels: z.array(z.string()).length(1), regex: z.string().default("(.*)"), action: z.enum(["keep", "drop", "replace"]).default("replace"), target_label: z.string().default(""), replacement: z.string().default("$1") });
const Scrapes = z.object({ scrape_configs: z.array(z.object({ job_name: z.string(), kubernetes_sd_configs: z.array(z.object({ role: z.string(), namespaces: z.object({ names: z.array(z.string()) }) })), relabel_configs: z.array(Relabel) })).length(2) });
type Scrape = z.infer<typeof Scrapes>["scrape_configs"][number];

/** A pod's labels or annotations as Prometheus names them. */
const meta = (kind: string, given: Readonly<Record<string, string>>): Record<string, string> => Object.fromEntries(Object.entries(given).map(([key, value]) => [`__meta_kubernetes_${kind}_${key.replace(/\W/g, "_")}`, value]));

/** What Prometheus makes of a target; empty where it drops it. */
function relabelled(target: Readonly<Record<string, string>>, configs: Scrape["relabel_configs"]): Record<string, string> {
  const labels = { ...target };
  for (const { source_labels: [source = ""], regex, action, target_label: to, replacement } of configs) {
    const match = new RegExp(`^(?:${regex})$`).exec(labels[source] ?? "");
    if (action === (match === null ? "keep" : "drop")) return {};
    if (match !== null && action === "replace") labels[to] = replacement.replace("$1", match[1] ?? "");
  }
  return labels;
}

/** An overlay in which a text was replaced, as a slip of the pen would. */
function slipped(overlay: Overlay, kind: string, name: string, from: string | RegExp, to: string): Manifest[] {
  let met = 0;
  const objects = objectsOf(overlay).map((object) => {
    if (object.kind !== kind || object.metadata.name !== name) return object;
    const text = JSON.stringify(object);
    const changed = text.replaceAll(from, to);
    if (changed !== text) met += 1;
    return JSON.parse(changed) as Manifest;
  });
  if (met === 0) throw new Error(`${kind} ${name} of ${overlay} does not have ${String(from)}`);
  return objects;
}

describe("the checks notice", () => {
  it.each<[what: string, overlay: Overlay, kind: string, name: string, from: string | RegExp, to: string, problem: string]>([
    ["an app that dapr.yaml does not have", "dev", "Deployment", "gateway", '"dapr.io/app-id":"gateway"', '"dapr.io/app-id":"edge"', "dapr.yaml has [gateway, sessions, tools, console]"],
    ["a port that is not dapr.yaml's", "dev", "Deployment", "tools", '"dapr.io/app-port":"7360"', '"dapr.io/app-port":"7361"', "dapr.io/app-port is 7361, expected 7360"],
    ["an impatient probe", "production", "Deployment", "sessions", '"dapr.io/app-health-threshold":"5"', '"dapr.io/app-health-threshold":"1"', "app-health-threshold is 1, expected 5"],
    ["a Configuration that allows the worker more", "production", "Configuration", "tools", '"name":"publish"', '"name":"actors"', "the worker's sidecar serves [http actors"],
    ["a worker whose sidecar serves everything over gRPC", "production", "Configuration", "tools", '"protocol":"grpc"', '"protocol":"http"', "no rule for gRPC is no limit"],
    ["a component that the worker should not load", "production", "Component", "tool-store", '"scopes":["tools"]', '"scopes":["tools","sessions"]', "scopes are [tools, sessions], expected [tools]"],
    ["a setting that the tested profile does not have", "production", "Component", "tasks", '"value":"oldest"', '"value":"newest"', 'initialOffset is "newest"'],
    ["replicas that share what each must get", "production", "Component", "live", "live-{podName}", "live", "must name the pod"],
    ["a topic that nobody has", "dev", "Component", "responses", "agent.responses.completed", "agent.responses.complete", "there is no topic agent.responses.complete"],
    ["a scope that forgets a topic", "dev", "Component", "tool-results", "tools=agent.tools.completed", "tools=", "publishingScopes is"],
    ["retries that end", "dev", "Resiliency", "docket-inbound", '"maxRetries":-1', '"maxRetries":3', "must have one Resiliency"],
    ["a secret that nobody makes", "dev", "Deployment", "sessions", '"name":"actor-key"', '"name":"actors-key"', "nobody makes the Secret or ConfigMap docket/actors-key"],
    ["a secret that the docs do not list", "production", "Deployment", "console", '"name":"console-database"', '"name":"database"', "docs/kubernetes.md does not list it"],
    ["a key that the secret lacks", "dev", "Component", "session-store", '"key":"connectionString"', '"key":"url"', "docket/session-store lacks the key url"],
    ["an Ingress to nowhere", "production", "Ingress", "console", '"service":{"name":"console"', '"service":{"name":"consoles"', "there is no Service consoles"],
    ["a budget for no pod", "production", "PodDisruptionBudget", "tools", '"app.kubernetes.io/name":"tools"', '"app.kubernetes.io/name":"worker"', "meets no pod"],
    ["an image without version", "dev", "Deployment", "gateway", '"image":"docket:0.1.0"', '"image":"docket"', "does not say which version"],
    ["an image of another version", "dev", "Deployment", "gateway", '"image":"docket:0.1.0"', '"image":"docket:0.0.9"', "but this is version"],
    ["latest", "dev", "StatefulSet", "postgres", /:17[^"]*"/g, ':latest"', "does not say which version"],
    ["a password in a component", "production", "Component", "tasks", '{"name":"saslPassword","secretKeyRef":{"key":"password","name":"broker"}}', '{"name":"saslPassword","value":"hunter2"}', "saslPassword has a value in the file"],
    ["a sidecar that ends before its app", "production", "Deployment", "sessions", '"dapr.io/block-shutdown-duration":"40s"', '"dapr.io/block-shutdown-duration":"20s"', "its sidecar blocks for 20 s"],
    ["a kubelet that does not wait", "production", "Deployment", "sessions", '"terminationGracePeriodSeconds":60', '"terminationGracePeriodSeconds":30', "terminationGracePeriodSeconds is 30"],
    ["a root that can be written to", "dev", "Deployment", "tools", '"readOnlyRootFilesystem":true', '"readOnlyRootFilesystem":false', "can be written to"],
    ["an open network", "production", "NetworkPolicy", "deny-all", '"policyTypes":["Ingress","Egress"]', '"policyTypes":["Ingress"]', "no NetworkPolicy denies"],
    ["a worker that may go everywhere", "production", "NetworkPolicy", "egress-allow-list", '"policyTypes":["Egress"]', '"policyTypes":["Egress"],"egress":[{"to":[{"ipBlock":{"cidr":"0.0.0.0/0"}}],"ports":[{"port":443}]}]', "lets the worker out to everywhere"],
    ["a worker without sandbox", "production", "Deployment", "tools", '"runtimeClassName":"gvisor",', "", "no gVisor"],
    ["numbers on another port than the pod says", "dev", "Deployment", "tools", '{"containerPort":9464,"name":"metrics"}', '{"containerPort":9465,"name":"metrics"}', 'no port "metrics" that is DOCKET_METRICS_PORT'],
    ["numbers that only the pod itself sees", "dev", "Deployment", "gateway", '"name":"DOCKET_METRICS_HOST","value":"0.0.0.0"', '"name":"DOCKET_METRICS_HOST","value":"127.0.0.1"', "on loopback"],
    ["a Prometheus that is sent elsewhere", "production", "Deployment", "console", '"prometheus.io/port":"9464"', '"prometheus.io/port":"9090"', "do not lead Prometheus to port 9464"],
    ["a Prometheus that is locked out", "production", "NetworkPolicy", "metrics", '{"port":9464,"protocol":"TCP"}', '{"port":9465,"protocol":"TCP"}', "lets Prometheus in to ports 9464 and 9090"],
    ["a collector's key in the file", "production", "Deployment", "sessions", '{"name":"OTEL_EXPORTER_OTLP_HEADERS","valueFrom":{"secretKeyRef":{"key":"headers","name":"telemetry","optional":true}}}', '{"name":"OTEL_EXPORTER_OTLP_HEADERS","value":"x-api-key=1"}', "OTEL_EXPORTER_OTLP_HEADERS has a value in the file"],
    ["a pod that waits for a collector", "production", "Deployment", "tools", '"key":"endpoint","name":"telemetry","optional":true', '"key":"endpoint","name":"telemetry"', "references that may be missing"],
    ["traces without a way out", "production", "NetworkPolicy", "telemetry", '"port":4318', '"port":4317', "lets it out to the collector's port 4318"],
    ["pods that resolve no name", "production", "NetworkPolicy", "dns", '"port":53', '"port":5353', "lets it out to port 53 (UDP) of kube-system"],
    ["names that are asked for by TCP alone", "dev", "NetworkPolicy", "dns", '"protocol":"UDP"', '"protocol":"TCP"', "lets it out to port 53 (UDP) of kube-system"],
    ["session hosts that reach no model", "production", "NetworkPolicy", "internet", '"port":443', '"port":8443', "sessions: no NetworkPolicy lets it out to port 443 of 0.0.0.0/0"],
    ["a way to the credentials of the machine", "production", "NetworkPolicy", "internet", '"169.254.0.0/16",', "", "the internet is not 169.254.0.0/16"],
    ["a database that lets nobody in", "dev", "NetworkPolicy", "postgres", '"port":5432', '"port":5433', "postgres: no NetworkPolicy lets it be reached on port 5432"],
    ["a broker that leaves the worker out", "dev", "NetworkPolicy", "nats", '"docket-tools"', '"tools"', "nats: no NetworkPolicy lets it be reached on port 4222 from docket-tools/tools"],
    ["a sidecar without sentry", "dev", "NetworkPolicy", "dapr-control-plane", '"port":50001', '"port":443', "lets it out to port 50001 of dapr-system"],
    ["actors without a scheduler", "production", "NetworkPolicy", "dapr-control-plane", '"port":50006', '"port":50007', "sessions: no NetworkPolicy lets it out to port 50006"],
    ["actors that hear nobody", "production", "NetworkPolicy", "actors", '"policyTypes":["Ingress","Egress"]', '"policyTypes":["Egress"]', "lets it be reached on port 50002"],
    ["a worker without broker", "dev", "NetworkPolicy", "broker-and-store", '"port":4222', '"port":4223', "lets it out to port 4222 of docket/nats"],
    ["an Ingress that is locked out", "production", "NetworkPolicy", "public", '"console"', '"consoles"', "console: no NetworkPolicy lets it be reached on port public"],
    ["a Job that finds no API server on some clusters", "dev", "NetworkPolicy", "setup", '"port":8443', '"port":8444', "setup: no NetworkPolicy lets it out to port 8443 of the API server"],
    ["a Job that stays", "dev", "Job", "setup", /,"ttlSecondsAfterFinished":\d+/g, "", "refuses every later apply"],
    ["clients that are all one address", "production", "Deployment", "gateway", '"name":"DOCKET_TRUST_PROXY_HOPS","value":"1"', '"name":"DOCKET_TRUST_PROXY_HOPS","value":"0"', "whose address would be everybody's"],
    ["the lag of another channel", "production", "ScaledObject", "tools", "tools-tool-requests", "sessions-tool-results", "says nothing about tools"],
  ])("%s", (_what, overlay, kind, name, from, to, problem) => {
    expect(manifestProblems(slipped(overlay, kind, name, from, to), overlay).join("\n")).toContain(problem);
  });
});
