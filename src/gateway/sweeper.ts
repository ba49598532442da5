/**
 * Owns: I1 across the broker: an inbox row without a receipt is published again, same id, with growing pauses, until the session
 * says that it has it. daprd can ack an event that no app ever got (DESIGN 7.10), so no ack is proof.
 *
 * Before a later publication the session is asked: if it knows the event, the receipt was lost and the row is dropped. An event
 * whose expiry passed long ago without any receipt is dead-lettered: its one outcome (I1, I9), which the inbox then tells.
 */
import type { EventOutcome } from "../contracts/api.js";
import { EnvelopeAttributes, parseEnvelope, type Envelope } from "../contracts/cloudevent.js";
import { CHANNELS } from "../contracts/channels.js";
import { actorIdOf, DEFAULT_TENANT, eventKeyOf, sha256Hex } from "../contracts/ids.js";
import type { DeadLetter } from "../contracts/messages.js";
import type { Clock } from "../platform/clock.js";
import { errorFields, type Logger } from "../platform/log.js";
import { count } from "../platform/telemetry/metrics.js";
import type { GatewayConfig } from "./config.js";
import type { Lanes } from "./lanes.js";
import type { DeadEvent, DeadLetters, Inbox, InboxRow, Sessions, TaskPublisher } from "./ports.js";

export interface SweepDeps {
  readonly inbox: Inbox;
  readonly lanes: Pick<Lanes, "enter" | "leave" | "mayGo">;
  readonly publisher: TaskPublisher;
  readonly sessions: Pick<Sessions, "readOutcome">;
  readonly deadLetters: DeadLetters;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly config: GatewayConfig["sweep"];
}

/** More rows than this wait for receipts only when nobody takes events: then order has to wait for the sweeper, too. */
const ADOPTED = 10_000;

/** Publishes what is due; returns how many. Throws Problem `store_unavailable`. */
async function sweep(deps: SweepDeps): Promise<number> {
  let published = 0;
  for (const row of await deps.inbox.due(deps.clock.nowMs(), deps.config.batch)) {
    try {
      if (await again(deps, row)) published += 1;
    } catch (error) {
      // One row that fails must not keep the others waiting; it is due again after its pause.
      deps.logger.warn({ rowKey: row.key, attempts: row.attempts, ...errorFields(error) }, "an event without receipt could not be published again");
    }
  }
  return published;
}

/** Pause before the publication after `attempts` of them. Pure. */
export function pauseMs(attempts: number, config: { readonly receiptWaitMs: number; readonly backoffCapMs: number }): number {
  return Math.min(config.receiptWaitMs * 2 ** Math.min(attempts - 1, 20), Math.max(config.backoffCapMs, config.receiptWaitMs));
}

async function again(deps: SweepDeps, row: InboxRow): Promise<boolean> {
  const nowMs = deps.clock.nowMs();
  const envelope = parseEnvelope(row.envelopeText);
  // The claim comes first: of several replicas one publishes, and a crash in between only costs a pause.
  if (!(await deps.inbox.postpone(row, { publishedAtMs: nowMs, dueAtMs: nowMs + pauseMs(row.attempts + 1, deps.config) }))) return false;
  const actorId = actorOf(envelope);
  if (!(await deps.lanes.mayGo(actorId, row.key))) return false;
  const known = row.attempts > 1 ? await outcomeOf(deps, actorId, envelope) : undefined;
  if (known !== undefined && known.state !== "unknown") {
    await settle(deps, actorId, row, known.deadLetterId === undefined ? undefined : { code: known.code ?? "", deadLetterId: known.deadLetterId });
    return false;
  }
  if (envelope.expirytime !== undefined && Date.parse(envelope.expirytime) + deps.config.giveUpAfterMs < nowMs) {
    const letter = noReceipt(row, envelope, { actorId, nowMs });
    await deps.deadLetters.record(letter);
    await settle(deps, actorId, row, { code: letter.reason, deadLetterId: letter.deadLetterId });
    return false;
  }
  await deps.publisher.publish(envelope);
  count("docket.inbox.republished", 1);
  deps.logger.info({ rowKey: row.key, eventId: envelope.id, attempts: row.attempts + 1 }, "an event without receipt was published again");
  return true;
}

