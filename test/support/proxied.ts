/**
 * Owns: a Docket with a fault proxy on each side of its apps: `inbound` between sidecar and app (deliveries, actor calls, reminders),
 * `outbound` between app and sidecar (state, actors, reminders, publications).
 */
import { APPS } from "../../src/contracts/channels.js";
import { join } from "node:path";
import { chooseInstances, portWishes } from "../../src/launcher/plan.js";
import { choosePorts } from "../../src/launcher/ports.js";
import { readRunFile } from "../../src/launcher/run-file.js";
import { REPO_ROOT, type TestStackOptions } from "./cluster.js";
import { startDocket, type Docket } from "./docket.js";
import { FaultProxy, type ProxyRule } from "./fault-proxy.js";

export interface ProxiedDocket {
  readonly docket: Docket;
  /** By instance: `gateway`, `sessions`, `sessions-2`, … */
  readonly inbound: ReadonlyMap<string, FaultProxy>;
  readonly outbound: ReadonlyMap<string, FaultProxy>;
  /** Where an instance listens behind its proxy, and the headers that it wants. */
  behind(instance: string): { readonly port: number; readonly headers: Readonly<Record<string, string>> };
  /** Nothing is mistreated any more. Returns how often each rule had struck, in total. */
  calm(): number;
  close(): Promise<void>;
}

/** Starts it with two session hosts. */
export async function startProxiedDocket(options: TestStackOptions = {}): Promise<ProxiedDocket> {
  const instances = [...APPS, "sessions-2"];
  const stackPorts = portWishes(chooseInstances(readRunFile(join(REPO_ROOT, "dapr.yaml")), [], { sessions: 2 }));
  // Chosen together, so that none is taken twice.
  const ports = await choosePorts({ wishes: { ...stackPorts, ...Object.fromEntries(instances.flatMap((name) => [[`${name}.own`, undefined], [`${name}.out`, undefined]])) }, mode: "free", overrides: {} });
  const portOf = (name: string): number => ports[name] ?? 0;
  const inbound = new Map(instances.map((name) => [name, new FaultProxy({ targetPort: portOf(`${name}.own`), logPath: /\/method\/remind\// })]));
  const outbound = new Map(instances.map((name) => [name, new FaultProxy({ targetPort: portOf(`${name}.http`) })]));
  const proxies = [...inbound.values(), ...outbound.values()];
  const settings = Object.fromEntries(instances.map((name) => [name, { ...options.extraEnv?.[name], APP_PORT: String(portOf(`${name}.own`)), DAPR_HTTP_PORT: String(portOf(`${name}.out`)) }]));
  let listening: Promise<unknown> | undefined;
  const docket = await startDocket({
    ...options, sessionsReplicas: 2, portOverrides: Object.fromEntries(Object.keys(stackPorts).map((name) => [name, portOf(name)])), extraEnv: { ...options.extraEnv, ...settings },
    // The launcher has found its ports free by then, and no app runs yet.
    onReady: (label) => {
      if (label === "placement") listening ??= Promise.all([...[...inbound].map(([name, proxy]) => proxy.listen(portOf(`${name}.app`))), ...[...outbound].map(([name, proxy]) => proxy.listen(portOf(`${name}.out`)))]);
    },
  });
  await listening;
  return {
    docket, inbound, outbound,
    behind: (instance) => ({ port: portOf(`${instance}.own`), headers: { "dapr-api-token": docket.test.stack.envOf(instance)["APP_API_TOKEN"] ?? "" } }),
    calm: () => {
      const hits = proxies.reduce((sum, proxy) => sum + proxy.hits, 0);
      for (const proxy of proxies) proxy.set(undefined);
      return hits;
    },
    close: async () => {
      await docket.close();
      await Promise.all(proxies.map((proxy) => proxy.close()));
    },
  };
}

/** The same rule for several proxies. */
export function setAll(proxies: ReadonlyMap<string, FaultProxy>, instances: readonly string[], rule: ProxyRule): void {
  for (const name of instances) proxies.get(name)?.set(rule);
}
