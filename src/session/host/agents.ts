/**
 * Owns: what the host knows of agents and tools: definitions, manifests, limits, policy. Tool code is not here (DESIGN 6).
 */
import type { AgentDefinition } from "../../agent/definition.js";
import type { ToolManifest } from "../../contracts/tools.js";
import type { AgentLimits } from "../core/command.js";
import type { Policy } from "../core/policy/policy.js";

export interface Catalog {
  readonly agents: ReadonlyMap<string, AgentDefinition>;
  /** Versions of them that are installed for sessions which keep theirs. */
  readonly kept?: readonly AgentDefinition[];
  readonly manifests: ReadonlyMap<string, ToolManifest>;
  readonly policy: Policy;
  readonly defaultModel: string;
  /** Agent that takes prompts which name none. */
  readonly defaultAgent: string | undefined;
}

/** Where an agent says nothing. Sizes keep the hot document below 64 KiB (I9). */
export const DEFAULT_LIMITS: AgentLimits = {
  maxSteps: 20,
  budgetUsd: 5,
  maxReflections: 3,
  maxMailbox: 256,
  runTimeoutMs: 7 * 24 * 3_600_000,
  approvalTtlMs: 24 * 3_600_000,
  windowRounds: 12,
  windowBytes: 200_000,
};

/** What a run goes on with: the version it began with where that is installed, else the one that is. */
export function definitionOf(catalog: Catalog, agent: string, version: string | undefined): AgentDefinition | undefined {
  return keptOf(catalog, agent, version) ?? catalog.agents.get(agent);
}

/** What a session's next run is done by, by the rule of the installed version (`sessions`). Undefined where its own is asked for and not installed here. */
export function nextDefinitionOf(catalog: Catalog, agent: string, version: string | undefined): AgentDefinition | undefined {
  const current = catalog.agents.get(agent);
  const stays = current?.sessions === "keep" && version !== undefined && version !== current.version;
  return stays ? keptOf(catalog, agent, version) : current;
}

function keptOf(catalog: Catalog, agent: string, version: string | undefined): AgentDefinition | undefined {
  return catalog.kept?.find((one) => one.name === agent && one.version === version);
}

/** Limits of an agent; the defaults where it is not known here (an old session of a removed agent can still be read and cancelled). */
export function limitsOf(catalog: Catalog, agent: string, version?: string): AgentLimits {
  const own = definitionOf(catalog, agent, version)?.limits ?? {};
  const limits: AgentLimits = { ...DEFAULT_LIMITS, ...definedOnly(own) };
  return { ...limits, maxMailbox: Math.min(limits.maxMailbox, DEFAULT_LIMITS.maxMailbox) };
}

function definedOnly(limits: NonNullable<AgentDefinition["limits"]>): Partial<AgentLimits> {
  return Object.fromEntries(Object.entries(limits).filter(([, value]: [string, number | undefined]) => value !== undefined));
}
