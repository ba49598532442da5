/** Owns: how an app's own sidecar is, as the app can see it: whether it is healthy, and whether it has loaded what the app needs. */
import { z } from "zod";
import { CHANNELS, type AppId } from "../contracts/channels.js";
import type { AppCheck } from "../contracts/reports.js";
import { describeReply, type Sidecar } from "./sidecar.js";

const PROBE_MS = 2_500;

const Metadata = z.object({
  runtimeVersion: z.string().optional(), components: z.array(z.object({ name: z.string() })).nullish(), subscriptions: z.array(z.object({ topic: z.string() })).nullish(),
});

export interface SidecarFacts { readonly checks: AppCheck[]; readonly runtime?: string; readonly components?: string[]; readonly subscriptions?: string[] }

/** `stores`: state components that the app needs. Never throws: what cannot be asked is a finding. */
export async function checkSidecar(sidecar: Sidecar, app: AppId, stores: readonly string[]): Promise<SidecarFacts> {
  try {
    const health = await sidecar.call("GET", "/v1.0/healthz/outbound", { timeoutMs: PROBE_MS });
    if (health.status >= 300) return { checks: [sick(describeReply(health))] };
    const reply = await sidecar.call("GET", "/v1.0/metadata", { timeoutMs: PROBE_MS });
    const healthy: AppCheck = { name: "sidecar", status: "ok", detail: "healthy", fix: "" };
    // A sidecar may be closed to such questions (`api.allowed`).
    if (reply.status !== 200) return { checks: [healthy] };
    const { runtimeVersion, components, subscriptions } = Metadata.parse(JSON.parse(reply.text));
    const loaded = (components ?? []).map(({ name }) => name).sort();
    const taken = [...new Set((subscriptions ?? []).map(({ topic }) => topic))].sort();
    const channels = Object.values(CHANNELS).filter(({ publishers, subscribers }) => [...publishers, ...subscribers].some((name) => name === app));
    const topics = channels.filter(({ subscribers }) => subscribers.some((name) => name === app)).map(({ topic }) => topic as string);
    return {
      checks: [healthy, whole("components", [...channels.map(({ component }) => component), ...stores], loaded, "Look at daprd's log: a component that does not start says why there; docket doctor checks the files."),
        whole("subscriptions", topics, taken, "The sidecar asks the app at GET /dapr/subscribe when it starts: restart the app with its sidecar.")],
      ...(runtimeVersion === undefined ? {} : { runtime: runtimeVersion }), components: loaded, subscriptions: taken,
    };
  } catch (error) {
    return { checks: [sick(error instanceof Error ? error.message : String(error))] };
  }
}

function sick(detail: string): AppCheck { return { name: "sidecar", status: "fail", detail: detail.slice(0, 500), fix: "daprd is down or cannot reach the broker: docket doctor names it, and daprd's log says why." }; }

function whole(name: string, wanted: readonly string[], found: readonly string[], fix: string): AppCheck {
  const missing = wanted.filter((one) => !found.includes(one));
  return missing.length === 0 ? { name, status: "ok", detail: `${String(wanted.length)} there`, fix: "" } : { name, status: "fail", detail: `missing: ${missing.join(", ")}`.slice(0, 500), fix };
}
