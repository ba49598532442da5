/** Owns: what the console is told of the installation, and how it finds out whether the parts behind it answer. */
import { z } from "zod";
import type { Installed, Part } from "../console/ports.js";
import { callSession } from "../dapr/sessions-client.js";
import { describeReply, type Sidecar } from "../dapr/sidecar.js";
import { limitsOf, type Catalog } from "../session/host/agents.js";

const PROBE_MS = 2_500;
/** No session has this actor id: tenants start with a letter or digit. */
const NOBODY = "-console-probe";

/** Agents without code, tools, policy. */
export function installedFrom(catalog: Catalog): Installed {
  return {
    agents: [...catalog.agents.values()].map((agent) => ({
      name: agent.name, version: agent.version, description: agent.description, instructions: agent.instructions, model: agent.model ?? catalog.defaultModel,
      tools: agent.tools, triggers: agent.triggers.flatMap((trigger) => trigger.types), limits: { ...limitsOf(catalog, agent.name) },
    })),
    tools: [...catalog.manifests.values()], policy: catalog.policy,
  };
}

const Metadata = z.object({
  runtimeVersion: z.string().optional(), components: z.array(z.object({ name: z.string() })).default([]), subscriptions: z.array(z.object({ topic: z.string() })).nullish(),
});

/** The sidecar, what it has loaded, and a session host through it. */
export function partsBehind(sidecar: Sidecar): Part[] {
  return [
    { name: "sidecar", about: "the console's own daprd; everything else is reached through it", check: async () => {
      const reply = await sidecar.call("GET", "/v1.0/healthz/outbound", { timeoutMs: PROBE_MS });
      if (reply.status >= 300) throw new Error(describeReply(reply));
      return "healthy";
    } },
    { name: "channels", about: "pub/sub components and subscriptions that the sidecar has loaded", check: async () => {
      const reply = await sidecar.call("GET", "/v1.0/metadata", { timeoutMs: PROBE_MS });
      if (reply.status !== 200) throw new Error(describeReply(reply));
      const { runtimeVersion, components, subscriptions } = Metadata.parse(JSON.parse(reply.text));
      return `Dapr ${runtimeVersion ?? "(version unknown)"}: ${components.map((one) => one.name).sort().join(", ")}; subscribed to ${(subscriptions ?? []).map((one) => one.topic).sort().join(", ") || "nothing"}`;
    } },
    { name: "session host", about: "one real actor call, through placement", check: async () => {
      await callSession(sidecar, NOBODY, "readSession", {}, PROBE_MS);
      return "an actor answers";
    } },
  ];
}
