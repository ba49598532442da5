/**
 * Owns: Dapr's real sentry, operator and injector on a test cluster, with what its Helm chart would have made around them: service accounts, the
 * pods that their identities are bound to, the trust bundle, the webhook. They run as processes of this machine.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../cluster.js";
import { freePort, type TestCluster } from "./control-plane.js";

const NAMESPACE = "dapr-system";
const TRUST_DOMAIN = "cluster.local";
/** Whom tokens for sentry are for. */
export const SENTRY_AUDIENCE = `spiffe://${TRUST_DOMAIN}/ns/${NAMESPACE}/dapr-sentry`;

export interface DaprControlPlane {
  /** The certificate authority, as every sidecar gets it. */
  readonly trustAnchors: string;
  /** Starts the injector anew, with other settings than its chart's. */
  restartInjector(env: Readonly<Record<string, string>>): Promise<void>;
}

export interface InjectorSettings {
  /** The chart's `sidecarDropALLCapabilities`. */
  readonly dropAllCapabilities: boolean;
}

/** Starts all three and waits until pods are injected. */
export async function startDapr(cluster: TestCluster, settings: InjectorSettings): Promise<DaprControlPlane> {
  await cluster.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
  const sentryPort = await freePort();
  const sentryAddress = `localhost:${String(sentryPort)}`;
  for (const kind of ["Secret", "ConfigMap"]) await cluster.create({ apiVersion: "v1", kind, metadata: { name: "dapr-trust-bundle", namespace: NAMESPACE } });
  await cluster.create({ apiVersion: "dapr.io/v1alpha1", kind: "Configuration", metadata: { name: "daprsystem", namespace: NAMESPACE }, spec: { mtls: { enabled: true, workloadCertTTL: "24h", allowedClockSkew: "15m", controlPlaneTrustDomain: TRUST_DOMAIN, sentryAddress } } });
  await cluster.create({
    apiVersion: "apps/v1", kind: "StatefulSet", metadata: { name: "dapr-scheduler-server", namespace: NAMESPACE },
    spec: { replicas: 1, serviceName: "dapr-scheduler-server", selector: { matchLabels: { app: "dapr-scheduler-server" } }, template: { metadata: { labels: { app: "dapr-scheduler-server" } }, spec: { containers: [{ name: "scheduler", image: "scheduler:0" }] } } },
  });
  const env = { NAMESPACE, KUBECONFIG: cluster.kubeconfig, KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: new URL(cluster.url).port };

  cluster.start("sentry", cluster.binaries.sentry, ["--port", String(sentryPort), "--listen-address", "127.0.0.1", "--healthz-port", String(await freePort()), "--healthz-listen-address", "127.0.0.1", "--enable-metrics=false", "--trust-domain", TRUST_DOMAIN, "--issuer-credentials", credentials(cluster), "--kubeconfig", cluster.kubeconfig, "--log-level", "debug"], env);
  const trustAnchors = await eventually("sentry writes its trust bundle", async () => {
    const bundle = await cluster.get("configmap", "dapr-trust-bundle", NAMESPACE);
    return (bundle["data"] as Record<string, string> | undefined)?.["ca.crt"];
  }, 30_000).catch((error: unknown) => { throw new Error(cluster.logs("sentry"), { cause: error }); });
  const trustFile = join(cluster.dir, "ca.crt");
  writeFileSync(trustFile, trustAnchors);

  const operatorToken = await identity(cluster, "operator", "dapr-operator");
  startWithToken(cluster, "operator", operatorToken, cluster.binaries.operator, [
    "--trust-anchors-file", trustFile, "--port", String(await freePort()), "--healthz-port", String(await freePort()), "--webhook-server-port", String(await freePort()),
    "--enable-metrics=false", "--disable-leader-election", "--kubeconfig", cluster.kubeconfig, "--log-level", "debug",
  ], env);

  const injectorToken = await identity(cluster, "injector", "dapr-injector");
  const port = await freePort();
  let starts = 0;
  const startInjector = async (more: Readonly<Record<string, string>>): Promise<void> => {
    starts += 1;
    const healthz = await freePort();
    startWithToken(cluster, `injector-${String(starts)}`, injectorToken, cluster.binaries.injector, ["--port", String(port), "--healthz-port", String(healthz), "--enable-metrics=false", "--kubeconfig", cluster.kubeconfig, "--log-level", "debug"], {
      ...env, SIDECAR_IMAGE: "daprio/daprd:1.14.0", SIDECAR_IMAGE_PULL_POLICY: "IfNotPresent", KUBE_CLUSTER_DOMAIN: "cluster.local", SIDECAR_RUN_AS_NON_ROOT: "true", SIDECAR_READ_ONLY_ROOT_FILESYSTEM: "true",
      DAPR_TRUST_ANCHORS_FILE: trustFile, DAPR_CONTROL_PLANE_TRUST_DOMAIN: TRUST_DOMAIN, DAPR_SENTRY_ADDRESS: sentryAddress, ...more,
    });
    await eventually("the injector is ready", async () => ((await fetch(`http://127.0.0.1:${String(healthz)}/healthz`)).ok ? true : undefined), 30_000)
      .catch((error: unknown) => { throw new Error(cluster.logs(`injector-${String(starts)}`), { cause: error }); });
  };
  // The API server reaches the webhook by the name that the injector's certificate has.
  await cluster.create({ apiVersion: "v1", kind: "Service", metadata: { name: "dapr-sidecar-injector", namespace: NAMESPACE }, spec: { type: "ExternalName", externalName: "localhost", ports: [{ port }] } });
  await cluster.create({
    apiVersion: "admissionregistration.k8s.io/v1", kind: "MutatingWebhookConfiguration", metadata: { name: "dapr-sidecar-injector" },
    webhooks: [{
      name: "sidecar-injector.dapr.io", reinvocationPolicy: "IfNeeded", failurePolicy: "Fail", sideEffects: "None", admissionReviewVersions: ["v1", "v1beta1"],
      clientConfig: { caBundle: Buffer.from(trustAnchors).toString("base64"), service: { namespace: NAMESPACE, name: "dapr-sidecar-injector", path: "/mutate", port } },
      namespaceSelector: { matchExpressions: [{ key: "kubernetes.io/metadata.name", operator: "NotIn", values: [NAMESPACE] }] },
      rules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"] }],
    }],
  });
  await startInjector({ SIDECAR_DROP_ALL_CAPABILITIES: String(settings.dropAllCapabilities) });
  return {
    trustAnchors,
    restartInjector: async (more) => {
      cluster.stop(`injector-${String(starts)}`);
      await startInjector(more);
    },
  };
}

