/** What Dapr's real injector makes of the pods of both overlays, with sentry and operator behind it and pod security `restricted` enforced. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { APPS } from "../../src/contracts/channels.js";
import { eventually, REPO_ROOT } from "../support/cluster.js";
import { installCrds, startCluster, type TestCluster } from "../support/k8s/control-plane.js";
import { SENTRY_AUDIENCE, startDapr, type DaprControlPlane } from "../support/k8s/dapr.js";
import { NAMESPACE, OVERLAYS, parseManifests, TOOLS_NAMESPACE, workloadsIn, type Manifest, type Overlay } from "../support/k8s/manifests.js";
import { podOf } from "../support/k8s/pods.js";

interface InjectedContainer {
  name: string; args: string[]; env: { name: string; value?: string; valueFrom?: { secretKeyRef?: { name: string; key: string } } }[];
  volumeMounts: { name: string; mountPath: string; readOnly?: boolean }[]; securityContext: Record<string, unknown>;
  readinessProbe: { httpGet: { path: string; port: number } }; livenessProbe: { httpGet: { path: string; port: number } };
  resources: { requests: Record<string, string>; limits: Record<string, string> };
}
interface InjectedPod { containers: InjectedContainer[]; volumes: { name: string; projected?: { sources: { serviceAccountToken?: { audience: string; path: string } }[] } }[]; terminationGracePeriodSeconds: number; serviceAccountName: string; runtimeClassName?: string; automountServiceAccountToken: boolean }

let cluster: TestCluster;
let dapr: DaprControlPlane;
const objectsOf = new Map<Overlay, Manifest[]>();

beforeAll(async () => {
  cluster = await startCluster();
  await installCrds(cluster);
  await cluster.create({ apiVersion: "node.k8s.io/v1", kind: "RuntimeClass", metadata: { name: "gvisor" }, handler: "runsc" });
  dapr = await startDapr(cluster, { dropAllCapabilities: true });
  for (const overlay of OVERLAYS) {
    objectsOf.set(overlay, parseManifests(await cluster.kubectl(["kustomize", `${REPO_ROOT}/k8s/overlays/${overlay}`])));
    await cluster.kubectl(["apply", "--server-side", "--force-conflicts", "-k", `${REPO_ROOT}/k8s/overlays/${overlay}`]);
  }
});
afterAll(async () => { await cluster.close(); });

async function injected(overlay: Overlay, app: string): Promise<InjectedPod> {
  const objects = objectsOf.get(overlay)!;
  const pod = await cluster.create(podOf(workloadsIn(objects).find(({ name }) => name === app)!, objects, overlay));
  return pod["spec"] as InjectedPod;
}

const flag = ({ args }: InjectedContainer, name: string): string | undefined => args[args.indexOf(name) + 1];

describe.each(OVERLAYS.flatMap((overlay) => APPS.map((app) => ({ overlay, app }))))("the pod of $app in $overlay", ({ overlay, app }) => {
  let pod: InjectedPod;
  let own: InjectedContainer;
  let daprd: InjectedContainer;

  it("is taken by `restricted`, with a sidecar beside the app", async () => {
    pod = await injected(overlay, app);
    expect(pod.containers.map(({ name }) => name)).toEqual([app, "daprd"]);
    [own, daprd] = pod.containers as [InjectedContainer, InjectedContainer];
  });

  it("has a sidecar that is this app's, with its Configuration, its port and mutual TLS", () => {
    const { spec } = workloadsIn(objectsOf.get(overlay)!).find(({ name }) => name === app)!.template;
    const port = spec.containers[0]!.env.find(({ name }) => name === "APP_PORT")!.value;
    expect([flag(daprd, "--app-id"), flag(daprd, "--config"), flag(daprd, "--app-port"), flag(daprd, "--mode")]).toEqual([app, app, port, "kubernetes"]);
    expect(daprd.args).toContain("--enable-mtls");
    expect(daprd.env.find(({ name }) => name === "DAPR_TRUST_ANCHORS")?.value).toBe(dapr.trustAnchors);
    expect(daprd.env.find(({ name }) => name === "NAMESPACE")?.value).toBe(app === "tools" ? TOOLS_NAMESPACE : NAMESPACE);
  });

  it("has a sidecar that listens on loopback, asks for a token, and shows one", () => {
    expect(flag(daprd, "--dapr-listen-addresses")).toBe("[::1],127.0.0.1");
    const reference = (container: InjectedContainer, variable: string): unknown => container.env.find(({ name }) => name === variable)?.valueFrom?.secretKeyRef;
    for (const container of [own, daprd]) {
      expect(reference(container, "DAPR_API_TOKEN")).toEqual({ name: `${app}-dapr-api-token`, key: "token" });
      expect(reference(container, "APP_API_TOKEN")).toEqual({ name: `${app}-app-api-token`, key: "token" });
    }
    expect(own.env.find(({ name }) => name === "DAPR_HTTP_PORT")?.value).toBe("3500");
  });

  it("gives the identity token to the sidecar alone, for sentry alone, and no token of the API server to anybody", () => {
    expect(pod.automountServiceAccountToken).toBe(false);
    const tokens = pod.volumes.flatMap(({ name, projected }) => (projected?.sources ?? []).flatMap(({ serviceAccountToken }) => (serviceAccountToken === undefined ? [] : [{ name, audience: serviceAccountToken.audience }])));
    expect(tokens).toEqual([{ name: "dapr-identity-token", audience: SENTRY_AUDIENCE }]);
    expect(daprd.volumeMounts.find(({ name }) => name === "dapr-identity-token")).toMatchObject({ readOnly: true });
    expect(own.volumeMounts.map(({ name }) => name)).toEqual(["keys", "data", "tmp"]);
  });

  it("has a sidecar without rights: own secret store off, no capability, read-only root, seccomp", () => {
    expect(daprd.args).toContain("--disable-builtin-k8s-secret-store");
    expect(daprd.securityContext).toMatchObject({ allowPrivilegeEscalation: false, runAsNonRoot: true, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] }, seccompProfile: { type: "RuntimeDefault" } });
    expect(daprd.resources.limits).toMatchObject({ memory: "512Mi" });
    expect(daprd.resources.requests).toMatchObject({ cpu: "100m", memory: "128Mi" });
  });

  it("has a sidecar that watches the app patiently, and that the kubelet watches", () => {
    expect(daprd.args).toContain("--enable-app-health-check");
    expect(["path", "probe-interval", "probe-timeout", "threshold"].map((name) => flag(daprd, name === "path" ? "--app-health-check-path" : `--app-health-${name}`))).toEqual(["/healthz", "2", "1900", "5"]);
    for (const probe of [daprd.readinessProbe, daprd.livenessProbe]) expect(probe.httpGet).toMatchObject({ path: "/v1.0/healthz", port: 3501 });
    expect(flag(daprd, "--dapr-public-port")).toBe("3501");
  });

  it("has a sidecar that outlives the app, within the kubelet's patience", () => {
    expect([flag(daprd, "--dapr-block-shutdown-duration"), flag(daprd, "--dapr-graceful-shutdown-seconds"), pod.terminationGracePeriodSeconds]).toEqual(["40s", "10", 60]);
  });

  it("finds placement by two spellings where it has actors, and is sandboxed where it runs tools", () => {
    const addresses = flag(daprd, "--placement-host-address")!.split(",");
    if (app !== "tools") expect(addresses).toEqual(["dapr-placement-server.dapr-system.svc.cluster.local:50005", "dapr-placement-server.dapr-system.svc:50005"]);
    expect(pod.runtimeClassName).toBe(app === "tools" && overlay === "production" ? "gvisor" : undefined);
  });
});

describe("the control plane", () => {
  it("leaves pods alone that ask for no sidecar", async () => {
    for (const name of ["nats", "postgres", "setup"]) expect((await injected("dev", name)).containers.map((container) => container.name)).toEqual([name]);
  });

  it("makes a service for each app, by the operator, so that sidecars find each other", async () => {
    for (const app of APPS) {
      const service = await eventually(`the service of ${app}`, () => cluster.get("service", `${app}-dapr`, app === "tools" ? TOOLS_NAMESPACE : NAMESPACE), 30_000)
        .catch((error: unknown) => { throw new Error(cluster.logs("operator"), { cause: error }); });
      expect((service["spec"] as { selector: Record<string, string> }).selector).toEqual({ "app.kubernetes.io/name": app });
    }
  });

  it("would have every pod refused, were the sidecars not told to drop capabilities: docs/kubernetes.md says so", async () => {
    await dapr.restartInjector({ SIDECAR_DROP_ALL_CAPABILITIES: "false" });
    const objects = objectsOf.get("production")!;
    await expect(cluster.create(podOf(workloadsIn(objects).find(({ name }) => name === "gateway")!, objects, "loose"))).rejects.toThrow(/unrestricted capabilities \(container "daprd" must set securityContext.capabilities.drop=\["ALL"\]\)/);
  });
});
