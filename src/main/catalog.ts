/** Owns: reading what is installed: agents, tool manifests, policy, models. Composition only; all faults end the boot. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { loadAgents, loadKeptVersions, loadManifests } from "../agent/loader.js";
import type { RateLedger } from "../model/limits.js";
import { createModels, type Models } from "../model/registry.js";
import { loadScripts } from "../model/script-folder.js";
import type { Config } from "../platform/config.js";
import type { Logger } from "../platform/log.js";
import { compilePolicy, type PolicyText } from "../session/core/policy/compile.js";
import type { Catalog } from "../session/host/agents.js";

/** Model for agents that name none. */
export function defaultModelOf(config: Config): string {
  return config.defaultModel ?? (config.anthropicApiKey === undefined ? "scripted:assistant" : "anthropic:claude-sonnet-5-5");
}

/** Policy files of a folder, in name order. */
export function readPolicies(dir: string): PolicyText[] {
  return readdirSync(dir).filter((name) => /\.ya?ml$/.test(name)).sort().map((file) => ({ file, text: readFileSync(join(dir, file), "utf8") }));
}

/** Agents by name, manifests by tool, compiled policy. Throws Problem `config_invalid`. */
export async function loadCatalog(config: Config): Promise<Catalog> {
  const agents = await loadAgents(config.agentsDir);
  const { tools } = loadManifests(join(config.agentsDir, "manifests.json"));
  const names = new Map(agents.map((agent) => [agent.name, agent]));
  return {
    agents: names,
    kept: await loadKeptVersions(config.agentsDir, agents),
    manifests: new Map(tools.map((tool) => [tool.name, tool])),
    policy: compilePolicy(readPolicies(config.policiesDir)),
    defaultModel: defaultModelOf(config),
    defaultAgent: names.has(config.defaultAgent) ? config.defaultAgent : undefined,
  };
}

/** Providers, as configured. Every agent's model must lead somewhere, or the boot fails. */
export function loadModels(config: Config, catalog: Catalog, options: { logger: Logger; ledger?: RateLedger }): Models {
  const models = createModels({
    scripted: { scripts: loadScripts(config.scriptsDir), ...(config.modelCallLog === undefined ? {} : { callLog: config.modelCallLog }) },
    ...(config.anthropicApiKey === undefined ? {} : { anthropic: { apiKey: config.anthropicApiKey, ...(config.anthropicBaseUrl === undefined ? {} : { baseUrl: config.anthropicBaseUrl }) } }),
    ...(config.openaiBaseUrl === undefined ? {} : { openai: { baseUrl: config.openaiBaseUrl, ...(config.openaiApiKey === undefined ? {} : { apiKey: config.openaiApiKey }) } }),
    ...(config.modelServers === undefined ? {} : { servers: Object.fromEntries(Object.entries(config.modelServers).map(([name, { baseUrl, apiKey }]) => [name, { baseUrl, ...(apiKey === undefined ? {} : { apiKey }) }])) }),
    ...(config.modelPrices === undefined ? {} : { prices: config.modelPrices }),
    ...(options.ledger === undefined ? {} : { ledger: options.ledger }),
    onWarning: (message) => { options.logger.warn(message); },
  });
  for (const agent of [...catalog.agents.values(), ...catalog.kept ?? []]) models.resolve(agent.model ?? catalog.defaultModel);
  return models;
}
