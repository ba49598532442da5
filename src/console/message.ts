/**
 * Owns: carrying a person's message to a session, and waiting for the session's word that it has it. A publish that returned proves
 * nothing (dapr-facts 7.10): the same event, same id, is published again while the session does not know it.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { EventOutcome } from "../contracts/api.js";
import type { Envelope } from "../contracts/cloudevent.js";
import type { SessionSummary } from "../contracts/journal.js";
import { eventKeyOf } from "../contracts/ids.js";
import { PROMPT_RECEIVED } from "../contracts/messages.js";
import type { Authenticated } from "../platform/apikeys.js";
import { errorFields } from "../platform/log.js";
import type { ConsoleConfig } from "./config.js";
import { envelopeFor } from "./envelopes.js";
import type { ConsoleDeps } from "./ports.js";

export interface OperatorMessage { readonly text: string; readonly mode: string; readonly eventId: string }
export interface MessageAnswer { readonly sessionId: string; readonly eventId: string; readonly eventKey: string; readonly state: EventOutcome["state"]; readonly runId?: string }

const AGAIN_AFTER_MS = 3_000;

/** `state` is the session's word; `unknown` where it has not said in time. Throws Problem where the broker does not take it. */
export async function carryMessage(deps: ConsoleDeps, config: ConsoleConfig, to: { readonly summary: SessionSummary; readonly caller: Authenticated }, message: OperatorMessage): Promise<MessageAnswer> {
  const { summary, caller } = to;
  const source = `urn:docket:principal:${caller.tenant}:${caller.principal.id}`;
  const eventKey = eventKeyOf(source, message.eventId);
  const answer = { sessionId: summary.sessionId, eventId: message.eventId, eventKey };
  const nowMs = deps.clock.nowMs();
  const envelope = {
    ...envelopeFor({ id: message.eventId, type: PROMPT_RECEIVED, tenant: caller.tenant, sessionId: summary.sessionId, data: { text: message.text }, atMs: nowMs, by: caller.principal, expiresAtMs: nowMs + config.messageTtlMs }),
    source, agent: summary.agent, busymode: message.mode, idempotencykey: message.eventId,
  };
  const { state, runId } = await carryEvent(deps, config, summary.actorId, envelope) ?? { state: "unknown" as const };
  return { ...answer, state, ...(runId === undefined ? {} : { runId }) };
}

/** The session's word on an event; undefined where it has not said in time. The same event, same id, is published again while it does not know it. Throws Problem where the broker does not take it. */
export async function carryEvent(deps: ConsoleDeps, config: ConsoleConfig, actorId: string, envelope: Envelope): Promise<EventOutcome | undefined> {
  const eventKey = eventKeyOf(envelope.source, envelope.id);
  const before = await lookUp(deps, actorId, eventKey);
  if (before !== undefined) return before;
  const started = performance.now();
  let publishedAt = -AGAIN_AFTER_MS;
  for (let pauseMs = config.verdictPollMs; performance.now() - started < config.verdictWaitMs; pauseMs = Math.min(pauseMs * 1.5, config.verdictPollMs * 5)) {
    if (performance.now() - publishedAt >= AGAIN_AFTER_MS) {
      await deps.tasks.publish(envelope);
      publishedAt = performance.now();
    }
    const found = await lookUp(deps, actorId, eventKey);
    if (found !== undefined) return found;
    await pause(pauseMs);
  }
  return undefined;
}

/** The session's word. One that cannot be asked just now has none yet. */
async function lookUp(deps: ConsoleDeps, actorId: string, eventKey: string): Promise<EventOutcome | undefined> {
  try {
    const outcome = await deps.sessions.readOutcome(actorId, eventKey);
    return outcome.state === "unknown" ? undefined : outcome;
  } catch (error) {
    deps.logger.debug({ actorId, ...errorFields(error) }, "a session could not be asked whether it has an event");
    return undefined;
  }
}
