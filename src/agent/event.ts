/**
 * Owns: the calls of an agent's own functions. What users write may throw, return nonsense or a promise; what comes
 * back here is always a value (I14).
 */
import type { Envelope } from "../contracts/cloudevent.js";
import { parseForUse, stringifyLossless } from "../contracts/json.js";
import type { AgentDefinition, AgentEvent, CheckResult, Trigger } from "./definition.js";

/** The event as an agent's functions see it. Throws SyntaxError where `data` is not JSON. */
export function toAgentEvent(envelope: Envelope): AgentEvent {
  return {
    id: envelope.id, source: envelope.source, type: envelope.type,
    ...(envelope.subject === undefined ? {} : { subject: envelope.subject }),
    ...(envelope.time === undefined ? {} : { time: envelope.time }),
    data: parseForUse(envelope.data),
  };
}

/** The agent's business rule. Throwing, or answering anything but a CheckResult, is a refusal `check_failed`. */
export function checkEvent(agent: AgentDefinition, event: AgentEvent): CheckResult {
  if (agent.check === undefined) return { ok: true };
  const answer = guarded(() => agent.check?.(event));
  if (!answer.ok) return { ok: false, code: "check_failed", message: `check of agent "${agent.name}" threw: ${answer.message}` };
  const result = answer.value as { ok?: unknown; code?: unknown; message?: unknown } | null | undefined;
  if (result?.ok === true) return { ok: true };
  if (result?.ok === false && typeof result.code === "string" && typeof result.message === "string") return { ok: false, code: result.code, message: result.message };
  return { ok: false, code: "check_failed", message: `check of agent "${agent.name}" answered ${describe(answer.value)}, expected { ok: true } or { ok: false, code, message }` };
}

export type InputResult = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly code: "input_failed"; readonly message: string };

/** The user message for the model. */
export function inputOf(agent: AgentDefinition, event: AgentEvent): InputResult {
  const answer = guarded(() => (agent.input === undefined ? defaultInput(event) : agent.input(event)));
  if (!answer.ok) return { ok: false, code: "input_failed", message: `input of agent "${agent.name}" threw: ${answer.message}` };
  if (typeof answer.value === "string" && answer.value.trim() !== "") return { ok: true, text: answer.value };
  return { ok: false, code: "input_failed", message: `input of agent "${agent.name}" answered ${describe(answer.value)}, expected a text` };
}

/** `check`, then `input`: what a run needs to know of its event. */
export function prepareEvent(agent: AgentDefinition, event: AgentEvent): { readonly check: CheckResult; readonly input: string } {
  const check = checkEvent(agent, event);
  if (!check.ok) return { check, input: "" };
  const input = inputOf(agent, event);
  return input.ok ? { check, input: input.text } : { check: input, input: "" };
}

/** What the trigger says, unchecked; a throw is a value too. */
export function sessionOf(trigger: Trigger, event: AgentEvent): { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly message: string } {
  return guarded(() => trigger.session?.(event));
}

function defaultInput(event: AgentEvent): string {
  const text = (event.data as { text?: unknown } | null)?.text;
  return typeof text === "string" ? text : stringifyLossless({ type: event.type, source: event.source, id: event.id, subject: event.subject, time: event.time, data: event.data });
}

function guarded(call: () => unknown): { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly message: string } {
  try {
    const value = call();
    // An async function here is a mistake; its rejection must not surface as an unhandled one.
    if (value instanceof Promise) {
      value.catch(() => undefined);
      return { ok: false, message: "it returned a promise; it must be a plain function" };
    }
    return { ok: true, value };
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : describe(error) };
  }
}

function describe(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value).slice(0, 200);
  try {
    return stringifyLossless(value).slice(0, 200);
  } catch {
    return "an object";
  }
}
