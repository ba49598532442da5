/**
 * Owns: the one outcome of an event that its session never takes (full mailbox, unfit data, unknown agent, too old): a
 * ledger row, a dead letter, and a receipt that carries both. Costs no commit: neither document nor journal is written,
 * so a flooded session does no more work for what it refuses.
 *
 * - R1 (I1) the row is written create-only, and before the letter. From then on no host can accept the event, however
 *   often it comes; and where it was accepted before, it is not refused now.
 * - R2 a repetition finds the row and publishes the same letter and receipt again, so that a crash between the three loses
 *   nothing. Throwing means RETRY.
 */
import type { Envelope } from "../../contracts/cloudevent.js";
import { eventKeyOf } from "../../contracts/ids.js";
import { EVENT_ACCEPTED, type EventAccepted } from "../../contracts/messages.js";
import type { Problem } from "../../contracts/problems.js";
import type { Clock } from "../../platform/clock.js";
import { count } from "../../platform/telemetry/metrics.js";
import { deadLetterIdOf, type DeadLetterInput, type DeadLetters } from "./dead-letters.js";
import type { Bus, LedgerRow, Refusal, SessionStore } from "./ports.js";

interface Addressee { readonly actorId: string; readonly tenant: string; readonly sessionId: string }

export interface RefusedEvent {
  /** Whose outcome it is: by its source and id the ledger knows it. */
  readonly event: Envelope;
  /** What was delivered, where it is not the event itself: a redrive command. */
  readonly delivered?: Envelope;
  /** What is kept for people. */
  readonly letter: Pick<DeadLetterInput, "channel" | "kind" | "payload" | "envelope">;
  /** Tells this letter from an earlier one of the same content. */
  readonly mark?: string;
}

/** What the gateway is told of an event. */
export interface ReceiptContent { readonly verdict: string; readonly rev: number; readonly deadLetterId?: string }

const MAX_MESSAGE = 1000;

export class Refusals {
  constructor(private readonly deps: { readonly store: Pick<SessionStore, "refuse" | "readLedger">; readonly bus: Bus; readonly deadLetters: DeadLetters; readonly clock: Clock }) {}

  /** Refuses an event for good, unless it was accepted before. Returns the verdict that stands. */
  async refuse(to: Addressee, refused: RefusedEvent, because: { readonly problem: Problem; readonly tries: number }): Promise<string> {
    const { code, message } = because.problem;
    const { channel, payload } = refused.letter;
    const refusal: Refusal = { code, message: message.slice(0, MAX_MESSAGE), deadLetterId: deadLetterIdOf(channel, code, `${payload}${refused.mark ?? ""}`), tries: because.tries };
    const key = eventKeyOf(refused.event.source, refused.event.id);
    const written = await this.deps.store.refuse(to.actorId, key, { rev: 0, verdict: code, refusal });
    if (written === "committed") count("docket.events.handled", 1, { agent: "", verdict: code });
    const row = written === "committed" ? { refusal } : await this.deps.store.readLedger(to.actorId, key);
    return await this.#say(to, refused, row);
  }

  /** A known event came again. Where it had been refused, that is said again; else it is a duplicate. */
  async repeat(to: Addressee, refused: RefusedEvent): Promise<string> {
    return await this.#say(to, refused, await this.deps.store.readLedger(to.actorId, eventKeyOf(refused.event.source, refused.event.id)));
  }

  /** Tells the gateway, which drops its inbox row on it (DESIGN 7.10). */
  async receipt(to: Addressee, delivered: Envelope, content: ReceiptContent): Promise<void> {
    const key = eventKeyOf(delivered.source, delivered.id);
    const accepted: EventAccepted = { tenant: to.tenant, sessionId: to.sessionId, actorId: to.actorId, key, ...content };
    await this.deps.bus.publish("responses", {
      specversion: "1.0", id: `receipt:${to.actorId}:${key}:${String(this.deps.clock.nowMs())}`, source: "docket://sessions", type: EVENT_ACCEPTED,
      subject: to.sessionId, tenant: to.tenant, partitionkey: to.actorId, data: JSON.stringify(accepted),
    });
  }

  async #say(to: Addressee, refused: RefusedEvent, row: Pick<LedgerRow, "refusal"> | undefined): Promise<string> {
    const { event, delivered = event, letter } = refused;
    const refusal = row?.refusal;
    if (refusal === undefined) {
      await this.receipt(to, delivered, { verdict: "duplicate", rev: 0 });
      return "duplicate";
    }
    const { code, message, deadLetterId, tries } = refusal;
    const { actorId, tenant, sessionId } = to;
    await this.deps.deadLetters.record({ ...letter, reason: code, message, deadLetterId, tries, actorId, tenant, sessionId });
    await this.receipt(to, delivered, { verdict: code, rev: 0, deadLetterId });
    return code;
  }
}
