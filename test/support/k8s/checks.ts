/**
 * Owns: what must hold of every overlay of k8s/ and what an API server does not see: names that match across files, scopes and channels as
 * src/contracts has them, the same sidecar settings as dapr.yaml, no secret in a file. Each check returns what is wrong, in words.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { APPS, CHANNELS, STATE_STORES, type AppId, type Channel } from "../../../src/contracts/channels.js";
import { clusterObjects, type ClusterValues } from "../../../src/launcher/cluster/secrets.js";
import { readRunFile } from "../../../src/launcher/run-file.js";
import { STOP_DEADLINE_MS } from "../../../src/platform/lifecycle.js";
import { REPO_ROOT } from "../cluster.js";
import { appsIn, at, mainContainer, NAMESPACE, ofKind, same, TOOLS_NAMESPACE, where, workloadsIn, type Check, type Manifest, type Overlay } from "./manifests.js";
import { clients, isolation, networks, telemetry, ways } from "./network-checks.js";

/** Whose component files an overlay's are to equal. */
const PROFILE_OF: Record<Overlay, string> = { dev: "nats", production: "production" };

/** Everything that is wrong with an overlay; empty when nothing is. */
export function manifestProblems(objects: readonly Manifest[], overlay: Overlay): string[] {
  return CHECKS.flatMap((check) => check(objects, overlay));
}

const CHECKS: readonly Check[] = [apps, configurations, components, resiliency, references, selectors, images, secrets, topics, shutdown, pods, jobs, networks, ways, isolation, clients, scaling, telemetry];

const read = (path: string): unknown => parse(readFileSync(join(REPO_ROOT, path), "utf8"));
const namespaceOf = (app: string): string => (app === "tools" ? TOOLS_NAMESPACE : NAMESPACE);
/** The four apps of dapr.yaml, in their namespaces, with its ports and its sidecar settings. */
function apps(objects: readonly Manifest[]): string[] {
  const runFile = readRunFile(join(REPO_ROOT, "dapr.yaml"));
  const common = z.object({ common: z.object({ appProtocol: z.string(), appHealthCheckPath: z.string(), appHealthProbeInterval: z.number(), appHealthProbeTimeout: z.number(), appHealthThreshold: z.number() }) }).parse(read("dapr.yaml")).common;
  const found = appsIn(objects);
  const ids = found.map(({ template }) => template.metadata.annotations["dapr.io/app-id"] ?? "");
  const problems = same([...ids].sort(), runFile.apps.map(({ appId }) => appId).sort()) ? [] : [`the Deployments with a sidecar are [${ids.join(", ")}], dapr.yaml has [${runFile.apps.map(({ appId }) => appId).join(", ")}]`];
  for (const app of found) {
    const inRunFile = runFile.apps.find(({ appId }) => appId === app.name);
    const container = mainContainer(app);
    const env = Object.fromEntries(container.env.map(({ name, value }) => [name, value]));
    const expected: Record<string, string> = {
      "dapr.io/app-id": app.name, "dapr.io/config": app.name, "dapr.io/app-port": String(inRunFile?.ports.app), "dapr.io/app-protocol": common.appProtocol,
      "dapr.io/enable-app-health-check": "true", "dapr.io/app-health-check-path": common.appHealthCheckPath, "dapr.io/app-health-probe-interval": String(common.appHealthProbeInterval),
      "dapr.io/app-health-probe-timeout": String(common.appHealthProbeTimeout), "dapr.io/app-health-threshold": String(common.appHealthThreshold),
      "dapr.io/api-token-secret": `${app.name}-dapr-api-token`, "dapr.io/app-token-secret": `${app.name}-app-api-token`, "dapr.io/disable-builtin-k8s-secret-store": "true",
    };
    for (const [key, value] of Object.entries(expected)) {
      const given = app.template.metadata.annotations[key];
      if (given !== value) problems.push(`${at(app)}: ${key} is ${given ?? "missing"}, expected ${value}`);
    }
    if (app.namespace !== namespaceOf(app.name)) problems.push(`${at(app)}: expected in namespace ${namespaceOf(app.name)}`);
    if (env["APP_PORT"] !== String(inRunFile?.ports.app)) problems.push(`${at(app)}: APP_PORT is ${env["APP_PORT"] ?? "missing"}, dapr.yaml says ${String(inRunFile?.ports.app)}`);
    const publicPort = inRunFile?.env["DOCKET_PUBLIC_PORT"];
    if (env["DOCKET_PUBLIC_PORT"] !== publicPort) problems.push(`${at(app)}: DOCKET_PUBLIC_PORT is ${env["DOCKET_PUBLIC_PORT"] ?? "missing"}, dapr.yaml says ${publicPort ?? "none"}`);
    if (!same(container.args, [app.name])) problems.push(`${at(app)}: args are [${container.args.join(", ")}], expected the app's name`);
  }
  return problems;
}

