/** Owns: what must hold of every overlay's networks: nothing by default, a way to all that each pod needs, the worker alone, and ways for numbers and traces. */
import { z } from "zod";
import { appsIn, at, mainContainer, NAMESPACE, ofKind, same, TOOLS_NAMESPACE, where, workloadsIn, type Manifest, type Overlay, type Workload } from "./manifests.js";

const MONITORING = "monitoring";
const SIDECAR_METRICS_PORT = 9090;
const COLLECTOR_PORT = 4318;
const DNS = { namespace: "kube-system", port: 53, protocols: ["UDP", "TCP"] };
const ANYWHERE = "0.0.0.0/0";
/** Not the internet: other pods and nodes, and what a cloud hands its machines' credentials out at (169.254.169.254). */
const PRIVATE = ["10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"];
/** Of Dapr's pods, behind their services: operator and sentry for every sidecar, placement and scheduler for those with actors. */
const CONTROL_PLANE = { namespace: "dapr-system", ports: [6500, 50001], ofActors: [50005, 50006] };
const SIDECAR_TO_SIDECAR_PORT = 50002;
/** What API servers listen on behind `kubernetes.default.svc`, by the makers of clusters: policies see the port behind the service. */
const API_SERVER_PORTS = [443, 6443, 8443, 16443];

const Peer = z.looseObject({ namespaceSelector: z.object({ matchLabels: z.record(z.string(), z.string()) }).optional(), podSelector: z.unknown().optional(), ipBlock: z.object({ cidr: z.string(), except: z.array(z.string()).default([]) }).optional() });
const Ports = z.array(z.object({ port: z.union([z.number(), z.string()]), protocol: z.string().default("TCP") })).default([]);
const Policy = z.object({
  podSelector: z.looseObject({ matchLabels: z.record(z.string(), z.string()).optional() }), policyTypes: z.array(z.string()),
  ingress: z.array(z.object({ from: z.array(Peer).default([]), ports: Ports })).default([]),
  egress: z.array(z.object({ to: z.array(Peer).default([]), ports: Ports })).default([]),
});

type Direction = "ingress" | "egress";
interface Way { readonly direction: Direction; readonly port: number | string; readonly protocol?: string; readonly namespace?: string; readonly pod?: string; readonly cidr?: string }

const labelsOf = ({ template }: Workload): Record<string, string> => ({ ...template.metadata.labels, ...(template.metadata.annotations["dapr.io/enabled"] === "true" ? { "dapr.io/sidecar-injected": "true" } : {}) });

function meets(selector: z.infer<typeof Policy>["podSelector"], labels: Readonly<Record<string, string>>): boolean {
  const expressions = z.array(z.object({ key: z.string(), operator: z.literal("In"), values: z.array(z.string()) })).default([]).parse(selector["matchExpressions"]);
  return Object.entries(selector.matchLabels ?? {}).every(([key, value]) => labels[key] === value) && expressions.every(({ key, values }) => values.includes(labels[key] ?? ""));
}

/** Whether some policy lets a pod go this way: to or from a namespace, a pod by its name, a network, or (with none of them) anybody. */
function lets(objects: readonly Manifest[], workload: Workload, { direction, port, protocol = "TCP", namespace, pod, cidr }: Way): boolean {
  return ofKind(objects, "NetworkPolicy", workload.namespace).some((object) => {
    const policy = Policy.parse(object["spec"]);
    const rules = direction === "ingress" ? policy.ingress.map((rule) => ({ peers: rule.from, ports: rule.ports })) : policy.egress.map((rule) => ({ peers: rule.to, ports: rule.ports }));
    const wanted = (peer: z.infer<typeof Peer>): boolean => peer.ipBlock?.cidr === cidr && (peer.namespaceSelector?.matchLabels["kubernetes.io/metadata.name"] ?? workload.namespace) === (namespace ?? workload.namespace)
      && (pod === undefined || JSON.stringify(peer.podSelector ?? {}).includes(`"${pod}"`));
    return meets(policy.podSelector, labelsOf(workload)) && policy.policyTypes.includes(direction === "ingress" ? "Ingress" : "Egress") && rules.some((rule) => rule.ports.some((one) => one.port === port && one.protocol === protocol) && (namespace === undefined && pod === undefined && cidr === undefined ? rule.peers.length === 0 : rule.peers.some(wanted)));
  });
}

