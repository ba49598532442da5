/** Owns: the two calls to a Kubernetes API server that a setup needs: make an object where it is missing, and read one back. */
import { z } from "zod";
import { LauncherError } from "../errors.js";
import type { ClusterObject } from "./secrets.js";

export interface ClusterApi {
  /** False when an object of that name was there already: it stays as it is. */
  create(object: ClusterObject): Promise<boolean>;
  /** The data of a Secret, decoded; undefined when there is none. */
  secret(namespace: string, name: string): Promise<Readonly<Record<string, string>> | undefined>;
}

const SecretReply = z.object({ data: z.record(z.string(), z.string()).default({}) });

/** A client that shows `token` to the server at `url`. Its certificate authority comes from NODE_EXTRA_CA_CERTS. */
export function clusterApi(url: string, token: string): ClusterApi {
  const call = async (method: string, path: string, body?: object): Promise<Response> => {
    const reply = await fetch(`${url}${path}`, {
      method, headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }), signal: AbortSignal.timeout(10_000),
    });
    if (reply.ok || reply.status === 404 || reply.status === 409) return reply;
    throw new LauncherError("CLUSTER_REFUSED", `The API server answered ${String(reply.status)} to ${method} ${path}: ${await messageIn(reply)}`, "The ServiceAccount needs the Roles of k8s/overlays/dev: apply the whole overlay.");
  };
  return {
    async create(object) {
      const reply = await call("POST", pathOf(object.kind, object.namespace), manifestOf(object));
      if (reply.status === 404) throw new LauncherError("CLUSTER_REFUSED", `There is no namespace ${object.namespace} for ${object.kind} ${object.name}.`, "Apply the whole overlay: it makes the namespaces.");
      return reply.status !== 409;
    },
    async secret(namespace, name) {
      const reply = await call("GET", `${pathOf("Secret", namespace)}/${name}`);
      if (reply.status === 404) return undefined;
      const { data } = SecretReply.parse(await reply.json());
      return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString("utf8")]));
    },
  };
}

function manifestOf({ kind, namespace, name, data }: ClusterObject): object {
  return {
    apiVersion: "v1", kind, metadata: { name, namespace, labels: { "app.kubernetes.io/part-of": "docket" } },
    ...(kind === "Secret" ? { type: "Opaque", stringData: data } : { data }),
  };
}

function pathOf(kind: ClusterObject["kind"], namespace: string): string {
  return `/api/v1/namespaces/${namespace}/${kind === "Secret" ? "secrets" : "configmaps"}`;
}

async function messageIn(reply: Response): Promise<string> {
  const parsed = z.object({ message: z.string() }).safeParse(await reply.json().catch(() => undefined));
  return parsed.success ? parsed.data.message : reply.statusText;
}