/** As components/configuration, less the name resolver, which Kubernetes brings. */
function configurations(objects: readonly Manifest[]): string[] {
  return APPS.flatMap((app) => {
    const { nameResolution: _local, ...expected } = z.object({ spec: z.looseObject({ nameResolution: z.unknown() }) }).parse(read(`components/configuration/${app}.yaml`)).spec;
    const found = ofKind(objects, "Configuration", namespaceOf(app)).find(({ metadata }) => metadata.name === app);
    if (found === undefined) return [`there is no Configuration ${app} in ${namespaceOf(app)}`];
    return same(found["spec"], expected) ? [] : [`${where(found)} is not what components/configuration/${app}.yaml says`];
  });
}

const Component = z.object({
  metadata: z.object({ name: z.string() }),
  spec: z.object({
    type: z.string(), version: z.string(),
    metadata: z.array(z.object({ name: z.string(), value: z.string().optional(), envRef: z.string().optional(), secretKeyRef: z.object({ name: z.string(), key: z.string() }).optional() })),
  }),
  scopes: z.array(z.string()),
});

/** Who loads a component, by src/contracts. */
function usersOf(component: string): AppId[] {
  const channel = Object.values<Channel>(CHANNELS).find((one) => one.component === component);
  if (channel !== undefined) return APPS.filter((app) => channel.publishers.includes(app) || channel.subscribers.includes(app));
  const owner = { [STATE_STORES.sessions]: "sessions", [STATE_STORES.inbox]: "gateway", [STATE_STORES.tools]: "tools" }[component];
  return owner === undefined ? [] : [owner as AppId];
}

/** Each namespace has what its apps load and nothing else, scoped to exactly those apps, with the settings of the profile that is tested on real brokers. */
function components(objects: readonly Manifest[], overlay: Overlay): string[] {
  const names = [...Object.values<Channel>(CHANNELS).map(({ component }) => component), ...Object.values(STATE_STORES)];
  return [NAMESPACE, TOOLS_NAMESPACE].flatMap((namespace) => {
    const expected = names.filter((name) => usersOf(name).some((app) => namespaceOf(app) === namespace));
    const found = ofKind(objects, "Component", namespace);
    const given = found.map(({ metadata }) => metadata.name);
    const problems = same([...given].sort(), [...expected].sort()) ? [] : [`the Components of ${namespace} are [${[...given].sort().join(", ")}], expected [${[...expected].sort().join(", ")}]`];
    return [...problems, ...found.filter(({ metadata }) => names.includes(metadata.name)).flatMap((object) => componentProblems(object, overlay))];
  });
}

function componentProblems(object: Manifest, overlay: Overlay): string[] {
  const file = `components/${PROFILE_OF[overlay]}/${object.metadata.name}.yaml`;
  const own = Component.parse(object);
  const local = Component.parse(read(file));
  const problems: string[] = [];
  const users = usersOf(object.metadata.name);
  if (!same([...own.scopes].sort(), [...users].sort())) problems.push(`${where(object)}: scopes are [${own.scopes.join(", ")}], expected [${users.join(", ")}]`);
  if (own.spec.type !== local.spec.type || own.spec.version !== local.spec.version) problems.push(`${where(object)} is ${own.spec.type}/${own.spec.version}, ${file} is ${local.spec.type}/${local.spec.version}`);
  for (const item of local.spec.metadata) {
    const mine = own.spec.metadata.find(({ name }) => name === item.name);
    if (mine === undefined) problems.push(`${where(object)}: ${item.name} is missing, which ${file} has`);
    else if (item.envRef === undefined && mine.value !== item.value) problems.push(`${where(object)}: ${item.name} is "${mine.value ?? "a reference"}", ${file} has "${item.value ?? ""}"`);
    else if (item.envRef === "DOCKET_REPLICA" && mine.value?.includes("{podName}") !== true) problems.push(`${where(object)}: ${item.name} must name the pod, or replicas share what each must get`);
  }
  const more = own.spec.metadata.filter(({ name }) => !local.spec.metadata.some((item) => item.name === name)).map(({ name }) => name);
  return more.length === 0 ? problems : [...problems, `${where(object)}: ${file} does not have ${more.join(", ")}`];
}

