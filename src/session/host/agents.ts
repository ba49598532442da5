/**
 * Owns: what the host knows of agents and tools: definitions, manifests, limits, policy. Tool code is not here (DESIGN 6).
 */
import type { AgentDefinition } from "../../agent/definition.js";
import type { ToolManifest } from "../../contracts/tools.js";
import type { AgentLimits } from "../core/command.js";
import type { Policy } from "../core/policy/policy.js";

export interface Catalog {
  readonly agents: ReadonlyMap<string, AgentDefinition>;
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

/** Limits of an agent; the defaults where it is not known here (an old session of a removed agent can still be read and cancelled). */
export function limitsOf(catalog: Catalog, agent: string): AgentLimits {
  const own = catalog.agents.get(agent)?.limits ?? {};
  const limits: AgentLimits = { ...DEFAULT_LIMITS, ...definedOnly(own) };
  return { ...limits, maxMailbox: Math.min(limits.maxMailbox, DEFAULT_LIMITS.maxMailbox) };
}

function definedOnly(limits: NonNullable<AgentDefinition["limits"]>): Partial<AgentLimits> {
  return Object.fromEntries(Object.entries(limits).filter(([, value]: [string, number | undefined]) => value !== undefined));
}
