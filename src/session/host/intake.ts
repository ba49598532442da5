/**
 * Owns: turning an event into a command: preparing the agent's view of it (check, input), the ledger question, the
 * redrive. Everything here is fast and cannot throw because of what is in the event (I14).
 */
import { prepareEvent, toAgentEvent } from "../../agent/event.js";
import { principalOf, parseEnvelope, type Envelope } from "../../contracts/cloudevent.js";
import { eventKeyOf, redrivenIdOf, runIdOf } from "../../contracts/ids.js";
import { busyModeOf, SessionRedrive } from "../../contracts/messages.js";
import { Problem, zodErrors } from "../../contracts/problems.js";
import type { AgentLimits, IncomingEvent, PreparedInput, SessionCommand } from "../core/command.js";
import type { SessionState } from "../core/state.js";
import { limitsOf, nextDefinitionOf, type Catalog } from "./agents.js";
import type { BuildCommand, TurnContext } from "./turn.js";

export const MAX_INPUT_CHARS = 32_000;
const MAX_INTAKE_BYTES = 28 * 1024;
/** So few waiting events need no measuring. */
const SURELY_ROOM = 64;

/** Where a command comes from: constant parts of every command that this host makes. */
export interface CommandSource {
  readonly host: string;
  readonly random: () => number;
  readonly catalog: Catalog;
  /** Upper bound in USD of the next model call of this agent. */
  readonly reserveUsd: (agent: string, version: string | undefined, inputChars: number) => number;
}

/** Fields that every command carries. */
export function commandBase(source: CommandSource, context: Pick<TurnContext, "atMs">, { agent, agentVersion }: { readonly agent: string; readonly agentVersion?: string }): Pick<SessionCommand, "atMs" | "host" | "random" | "limits" | "policyVersion"> {
  return { atMs: context.atMs, host: source.host, random: source.random(), limits: limitsOf(source.catalog, agent, agentVersion), policyVersion: source.catalog.policy.version };
}

/** Business check and input text of an event, for the version of the agent that its run will be done by. */
export function prepare(source: CommandSource, { agent, agentVersion }: { readonly agent: string; readonly agentVersion?: string }, envelope: Envelope): PreparedInput {
  const { catalog } = source;
  const definition = nextDefinitionOf(catalog, agent, agentVersion);
  if (definition === undefined) {
    const message = catalog.agents.has(agent) ? `the session keeps version ${String(agentVersion)} of agent ${agent}, which is not installed on this host; put it into agents/${agent}/versions` : `no agent named ${agent} is installed on this host`;
    return { check: { ok: false, code: "agent_unknown", message }, input: "", reserveUsd: 0 };
  }
  const { check, input } = prepareEvent(definition, toAgentEvent(envelope));
  const text = input.length > MAX_INPUT_CHARS ? `${input.slice(0, MAX_INPUT_CHARS)}\n[truncated: ${String(input.length)} characters]` : input;
  return { check, input: text, reserveUsd: source.reserveUsd(agent, definition.version, text.length), agentVersion: definition.version };
}

/** Builds `ReceiveEvent` for an envelope that was routed to this session. */
export function receiveEvent(source: CommandSource, target: { tenant: string; sessionId: string; actorId: string; agent: string }, envelope: Envelope): BuildCommand {
  const key = eventKeyOf(envelope.source, envelope.id);
  return async (context) => {
    const { state } = context;
    const isNew = state.status === "NEW" || state.status === "DELETED";
    const prepared = prepare(source, isNew ? { agent: target.agent } : { agent: target.agent, agentVersion: state.agentVersion }, envelope);
    const about = { agent: target.agent, agentVersion: prepared.agentVersion ?? "0" };
    const base = commandBase(source, context, about);
    return { ...base, limits: withRoom(base.limits, state, envelope), type: "ReceiveEvent", ...target, ...about, prepared, event: incoming(target.actorId, key, envelope, context), seen: await context.seen(key) };
  };
}