/** The pod that a control plane service's identity is bound to, and a token of it for sentry. */
async function identity(cluster: TestCluster, service: string, account: string): Promise<string> {
  await cluster.create({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: account, namespace: NAMESPACE } });
  await cluster.create({
    apiVersion: "v1", kind: "Pod", metadata: { name: account, namespace: NAMESPACE, annotations: { "dapr.io/control-plane": service } },
    spec: { serviceAccountName: account, automountServiceAccountToken: false, containers: [{ name: service, image: `${service}:0` }] },
  });
  const token = (await cluster.kubectl(["create", "token", account, "-n", NAMESPACE, "--audience", SENTRY_AUDIENCE, "--bound-object-kind", "Pod", "--bound-object-name", account])).trim();
  const file = join(cluster.dir, `${service}.token`);
  writeFileSync(file, token, { mode: 0o600 });
  return file;
}

/** Dapr reads its token from one fixed path: the process gets a /run of its own that has it. */
function startWithToken(cluster: TestCluster, name: string, tokenFile: string, command: string, args: readonly string[], env: Readonly<Record<string, string>>): void {
  const script = 'mount -t tmpfs tmpfs /run && mkdir -p /run/secrets/dapr.io/sentrytoken && cat "$1" > /run/secrets/dapr.io/sentrytoken/token && shift && exec "$@"';
  const asRoot = process.getuid?.() === 0 ? [] : ["--map-root-user"];
  cluster.start(name, "unshare", ["--mount", ...asRoot, "sh", "-c", script, "sh", tokenFile, command, ...args], env);
}

function credentials(cluster: TestCluster): string {
  const dir = join(cluster.dir, "credentials");
  mkdirSync(dir, { recursive: true });
  return dir;
}
