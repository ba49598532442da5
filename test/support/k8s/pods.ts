/** Owns: the pod that a controller would make of a workload's template. */
import type { Manifest, Workload } from "./manifests.js";

export interface Pod { readonly apiVersion: "v1"; readonly kind: "Pod"; readonly metadata: object; readonly spec: unknown }

/** The pod of a Deployment, StatefulSet or Job as it stands in `objects`, whole. */
export function podOf(workload: Workload, objects: readonly Manifest[], suffix = "0"): Pod {
  const object = objects.find(({ kind, metadata }) => kind === workload.kind && metadata.name === workload.name && metadata.namespace === workload.namespace);
  if (object === undefined) throw new Error(`there is no ${workload.kind} ${workload.name}`);
  const { template, volumeClaimTemplates = [] } = object["spec"] as { template: { metadata: object; spec: { volumes?: object[] } }; volumeClaimTemplates?: { metadata: { name: string } }[] };
  const claims = volumeClaimTemplates.map(({ metadata }) => ({ name: metadata.name, persistentVolumeClaim: { claimName: `${metadata.name}-${workload.name}-0` } }));
  const { spec } = structuredClone(template);
  return {
    apiVersion: "v1", kind: "Pod",
    metadata: { ...structuredClone(template.metadata), name: `${workload.name}-${suffix}`, namespace: workload.namespace },
    spec: claims.length === 0 ? spec : { ...spec, volumes: [...(spec.volumes ?? []), ...claims] },
  };
}
