/** Both overlays on a real API server: server-side validation, Dapr's and KEDA's own CRDs, pod security `restricted` enforced. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { installCrds, startCluster, type TestCluster } from "../support/k8s/control-plane.js";
import { manifestProblems } from "../support/k8s/checks.js";
import { NAMESPACE, OVERLAYS, parseManifests, TOOLS_NAMESPACE, workloadsIn, type Manifest, type Overlay } from "../support/k8s/manifests.js";
import { podOf } from "../support/k8s/pods.js";
import { REPO_ROOT } from "../support/cluster.js";

/** The lines of a block of commands: the one after the marker `<!-- shell: name -->`. */
function shell(page: string, name: string): string[] {
  const block = new RegExp(`<!-- shell: ${name} -->\\s+\`\`\`sh\\n([^]*?)\`\`\``).exec(readFileSync(join(REPO_ROOT, page), "utf8"))?.[1];
  if (block === undefined) throw new Error(`${page} has no block "${name}"`);
  return block.trim().split("\n").map((line) => line.trim());
}

describe.each([...OVERLAYS])("the overlay %s", (overlay: Overlay) => {
  let cluster: TestCluster;
  let applied: Manifest[];

  beforeAll(async () => {
    cluster = await startCluster();
    await installCrds(cluster);
    if (overlay === "production") await cluster.create({ apiVersion: "node.k8s.io/v1", kind: "RuntimeClass", metadata: { name: "gvisor" }, handler: "runsc" });
    applied = parseManifests(await cluster.kubectl(["kustomize", `${REPO_ROOT}/k8s/overlays/${overlay}`]));
  });
  afterAll(async () => { await cluster.close(); });

  it("is applied whole, in one go, with no field that the server does not know", async () => {
    const said = await cluster.kubectl(["apply", "--server-side", "--validate=strict", "-k", `${REPO_ROOT}/k8s/overlays/${overlay}`]);
    expect(said.trim().split("\n").filter((line) => line.endsWith("serverside-applied"))).toHaveLength(applied.length);
  });

  it("is applied again without a change", async () => {
    const changes = await cluster.kubectl(["diff", "--server-side", "-k", `${REPO_ROOT}/k8s/overlays/${overlay}`]).catch((error: unknown) => (error as { stdout: string }).stdout);
    expect(changes).toBe("");
  });

  it("takes a new image one app at a time, readers first, by the commands of docs/kubernetes.md", async () => {
    const commands = shell("docs/kubernetes.md", "one at a time").map((line) => /kubectl (.*\$IMAGE) && kubectl (.*)/.exec(line)?.slice(1, 3) ?? [line, ""]);
    expect(commands.map(([, waits = ""]) => waits.split("/")[1])).toEqual(["console", "gateway", "tools", "sessions"]);
    for (const [sets = ""] of commands) expect(await cluster.kubectl([...sets.replace("$IMAGE", "images.example.com/docket:0.2.0").split(" "), "--dry-run=server"])).toContain("image updated (server dry run)");
  });

  it.runIf(overlay === "production")("is stopped and started for a restore by the commands of docs/backup.md, all of it, with no fewer replicas than it had", async () => {
    const commands = [...shell("docs/backup.md", "cluster stop"), ...shell("docs/backup.md", "cluster start")];
    for (const app of ["gateway", "sessions", "console", "tools"]) expect(commands.filter((line) => line.includes(` ${app}`))).toHaveLength(2);
    for (const line of commands) expect(await cluster.kubectl([...line.replace(/^kubectl /, "").split(" "), "--dry-run=server"])).toMatch(/(annotated|scaled) \(server dry run\)/);
    const replicas = (app: string): string | undefined => new RegExp(`deployment ${app} --replicas=([1-9])`).exec(commands.join("\n"))?.[1];
    expect(replicas("sessions")).toBe(String((await cluster.get("horizontalpodautoscaler", "sessions", NAMESPACE) as unknown as { spec: { minReplicas: number } }).spec.minReplicas));
    expect(replicas("console")).toBe(String((await cluster.get("deployment", "console", NAMESPACE) as unknown as { spec: { replicas: number } }).spec.replicas));
  });

  it("is, by kubectl, what the static checks saw by kustomize", () => {
    expect(manifestProblems(applied, overlay)).toEqual([]);
  });

  it("makes pods that pod security `restricted` takes", async () => {
    for (const workload of workloadsIn(applied)) {
      const pod = await cluster.create(podOf(workload, applied));
      expect(pod.metadata.namespace).toBe(workload.namespace);
    }
  });

  it.each([NAMESPACE, TOOLS_NAMESPACE])("has a namespace %s that refuses a pod with one right too many", async (namespace) => {
    const workload = workloadsIn(applied).find((one) => one.namespace === namespace)!;
    const pod = podOf(workload, applied, "greedy");
    const [container] = (pod.spec as { containers: { securityContext: Record<string, unknown> }[] }).containers;
    container!.securityContext["allowPrivilegeEscalation"] = true;
    await expect(cluster.create(pod)).rejects.toThrow(/violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false/);
  });

  it("gives no app a right in the cluster", async () => {
    for (const app of ["gateway", "sessions", "console", "tools"]) {
      const namespace = app === "tools" ? TOOLS_NAMESPACE : NAMESPACE;
      const may = await cluster.kubectl(["auth", "can-i", "get", "secrets", "-n", namespace, "--as", `system:serviceaccount:${namespace}:${app}`]).catch((error: unknown) => (error as { stdout: string }).stdout);
      expect(may.trim()).toBe("no");
    }
  });
});
