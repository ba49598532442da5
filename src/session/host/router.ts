/**
 * Owns: topic → actor. Reads just enough of a delivery to name its session, and hands the raw text to that session's
 * actor (reach.ts). Unreadable or unroutable deliveries become dead letters and
 * are acked; when the actor cannot be reached the broker repeats (DESIGN 3: failures of the way).
 */
import { z } from "zod";
import { assertSize, MAX_COMMAND_BYTES, MAX_EVENT_BYTES, parseEnvelope, type Envelope } from "../../contracts/cloudevent.js";
import { actorIdOf, DEFAULT_TENANT } from "../../contracts/ids.js";
import { RESERVED_TYPE_PREFIX, PROMPT_RECEIVED, SESSION_REDRIVE, type DeliveryStatus } from "../../contracts/messages.js";
import { Problem } from "../../contracts/problems.js";
import { errorFields, type Logger } from "../../platform/log.js";
import { logsAbout } from "../../platform/log-context.js";
import { routeEvent } from "../../agent/route.js";
import type { Catalog } from "./agents.js";
import type { DeadLetters } from "./dead-letters.js";
import { DEAD_KINDS, type SessionChannel, type Target } from "./deliveries.js";
import type { Refusals } from "./refusals.js";

/** Events older than this cannot be deduplicated any more: the ledger's horizon (DESIGN 3). */
export const LEDGER_HORIZON_MS = 30 * 24 * 3_600_000;

export interface RouterDeps {
  readonly catalog: Catalog;
  readonly deadLetters: DeadLetters;
  readonly refusals: Refusals;
  readonly logger: Logger;
  readonly nowMs: () => number;
  /** Hands an event of that type to its session; throws Problem (retryable) when it is not taken. */
  readonly deliver: (target: Target, channel: SessionChannel, text: string, type: string) => Promise<void>;
}

const Addressed = z.object({ actorId: z.string(), tenant: z.string(), sessionId: z.string() });

export class Router {
  constructor(private readonly deps: RouterDeps) {}

  /** Handles one delivery. Throwing means RETRY. */
  async handle(channel: SessionChannel, text: string): Promise<DeliveryStatus> {
    let envelope: Envelope | undefined;
    let target: Target;
    try {
      envelope = parseEnvelope(text, MAX_COMMAND_BYTES);
      if (channel !== "toolResults" && envelope.type !== SESSION_REDRIVE) assertSize(text, MAX_EVENT_BYTES);
      target = this.#target(channel, envelope);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.deps.logger.warn({ channel, ...errorFields(error) }, "a delivery could not be routed");
      await this.#dead(channel, text, envelope, error);
      return "SUCCESS";
    }
    logsAbout([target.actorId], { tenant: target.tenant, sessionId: target.sessionId });
    await this.deps.deliver(target, channel, text, envelope.type);
    return "SUCCESS";
  }

  /** What names its session has its outcome there, for whoever asks (I1). */
  async #dead(channel: SessionChannel, text: string, envelope: Envelope | undefined, problem: Problem): Promise<void> {
    if (channel === "tasks" && envelope?.subject !== undefined) {
      const tenant = envelope.tenant ?? DEFAULT_TENANT;
      await this.deps.refusals.refuse({ tenant, sessionId: envelope.subject, actorId: actorIdOf(tenant, envelope.subject) }, { event: envelope, letter: { channel, kind: "event", payload: text, envelope } }, { problem, tries: 1 });
      return;
    }
    await this.deps.deadLetters.record({ channel, kind: envelope === undefined ? "unreadable" : DEAD_KINDS[channel], reason: problem.code, message: problem.message, payload: text, ...(envelope === undefined ? {} : { envelope }) });
  }

  #target(channel: SessionChannel, envelope: Envelope): Target {
    if (channel !== "tasks") {
      const parsed = Addressed.safeParse(JSON.parse(envelope.data));
      if (!parsed.success) throw new Problem("validation_failed", `${envelope.type} ${envelope.id} names no session: tenant, sessionId and actorId are expected in its data`);
      const { tenant, sessionId } = parsed.data;
      return { tenant, sessionId, actorId: actorIdOf(tenant, sessionId) };
    }
    if (envelope.time !== undefined && this.deps.nowMs() - Date.parse(envelope.time) > LEDGER_HORIZON_MS) {
      throw new Problem("too_old", `event ${envelope.id} is from ${envelope.time}: older than the ledger remembers, so it cannot be told from a repetition`);
    }
    const tenant = envelope.tenant ?? DEFAULT_TENANT;
    const sessionId = this.#sessionOf(envelope);
    return { tenant, sessionId, actorId: actorIdOf(tenant, sessionId) };
  }

  /** Commands carry their session; other events may leave it to the agent's trigger. */
  #sessionOf(envelope: Envelope): string {
    const isCommand = envelope.type.startsWith(RESERVED_TYPE_PREFIX) && envelope.type !== PROMPT_RECEIVED;
    if (isCommand) {
      if (envelope.subject === undefined) throw new Problem("session_id_missing", `command ${envelope.type} ${envelope.id} has no subject`);
      return envelope.subject;
    }
    const routed = routeEvent([...this.deps.catalog.agents.values()], envelope, { defaultAgent: this.deps.catalog.defaultAgent });
    if (!routed.ok) throw routed.problem;
    return routed.sessionId;
  }
}