/** Whatever a pod cannot do without has a way through the policies: a forgotten one is seen on the cluster only, as a pod that never becomes ready. */
export function ways(objects: readonly Manifest[], overlay: Overlay): string[] {
  const withActors = ({ template }: Workload): boolean => template.metadata.labels["docket.dev/actors"] === "true";
  const out = (ports: readonly number[], to: Partial<Way>): Way[] => ports.map((port) => ({ direction: "egress" as const, port, ...to }));
  const dns = (): Way[] => DNS.protocols.flatMap((protocol) => out([DNS.port], { protocol, namespace: DNS.namespace }));
  const wanted = (workload: Workload): Way[] => {
    const ofApps = appsIn(objects).some(({ name, namespace }) => name === workload.name && namespace === workload.namespace);
    if (!ofApps) return workload.kind === "Job" ? [...dns(), ...out(API_SERVER_PORTS, {}), ...brokerAndStore()] : broughtAlong(workload);
    return [
      ...dns(), ...out(CONTROL_PLANE.ports, { namespace: CONTROL_PLANE.namespace }),
      // A model, a receiver of answers, an identity provider.
      ...(withActors(workload) ? out([443], { cidr: ANYWHERE }) : []),
      ...(withActors(workload) ? [...out(CONTROL_PLANE.ofActors, { namespace: CONTROL_PLANE.namespace }), ...(["ingress", "egress"] as const).map((direction) => ({ direction, port: SIDECAR_TO_SIDECAR_PORT, pod: "docket.dev/actors" }))] : []),
      ...(overlay === "dev" ? brokerAndStore() : []),
      ...(ofKind(objects, "Service", workload.namespace).some(({ metadata }) => metadata.name === workload.name) ? [{ direction: "ingress" as const, port: "public", namespace: "ingress-nginx" }] : []),
    ];
  };
  const brokerAndStore = (): Way[] => [...out([4222], { namespace: NAMESPACE, pod: "nats" }), ...out([5432], { namespace: NAMESPACE, pod: "postgres" })];
  /** Broker and database of dev, from all that have a way out to them: a way has two ends. */
  const broughtAlong = ({ name }: Workload): Way[] => (Object.entries({ nats: 4222, postgres: 5432 }).filter(([one]) => one === name)
    .flatMap(([, port]) => [{ pod: "dapr.io/sidecar-injected" }, { pod: "setup" }, { namespace: TOOLS_NAMESPACE, pod: "tools" }].map((from) => ({ direction: "ingress" as const, port, ...from }))));
  return workloadsIn(objects).flatMap((workload) => wanted(workload).filter((way) => !lets(objects, workload, way))
    .map(({ direction, port, protocol, namespace, pod, cidr }) => `${at(workload)}: no NetworkPolicy lets it ${direction === "ingress" ? "be reached on" : "out to"} port ${String(port)}${protocol === undefined ? "" : ` (${protocol})`} ${direction === "ingress" ? "from" : "of"} ${[namespace, pod, cidr].filter(Boolean).join("/") || "the API server"}`));
}

/** Who is behind an Ingress knows how many proxies are in front: or all clients are one address, with one rate limit for all. */
export function clients(objects: readonly Manifest[], overlay: Overlay): string[] {
  const behind = ofKind(objects, "Ingress").map(({ metadata }) => metadata.name);
  return overlay === "dev" ? [] : appsIn(objects).filter(({ name }) => behind.includes(name))
    .filter((app) => !(Number(mainContainer(app).env.find(({ name }) => name === "DOCKET_TRUST_PROXY_HOPS")?.value ?? 0) >= 1))
    .map((app) => `${at(app)}: DOCKET_TRUST_PROXY_HOPS does not count the Ingress, whose address would be everybody's`);
}

/** Nothing by default, in both namespaces; and "the internet" is nothing private. */
export function networks(objects: readonly Manifest[]): string[] {
  const tooWide = ofKind(objects, "NetworkPolicy").flatMap((object) => Policy.parse(object["spec"]).egress.flatMap(({ to }) => to).filter(({ ipBlock }) => ipBlock?.cidr === ANYWHERE)
    .flatMap(({ ipBlock }) => PRIVATE.filter((network) => ipBlock?.except.includes(network) !== true)).map((network) => `${where(object)}: the internet is not ${network}`));
  return [...tooWide, ...[NAMESPACE, TOOLS_NAMESPACE].flatMap((namespace) => {
    const closed = ofKind(objects, "NetworkPolicy", namespace).some((object) => {
      const policy = Policy.parse(object["spec"]);
      return Object.keys(policy.podSelector).length === 0 && policy.policyTypes.includes("Ingress") && policy.policyTypes.includes("Egress") && policy.ingress.length === 0 && policy.egress.length === 0;
    });
    return closed ? [] : [`${namespace}: no NetworkPolicy denies what no other allows`];
  })];
}