/** In both namespaces, and as in the profile. */
function resiliency(objects: readonly Manifest[], overlay: Overlay): string[] {
  const expected = z.object({ spec: z.unknown() }).parse(read(`components/${PROFILE_OF[overlay]}/resiliency.yaml`)).spec;
  return [NAMESPACE, TOOLS_NAMESPACE].flatMap((namespace) => {
    const found = ofKind(objects, "Resiliency", namespace);
    return found.length === 1 && same(found[0]?.["spec"], expected) ? [] : [`${namespace} must have one Resiliency, that of components/${PROFILE_OF[overlay]}: without it the first failure is a dead letter`];
  });
}

/** Every Secret and ConfigMap that somebody refers to, as `namespace/name` with its keys. Those that may be missing are left out. */
export function referredSecrets(objects: readonly Manifest[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  const add = (namespace: string, name: string, ...keys: string[]): void => {
    const id = `${namespace}/${name}`;
    found.set(id, new Set([...(found.get(id) ?? []), ...keys]));
  };
  for (const { namespace, template } of workloadsIn(objects)) {
    for (const container of template.spec.containers) {
      for (const { valueFrom } of container.env) if (valueFrom?.secretKeyRef !== undefined && valueFrom.secretKeyRef.optional !== true) add(namespace, valueFrom.secretKeyRef.name, valueFrom.secretKeyRef.key);
      for (const { secretRef } of container.envFrom) if (secretRef.optional !== true) add(namespace, secretRef.name);
    }
    for (const volume of template.spec.volumes) {
      for (const source of volume.projected?.sources ?? []) add(namespace, source.configMap?.name ?? source.secret?.name ?? "");
      if (volume.configMap !== undefined) add(namespace, volume.configMap.name);
      if (volume.secret !== undefined) add(namespace, volume.secret.secretName);
    }
    for (const kind of ["api", "app"]) {
      const name = template.metadata.annotations[`dapr.io/${kind}-token-secret`];
      if (name !== undefined) add(namespace, name, "token");
    }
  }
  for (const object of ofKind(objects, "Component")) {
    for (const { secretKeyRef } of Component.parse(object).spec.metadata) if (secretKeyRef !== undefined) add(object.metadata.namespace ?? "", secretKeyRef.name, secretKeyRef.key);
  }
  for (const object of ofKind(objects, "TriggerAuthentication")) {
    const { secretTargetRef } = z.object({ secretTargetRef: z.array(z.object({ name: z.string(), key: z.string() })) }).parse(object["spec"]);
    for (const { name, key } of secretTargetRef) add(object.metadata.namespace ?? "", name, key);
  }
  for (const object of ofKind(objects, "Ingress")) {
    const { tls } = z.object({ tls: z.array(z.object({ secretName: z.string() })).default([]) }).parse(object["spec"]);
    for (const { secretName } of tls) add(object.metadata.namespace ?? "", secretName);
  }
  return found;
}

/** What the Job of the dev overlay makes, as referredSecrets has it. */
export function madeByTheJob(): Map<string, Set<string>> {
  const perApp = Object.fromEntries(APPS.map((app) => [app, "x"])) as Record<AppId, string>;
  const values: ClusterValues = { signing: perApp, trust: "x", apiKeys: "x", apiKey: "x", actorKey: "x", brokerToken: "x", postgresPassword: "x", databasePasswords: perApp, daprApiTokens: perApp, appApiTokens: perApp };
  return new Map(clusterObjects(values, { namespace: NAMESPACE, toolsNamespace: TOOLS_NAMESPACE, postgres: "postgres:5432" }).map(({ namespace, name, data }) => [`${namespace}/${name}`, new Set(Object.keys(data))]));
}

/** What docs/kubernetes.md tells people to make: rows of `| namespace | name | keys | …`. */
export function secretsInTheDocs(): Map<string, Set<string>> {
  const rows = readFileSync(join(REPO_ROOT, "docs/kubernetes.md"), "utf8").matchAll(/^\| `(docket(?:-tools)?)` \| `([a-z-]+)` \| ([^|]*) \|/gm);
  return new Map([...rows].map(([, namespace, name, keys]) => [`${namespace ?? ""}/${name ?? ""}`, new Set([...(keys ?? "").matchAll(/`([^`]+)`/g)].map(([, key]) => key ?? ""))]));
}

/** Names that one object gives another: secrets, service accounts, services, targets. */
function references(objects: readonly Manifest[], overlay: Overlay): string[] {
  const exists = (kind: string, namespace: string, name: string): boolean => ofKind(objects, kind, namespace).some(({ metadata }) => metadata.name === name);
  const provided = overlay === "dev" ? madeByTheJob() : secretsInTheDocs();
  const problems: string[] = [];
  for (const [id, keys] of referredSecrets(objects)) {
    const [namespace = "", name = ""] = id.split("/");
    if (exists("ConfigMap", namespace, name)) continue;
    const known = provided.get(id);
    const missing = known === undefined ? [] : [...keys].filter((key) => !known.has(key));
    if (known === undefined) problems.push(`nobody makes the Secret or ConfigMap ${id}: ${overlay === "dev" ? "not the setup Job" : "docs/kubernetes.md does not list it"}`);
    else if (missing.length > 0) problems.push(`${id} lacks the key ${missing.join(", ")}`);
  }
  for (const workload of workloadsIn(objects)) {
    const account = workload.template.spec.serviceAccountName;
    if (account !== undefined && !exists("ServiceAccount", workload.namespace, account)) problems.push(`${at(workload)}: there is no ServiceAccount ${account}`);
  }
  for (const object of ofKind(objects, "Ingress")) {
    for (const [, name] of JSON.stringify(object["spec"]).matchAll(/"service":\{"name":"([^"]+)"/g)) if (!exists("Service", object.metadata.namespace ?? "", name ?? "")) problems.push(`${where(object)}: there is no Service ${name ?? ""}`);
  }
  for (const object of [...ofKind(objects, "ScaledObject"), ...ofKind(objects, "HorizontalPodAutoscaler")]) {
    const { scaleTargetRef } = z.object({ scaleTargetRef: z.object({ name: z.string() }) }).parse(object["spec"]);
    if (!exists("Deployment", object.metadata.namespace ?? "", scaleTargetRef.name)) problems.push(`${where(object)}: there is no Deployment ${scaleTargetRef.name}`);
    for (const [, name] of JSON.stringify(object["spec"]).matchAll(/"authenticationRef":\{"name":"([^"]+)"/g)) if (!exists("TriggerAuthentication", object.metadata.namespace ?? "", name ?? "")) problems.push(`${where(object)}: there is no TriggerAuthentication ${name ?? ""}`);
  }
  for (const object of objects) if (object.metadata.namespace !== undefined && !objects.some(({ kind, metadata }) => kind === "Namespace" && metadata.name === object.metadata.namespace)) problems.push(`${where(object)}: nobody makes its namespace`);
  return problems;
}

/** Selectors that meet a pod: one with a typo protects, spreads or exposes nothing. */
function selectors(objects: readonly Manifest[]): string[] {
  const pods: { namespace: string; labels: Record<string, string> }[] = workloadsIn(objects).map(({ namespace, template }) => ({ namespace, labels: { ...template.metadata.labels, ...(template.metadata.annotations["dapr.io/enabled"] === "true" ? { "dapr.io/sidecar-injected": "true" } : {}) } }));
  const meets = (namespace: string, wanted: Readonly<Record<string, string>>): boolean => pods.some((pod) => pod.namespace === namespace && Object.entries(wanted).every(([key, value]) => pod.labels[key] === value));
  const problems: string[] = [];
  const LabelSelector = z.object({ matchLabels: z.record(z.string(), z.string()).default({}) });
  for (const object of objects.filter(({ kind }) => ["Service", "PodDisruptionBudget", "NetworkPolicy"].includes(kind))) {
    const namespace = object.metadata.namespace ?? "";
    const spec = z.looseObject({ selector: z.unknown().optional(), podSelector: z.unknown().optional() }).safeParse(object["spec"]).data;
    const wanted = object.kind === "Service" ? z.record(z.string(), z.string()).parse(spec?.selector)
      : object.kind === "PodDisruptionBudget" ? LabelSelector.parse(spec?.selector).matchLabels
        : LabelSelector.parse(spec?.podSelector).matchLabels;
    if (!meets(namespace, wanted)) problems.push(`${where(object)}: its selector ${JSON.stringify(wanted)} meets no pod`);
  }
  for (const workload of appsIn(objects)) {
    const budget = ofKind(objects, "PodDisruptionBudget", workload.namespace).some((object) => same(LabelSelector.parse((object["spec"] as { selector?: unknown }).selector).matchLabels, { "app.kubernetes.io/name": workload.name }));
    if (!budget) problems.push(`${at(workload)}: no PodDisruptionBudget`);
    const spread = workload.template.spec.topologySpreadConstraints;
    if (spread.length === 0 || spread.some(({ labelSelector }) => !same(labelSelector.matchLabels, { "app.kubernetes.io/name": workload.name }))) problems.push(`${at(workload)}: its replicas are not spread`);
  }
  return problems;
}

/** Images say which. */
function images(objects: readonly Manifest[]): string[] {
  const { version } = z.object({ version: z.string() }).parse(JSON.parse(readFileSync(join(REPO_ROOT, "package.json"), "utf8")));
  const nats = /nats-server\/v2 v(\S+)/.exec(readFileSync(join(REPO_ROOT, "runtime/nats/go.mod"), "utf8"))?.[1];
  return workloadsIn(objects).flatMap((workload) => workload.template.spec.containers.flatMap(({ image }) => {
    const [, name = "", tag] = /^(.*?)(?::([^/:@]+))?(?:@.*)?$/.exec(image) ?? [];
    if (tag === undefined || tag === "latest") return [`${at(workload)}: image ${image} does not say which version`];
    if (/(^|\/)docket$/.test(name) && tag !== version) return [`${at(workload)}: image ${image}, but this is version ${version}`];
    if (/(^|\/)nats$/.test(name) && !tag.startsWith(`${nats ?? "?"}-`)) return [`${at(workload)}: image ${image}, but everything is tested with NATS ${nats ?? "?"}`];
    return [];
  }));
}

const SECRET_NAME = /(token|password|secret|connectionstring|_key|apikey|credential|headers)$/i;

/** Secrets come by reference: no Secret object, no value where a secret belongs. */
function secrets(objects: readonly Manifest[]): string[] {
  const inEnv = workloadsIn(objects).flatMap((workload) => workload.template.spec.containers.flatMap(({ env }) => env.filter(({ name, value }) => value !== undefined && SECRET_NAME.test(name)).map(({ name }) => `${at(workload)}: ${name} has a value in the file`)));
  const inComponents = ofKind(objects, "Component").flatMap((object) => Component.parse(object).spec.metadata.filter(({ name, value }) => value !== undefined && SECRET_NAME.test(name)).map(({ name }) => `${where(object)}: ${name} has a value in the file`));
  const written = objects.filter((object) => object.kind !== "ConfigMap" && /:\/\/[^/\s"]*:[^/\s"]+@|-----BEGIN/.test(JSON.stringify(object))).map((object) => `${where(object)}: an address with a password, or a key`);
  return [...ofKind(objects, "Secret").map((object) => `${where(object)}: a Secret in a file`), ...inEnv, ...inComponents, ...written];
}

/** Every topic that is named anywhere is one of src/contracts. */
function topics(objects: readonly Manifest[]): string[] {
  const known = Object.values<Channel>(CHANNELS).map(({ topic }): string => topic);
  return objects.flatMap((object) => [...JSON.stringify(object).matchAll(/\bagent\.[a-z]+\.[a-z_-]+/g)].map(([topic]) => topic).filter((topic) => !known.includes(topic)).map((topic) => `${where(object)}: there is no topic ${topic}`));
}

/** The sidecar outlives the app, and the kubelet waits for both. */
function shutdown(objects: readonly Manifest[]): string[] {
  return appsIn(objects).flatMap((app) => {
    const number = (key: string): number => Number.parseInt(app.template.metadata.annotations[key] ?? "", 10);
    const preStop = mainContainer(app).lifecycle?.preStop.sleep.seconds ?? Number.NaN;
    const appGone = preStop + STOP_DEADLINE_MS / 1000 + number("dapr.io/app-health-probe-interval") * number("dapr.io/app-health-threshold");
    const block = number("dapr.io/block-shutdown-duration");
    const all = block + number("dapr.io/graceful-shutdown-seconds");
    const grace = app.template.spec.terminationGracePeriodSeconds;
    return [
      ...(appGone <= block ? [] : [`${at(app)}: the app may need ${String(appGone)} s to end, its sidecar blocks for ${String(block)} s`]),
      ...(all < grace ? [] : [`${at(app)}: the sidecar may need ${String(all)} s to end, terminationGracePeriodSeconds is ${String(grace)}`]),
    ];
  });
}

/** What `restricted` does not ask for. */
function pods(objects: readonly Manifest[]): string[] {
  return workloadsIn(objects).flatMap((workload) => workload.template.spec.containers.flatMap((container) => {
    const token = workload.template.spec.automountServiceAccountToken;
    const named = (port: string | number | undefined): boolean => container.ports.some(({ name, containerPort }) => name === port || containerPort === port);
    const probes = [container.startupProbe, container.readinessProbe, container.livenessProbe];
    return [
      ...(container.securityContext?.readOnlyRootFilesystem === true ? [] : ["the root file system can be written to"]),
      ...(container.resources.requests["cpu"] && container.resources.requests["memory"] && container.resources.limits["memory"] ? [] : ["no request for CPU and memory, or no limit of memory"]),
      ...(token === (workload.kind === "Job") ? [] : ["a service account token, which only the setup Job needs"]),
      ...(workload.kind === "Job" || probes.every((probe) => probe !== undefined) ? [] : ["a start, ready or live probe is missing"]),
      ...probes.filter((probe) => probe?.httpGet !== undefined && !named(probe.httpGet.port)).map((probe) => `a probe asks port ${String(probe?.httpGet?.port)}, which it does not have`),
    ].map((problem) => `${at(workload)}: ${problem}`);
  }));
}

/** A Job's template cannot be changed: one that stays would refuse the apply of the next version. */
function jobs(objects: readonly Manifest[]): string[] {
  return ofKind(objects, "Job").filter((object) => (object["spec"] as { ttlSecondsAfterFinished?: number }).ttlSecondsAfterFinished === undefined).map((object) => `${where(object)}: stays when it has ended (no ttlSecondsAfterFinished), and refuses every later apply with another image`);
}

/** Lag is measured where the component reads. */
function scaling(objects: readonly Manifest[]): string[] {
  const problems: string[] = [];
  for (const object of ofKind(objects, "ScaledObject")) {
    const { scaleTargetRef, triggers } = z.object({ scaleTargetRef: z.object({ name: z.string() }), triggers: z.array(z.object({ type: z.string(), metadata: z.record(z.string(), z.string()) })) }).parse(object["spec"]);
    for (const { metadata } of triggers.filter(({ type }) => type === "kafka")) {
      const channel = Object.values<Channel>(CHANNELS).find(({ topic }) => topic === metadata["topic"]);
      const component = ofKind(objects, "Component", object.metadata.namespace).find(({ metadata: { name } }) => name === channel?.component);
      const group = component === undefined ? undefined : Component.parse(component).spec.metadata.find(({ name }) => name === "consumerGroup")?.value;
      if (group === undefined || group !== metadata["consumerGroup"] || channel?.subscribers.includes(scaleTargetRef.name as AppId) !== true) problems.push(`${where(object)}: the lag of group ${metadata["consumerGroup"] ?? "?"} on ${metadata["topic"] ?? "?"} says nothing about ${scaleTargetRef.name}`);
    }
    if (ofKind(objects, "Deployment", object.metadata.namespace).some((one) => one.metadata.name === scaleTargetRef.name && (one["spec"] as { replicas?: number }).replicas !== undefined)) problems.push(`${where(object)}: its Deployment has a number of replicas too, which each apply would set back`);
  }
  return problems;
}
