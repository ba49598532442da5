/** Owns: what an overlay of k8s/ comes to, as objects, and how to find one's way in them. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { locateKustomize } from "../../../src/launcher/runtime/locate.js";
import { REPO_ROOT } from "../cluster.js";

const run = promisify(execFile);

export const OVERLAYS = ["dev", "production"] as const;
export type Overlay = (typeof OVERLAYS)[number];
export const NAMESPACE = "docket";
export const TOOLS_NAMESPACE = "docket-tools";

const labels = z.record(z.string(), z.string());
/** Any object; what the checks look into is read by narrower schemas. */
const Manifest = z.looseObject({
  apiVersion: z.string(), kind: z.string(),
  metadata: z.looseObject({ name: z.string(), namespace: z.string().optional(), labels: labels.default({}), annotations: labels.default({}) }),
});
export type Manifest = z.infer<typeof Manifest>;

/** Builds an overlay (or any other folder of k8s/) as `kubectl apply -k` would. */
export async function render(overlay: Overlay): Promise<Manifest[]> {
  const kustomize = await locateKustomize({ root: REPO_ROOT, report: (line) => process.stderr.write(`[kustomize] ${line}\n`) });
  const { stdout } = await run(kustomize, ["build", join(REPO_ROOT, "k8s", "overlays", overlay)], { maxBuffer: 64 * 1024 * 1024 });
  return parseManifests(stdout);
}

/** Reads a stream of documents. */
export function parseManifests(text: string): Manifest[] {
  return parseAllDocuments(text).map((document) => document.toJS() as unknown).filter((value) => value !== null).map((value) => Manifest.parse(value));
}

const keyRef = z.object({ name: z.string(), key: z.string(), optional: z.boolean().optional() });
const probe = z.looseObject({ httpGet: z.object({ path: z.string(), port: z.union([z.string(), z.number()]) }).optional() });
const Container = z.looseObject({
  name: z.string(), image: z.string(), args: z.array(z.string()).default([]),
  env: z.array(z.looseObject({ name: z.string(), value: z.string().optional(), valueFrom: z.looseObject({ secretKeyRef: keyRef.optional() }).optional() })).default([]),
  envFrom: z.array(z.object({ secretRef: z.object({ name: z.string(), optional: z.boolean().optional() }) })).default([]),
  ports: z.array(z.object({ name: z.string(), containerPort: z.number() })).default([]),
  startupProbe: probe.optional(), readinessProbe: probe.optional(), livenessProbe: probe.optional(),
  lifecycle: z.object({ preStop: z.object({ sleep: z.object({ seconds: z.number() }) }) }).optional(),
  resources: z.object({ requests: labels.default({}), limits: labels.default({}) }).default({ requests: {}, limits: {} }),
  securityContext: z.looseObject({ readOnlyRootFilesystem: z.boolean().optional() }).optional(),
});
export type Container = z.infer<typeof Container>;
const projected = z.object({ sources: z.array(z.object({ configMap: z.object({ name: z.string() }).optional(), secret: z.object({ name: z.string() }).optional() })) });
const PodTemplate = z.object({
  metadata: z.object({ labels, annotations: labels.default({}) }),
  spec: z.looseObject({
    serviceAccountName: z.string().optional(), automountServiceAccountToken: z.boolean().optional(), runtimeClassName: z.string().optional(),
    terminationGracePeriodSeconds: z.number().default(30),
    topologySpreadConstraints: z.array(z.looseObject({ labelSelector: z.object({ matchLabels: labels }) })).default([]),
    containers: z.array(Container),
    volumes: z.array(z.looseObject({ name: z.string(), projected: projected.optional(), configMap: z.object({ name: z.string() }).optional(), secret: z.object({ secretName: z.string() }).optional() })).default([]),
  }),
});

/** What makes pods: a Deployment, StatefulSet or Job. */
export interface Workload {
  readonly kind: string;
  readonly name: string;
  readonly namespace: string;
  readonly template: z.infer<typeof PodTemplate>;
}

export function workloadsIn(objects: readonly Manifest[]): Workload[] {
  return objects.filter(({ kind }) => ["Deployment", "StatefulSet", "Job"].includes(kind)).map((object) => ({
    kind: object.kind, name: object.metadata.name, namespace: object.metadata.namespace ?? "",
    template: z.object({ template: PodTemplate }).parse(object["spec"]).template,
  }));
}

/** The Deployments with a sidecar. */
export function appsIn(objects: readonly Manifest[]): Workload[] {
  return workloadsIn(objects).filter(({ template }) => template.metadata.annotations["dapr.io/enabled"] === "true");
}

/** The container that is named like its workload. */
export function mainContainer(workload: Workload): Container {
  const found = workload.template.spec.containers.find(({ name }) => name === workload.name);
  if (found === undefined) throw new Error(`${workload.kind} ${workload.name} has no container of its name`);
  return found;
}

/** Objects of one kind, optionally of one namespace. */
export function ofKind(objects: readonly Manifest[], kind: string, namespace?: string): Manifest[] {
  return objects.filter((object) => object.kind === kind && (namespace === undefined || object.metadata.namespace === namespace));
}

/** Says in words what is wrong with an overlay. */
export type Check = (objects: readonly Manifest[], overlay: Overlay) => string[];

/** Names an object in a problem. */
export const where = (object: Manifest): string => `${object.kind} ${object.metadata.namespace ?? ""}/${object.metadata.name}`;
/** Names a workload in a problem. */
export const at = (workload: Workload): string => `${workload.kind} ${workload.namespace}/${workload.name}`;

/** Equal but for the order of keys. */
export const same = (left: unknown, right: unknown): boolean => JSON.stringify(sorted(left)) === JSON.stringify(sorted(right));

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, inner]) => [key, sorted(inner)]));
}