/** The worker: alone in its namespace, reached by nobody, reaching broker, store, DNS and control plane, in a sandbox in production. */
export function isolation(objects: readonly Manifest[], overlay: Overlay): string[] {
  const inside = workloadsIn(objects).filter(({ namespace }) => namespace === TOOLS_NAMESPACE);
  const problems = inside.length === 1 && inside[0]?.name === "tools" ? [] : [`${TOOLS_NAMESPACE} has [${inside.map(({ name }) => name).join(", ")}], expected the worker alone`];
  const [tools] = inside;
  if (tools === undefined) return problems;
  if (overlay === "production" && tools.template.spec.runtimeClassName !== "gvisor") problems.push(`${at(tools)}: no gVisor`);
  if (tools.template.metadata.labels["docket.dev/actors"] !== undefined || tools.template.metadata.annotations["dapr.io/placement-host-address"] !== undefined) problems.push(`${at(tools)}: the worker has no part in actors`);
  const { api, secrets: secretsApi } = z.object({ api: z.object({ allowed: z.array(z.object({ name: z.string(), protocol: z.string() })) }), secrets: z.object({ scopes: z.array(z.object({ defaultAccess: z.string() })) }) }).parse(ofKind(objects, "Configuration", TOOLS_NAMESPACE)[0]?.["spec"]);
  const allowed = api.allowed.map(({ name, protocol }) => `${protocol} ${name}`);
  if (!same([...allowed].sort(), ["grpc metadata", "http metadata", "http publish", "http state"])) problems.push(`the worker's sidecar serves [${allowed.join(", ")}], expected publish, state and metadata over HTTP, metadata over gRPC (no rule for gRPC is no limit to it)`);
  if (secretsApi.scopes.some(({ defaultAccess }) => defaultAccess !== "deny")) problems.push("the worker's sidecar hands out secrets");
  for (const object of ofKind(objects, "NetworkPolicy", TOOLS_NAMESPACE)) {
    const { ingress, egress } = Policy.parse(object["spec"]);
    for (const peer of ingress.flatMap(({ from }) => from)) if (peer.namespaceSelector?.matchLabels["kubernetes.io/metadata.name"] !== "monitoring") problems.push(`${where(object)}: only Prometheus may come in`);
    for (const rule of egress) {
      if (rule.to.length === 0 || rule.to.some(({ ipBlock }) => ipBlock?.cidr === "0.0.0.0/0")) problems.push(`${where(object)}: lets the worker out to everywhere`);
      if (rule.ports.length === 0) problems.push(`${where(object)}: lets the worker out on every port`);
      if (rule.ports.some(({ port }) => port === 50005 || port === 50006 || port === SIDECAR_TO_SIDECAR_PORT)) problems.push(`${where(object)}: lets the worker reach placement, the scheduler, or other sidecars`);
    }
  }
  return problems;
}

/** Prometheus finds each app's numbers and may come in; in production traces have a way to the collector, whose key is a reference. */
export function telemetry(objects: readonly Manifest[], overlay: Overlay): string[] {
  return appsIn(objects).flatMap((app) => {
    const { env, ports } = mainContainer(app);
    const port = env.find(({ name }) => name === "DOCKET_METRICS_PORT")?.value ?? "missing";
    const monitored = (direction: Direction, wanted: number): boolean => lets(objects, app, { direction, port: wanted, namespace: MONITORING });
    const pushed = (name: string): boolean => env.find((one) => one.name === name)?.valueFrom?.secretKeyRef?.optional === true;
    return [
      ...(ports.some((one) => one.name === "metrics" && String(one.containerPort) === port) ? [] : [`its container has no port "metrics" that is DOCKET_METRICS_PORT (${port})`]),
      ...(env.some(({ name, value }) => name === "DOCKET_METRICS_HOST" && value === "0.0.0.0") ? [] : ["its numbers are on loopback, where no Prometheus comes"]),
      ...(app.template.metadata.annotations["prometheus.io/scrape"] === "true" && app.template.metadata.annotations["prometheus.io/port"] === port ? [] : [`its annotations do not lead Prometheus to port ${port}`]),
      ...(monitored("ingress", Number(port)) && monitored("ingress", SIDECAR_METRICS_PORT) ? [] : [`no NetworkPolicy lets Prometheus in to ports ${port} and ${String(SIDECAR_METRICS_PORT)}`]),
      ...(overlay === "dev" || ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"].every(pushed) ? [] : ["the collector's address and headers are no references that may be missing"]),
      ...(overlay === "dev" || monitored("egress", COLLECTOR_PORT) ? [] : [`no NetworkPolicy lets it out to the collector's port ${String(COLLECTOR_PORT)}`]),
    ].map((problem) => `${at(app)}: ${problem}`);
  });
}