async function settle(deps: SweepDeps, actorId: string, row: InboxRow, dead: DeadEvent | undefined): Promise<void> {
  if (dead === undefined) await deps.inbox.remove(row.key);
  else await deps.inbox.bury(row.key, dead);
  deps.lanes.leave(actorId, row.key);
}

function actorOf(envelope: Envelope): string { return envelope.partitionkey ?? actorIdOf(envelope.tenant ?? DEFAULT_TENANT, envelope.subject ?? ""); }

async function outcomeOf(deps: SweepDeps, actorId: string, envelope: Envelope): Promise<EventOutcome | undefined> {
  try {
    return await deps.sessions.readOutcome(actorId, eventKeyOf(envelope.source, envelope.id));
  } catch (error) {
    deps.logger.debug({ actorId, ...errorFields(error) }, "the session could not be asked; the event is published again");
    return undefined;
  }
}

function noReceipt(row: InboxRow, envelope: Envelope, at: { actorId: string; nowMs: number }): DeadLetter {
  const attributes = EnvelopeAttributes.parse(envelope);
  return {
    deadLetterId: `dl_${sha256Hex(`inbox\n${row.key}`).slice(0, 24)}`, kind: "event", reason: "expired",
    message: `no session took the event in ${row.attempts} publications, and its expirytime ${envelope.expirytime ?? ""} has passed`,
    topic: CHANNELS.tasks.topic, app: "gateway", tries: row.attempts, actorId: at.actorId, envelope: attributes, payload: row.envelopeText, payloadEncoding: "utf8",
    ...(envelope.tenant === undefined ? {} : { tenant: envelope.tenant }), ...(envelope.subject === undefined ? {} : { sessionId: envelope.subject }),
    ...(envelope.correlationid === undefined ? {} : { runId: envelope.correlationid }),
    firstFailedAtMs: row.acceptedAtMs, lastFailedAtMs: at.nowMs,
  };
}

/** Sweeps on a timer, one sweep at a time. */
export class Sweeper {
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<number> | undefined;

  constructor(private readonly deps: SweepDeps) {}

  /** Takes over what an earlier process had accepted, so that new events of the same sessions queue up behind it. Throws Problem `store_unavailable`. */
  async adopt(): Promise<void> {
    const rows = await this.deps.inbox.due(Infinity, ADOPTED);
    for (const row of rows.sort((a, b) => a.acceptedAtMs - b.acceptedAtMs)) {
      try {
        await this.#adoptRow(row);
      } catch (error) {
        this.deps.logger.warn({ rowKey: row.key, ...errorFields(error) }, "an inbox row could not be taken over; the sweeper looks at it when it is due");
      }
    }
  }

  /** The eldest of a session was published by that process, as far as anybody knows: the sweep says it again when it is due. */
  async #adoptRow(row: InboxRow): Promise<void> {
    const envelope = parseEnvelope(row.envelopeText);
    let entering = true;
    await this.deps.lanes.enter(actorOf(envelope), row.key, () => (entering ? Promise.resolve() : this.deps.publisher.publish(envelope)));
    entering = false;
  }

  start(): void {
    this.#timer ??= setInterval(() => {
      if (this.#running !== undefined) return;
      this.now().catch((error: unknown) => { this.deps.logger.warn({ ...errorFields(error) }, "the inbox could not be swept"); });
    }, this.deps.config.everyMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#running?.catch(() => undefined);
  }

  /** One sweep; joins the one that runs. */
  now(): Promise<number> {
    this.#running ??= sweep(this.deps).finally(() => { this.#running = undefined; });
    return this.#running;
  }
}