/**
 * No further events wait in a document that has grown this large, whatever their number: what the open run may add at
 * once (sixteen calls, each with its approval) must still fit, or its outcome could never be committed (I9, I14).
 */
function withRoom(limits: AgentLimits, state: SessionState, envelope: Envelope): AgentLimits {
  if (state.status === "NEW") return limits;
  const steered = "run" in state ? state.run.steered.length : 0;
  if (state.mailbox.length + steered < SURELY_ROOM || Buffer.byteLength(JSON.stringify(state)) < MAX_INTAKE_BYTES) return limits;
  const mode = busyModeOf(envelope.busymode);
  const waiting = mode === "steer" || mode === "withdraw" ? Math.min(steered, state.mailbox.length) : state.mailbox.length;
  return { ...limits, maxMailbox: Math.min(limits.maxMailbox, waiting) };
}

function incoming(actorId: string, key: string, envelope: Envelope, context: TurnContext): IncomingEvent {
  const runId = runIdOf(actorId, key);
  const principal = principalOf(envelope);
  return {
    key, runId, source: envelope.source, id: envelope.id, eventType: envelope.type, mode: busyModeOf(envelope.busymode),
    correlationId: envelope.correlationid ?? runId, data: context.keep(actorId, envelope.data),
    ...(principal === undefined ? {} : { principal }),
    ...(envelope.causationid === undefined ? {} : { causationId: envelope.causationid }),
    ...(envelope.traceparent === undefined ? {} : { traceparent: envelope.traceparent }),
    ...(envelope.expirytime === undefined ? {} : { expiresAtMs: Date.parse(envelope.expirytime) }),
  };
}

/** Builds `TakeNext` for the head of the mailbox, or nothing when the session is not free. */
export function takeNext(source: CommandSource): BuildCommand {
  return async (context) => {
    const { state } = context;
    if (state.status !== "IDLE" || state.quarantine !== undefined) return undefined;
    const head = state.mailbox[0];
    if (head === undefined) return undefined;
    const [entry] = await context.entries(head.rev, head.rev);
    const event = entry?.events.find((candidate) => candidate.type === "EventReceived" && candidate.key === head.key);
    if (event?.type !== "EventReceived") {
      const nothing: PreparedInput = { check: { ok: false, code: "event_lost", message: "" }, input: "", reserveUsd: 0 };
      return { ...commandBase(source, context, state), type: "TakeNext", key: head.key, prepared: nothing, requestedBy: "", correlationId: head.runId, lost: true };
    }
    const data = event.data.blob === undefined ? event.data.text : await context.readBlob(event.data.blob.key) ?? JSON.stringify(event.data.text); // a lost blob: the head, as text
    const envelope: Envelope = { specversion: "1.0", id: event.id, source: event.source, type: event.eventType, subject: state.sessionId, data };
    const prepared = prepare(source, state, envelope);
    return {
      ...commandBase(source, context, { agent: state.agent, agentVersion: prepared.agentVersion ?? state.agentVersion }), type: "TakeNext", key: head.key, prepared,
      requestedBy: event.principal?.id ?? event.source, correlationId: event.correlationId,
    };
  };
}

/**
 * The dead event of a redrive as a new one: new id, no expiry of its own, causation link (DESIGN 3, Ledger).
 * Throws Problem when what is to be redriven is not an event.
 */
export function redrivenEnvelope(command: Envelope): Envelope {
  const parsed = SessionRedrive.safeParse(JSON.parse(command.data));
  if (!parsed.success) throw new Problem("validation_failed", `the redrive command does not fit its schema`, { errors: zodErrors(parsed.error) });
  const { event, deadLetterId, redrive } = parsed.data;
  const { expirytime, ...dead } = parseEnvelope(event);
  return {
    ...dead, id: redrivenIdOf(dead.id, redrive), causationid: deadLetterId,
    ...(command.expirytime === undefined ? {} : { expirytime: command.expirytime }),
    ...(command.principal === undefined ? {} : { principal: command.principal }),
  };
}
