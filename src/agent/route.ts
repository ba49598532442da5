/**
 * Owns: which agent takes an event, and to which session it belongs. Pure, so that the gateway and the session host
 * come to the same answer.
 *
 * - An explicit `agent` attribute wins, and then `subject` is the session, because the sender addressed it.
 * - Otherwise the first agent with a matching trigger; the trigger's `session`, or `subject`, names the session.
 * - Docket's own types (prompts) never match a trigger: they go to the named or to the default agent.
 */
import type { Envelope } from "../contracts/cloudevent.js";
import { SessionId } from "../contracts/ids.js";
import { RESERVED_TYPE_PREFIX } from "../contracts/messages.js";
import { Problem } from "../contracts/problems.js";
import type { AgentDefinition, Trigger } from "./definition.js";
import { sessionOf, toAgentEvent } from "./event.js";
import { suggestion } from "../contracts/suggest.js";

export type Routed =
  | { readonly ok: true; readonly agent: AgentDefinition; readonly sessionId: string }
  | { readonly ok: false; readonly problem: Problem };

/** Never throws (I14). Problems: `agent_unknown`, `session_id_missing`. */
export function routeEvent(agents: readonly AgentDefinition[], envelope: Envelope, options: { readonly defaultAgent?: string | undefined } = {}): Routed {
  const found = findAgent(agents, envelope, options.defaultAgent);
  if (!found.ok) return found;
  const { agent, trigger } = found;
  const addressed = envelope.agent !== undefined || trigger?.session === undefined;
  if (addressed && envelope.subject !== undefined) return { ok: true, agent, sessionId: envelope.subject };
  if (trigger?.session === undefined) return missing(envelope, agent, "it has no subject", "set `subject` to the session id");
  return derive(agent, trigger, envelope);
}

/** Whether a trigger's pattern (exact, or with a trailing `*`) takes an event type. */
export function matchesType(pattern: string, type: string): boolean {
  return pattern.endsWith("*") ? type.startsWith(pattern.slice(0, -1)) : type === pattern;
}

type Found = { readonly ok: true; readonly agent: AgentDefinition; readonly trigger: Trigger | undefined } | { readonly ok: false; readonly problem: Problem };

function findAgent(agents: readonly AgentDefinition[], envelope: Envelope, defaultAgent: string | undefined): Found {
  const reserved = envelope.type.startsWith(RESERVED_TYPE_PREFIX);
  const name = envelope.agent ?? (reserved ? defaultAgent : undefined);
  if (name !== undefined) {
    const agent = agents.find((candidate) => candidate.name === name);
    if (agent === undefined) return unknownAgent(envelope, `no agent is named "${name}"${suggestion(name, agents.map((candidate) => candidate.name))}`);
    return { ok: true, agent, trigger: reserved ? undefined : triggerFor(agent, envelope.type) };
  }
  if (reserved) return unknownAgent(envelope, "a prompt needs an `agent`, or a default agent in the configuration");
  for (const agent of agents) {
    const trigger = triggerFor(agent, envelope.type);
    if (trigger !== undefined) return { ok: true, agent, trigger };
  }
  return unknownAgent(envelope, "no agent has a trigger for this type");
}

function triggerFor(agent: AgentDefinition, type: string): Trigger | undefined {
  return agent.triggers.find((trigger) => trigger.types.some((pattern) => matchesType(pattern, type)));
}

function derive(agent: AgentDefinition, trigger: Trigger, envelope: Envelope): Routed {
  let event;
  try {
    event = toAgentEvent(envelope);
  } catch (error) {
    return missing(envelope, agent, `its data is not readable: ${error instanceof Error ? error.message : String(error)}`, "send JSON data");
  }
  const answer = sessionOf(trigger, event);
  if (!answer.ok) return missing(envelope, agent, `the trigger's session function failed: ${answer.message}`, `see the triggers of agents/${agent.name}/agent.ts`);
  if (answer.value === undefined) return missing(envelope, agent, "the trigger's session function refused it", `see the triggers of agents/${agent.name}/agent.ts`);
  const sessionId = SessionId.safeParse(answer.value);
  if (sessionId.success) return { ok: true, agent, sessionId: sessionId.data };
  return missing(envelope, agent, `the trigger's session function gave an unusable id: ${sessionId.error.issues.map((issue) => issue.message).join("; ")}`, "expected 1 to 200 visible characters");
}

function missing(envelope: Envelope, agent: AgentDefinition, why: string, hint: string): Routed {
  return { ok: false, problem: new Problem("session_id_missing", `event ${envelope.id} of type ${envelope.type} names no session of agent "${agent.name}": ${why}`, { hint }) };
}

function unknownAgent(envelope: Envelope, why: string): Found {
  return { ok: false, problem: new Problem("agent_unknown", `no agent takes event ${envelope.id} of type ${envelope.type}: ${why}`, { hint: "set the `agent` attribute, or add a trigger for this type to an agent" }) };
}
