/**
 * Owns: dead letters that the host records itself: what could not be read, routed or accepted. Deterministic ids, so
 * that a redelivered poison message is one letter; the reason and the original text travel along (I14).
 */
import type { ChannelName } from "../../contracts/channels.js";
import { CHANNELS } from "../../contracts/channels.js";
import { attributesOf, type Envelope } from "../../contracts/cloudevent.js";
import { sha256Hex } from "../../contracts/ids.js";
import { DEAD_LETTERED, type DeadLetter, type DeadLetterKind } from "../../contracts/messages.js";
import type { Clock } from "../../platform/clock.js";
import { packed } from "../../platform/letter-parcel.js";
import type { Bus } from "./ports.js";

export interface DeadLetterInput {
  readonly channel: ChannelName;
  readonly kind: DeadLetterKind;
  readonly reason: string;
  readonly message: string;
  readonly payload: string;
  /** Deliveries that failed; default 1. */
  readonly tries?: number;
  /** Default: made of channel, reason and payload. */
  readonly deadLetterId?: string;
  readonly envelope?: Envelope;
  readonly tenant?: string;
  readonly sessionId?: string;
  readonly actorId?: string;
}

/** The same delivery refused for the same reason is the same letter. */
export function deadLetterIdOf(channel: ChannelName, reason: string, payload: string): string {
  return `dl_${sha256Hex(`${channel}\n${reason}\n${payload}`).slice(0, 32)}`;
}

export class DeadLetters {
  constructor(private readonly bus: Bus, private readonly clock: Clock) {}

  /** Publishes the letter. Throws Problem `broker_unavailable`: then the delivery must be repeated, not acked. */
  async record(input: DeadLetterInput): Promise<void> {
    const deadLetterId = input.deadLetterId ?? deadLetterIdOf(input.channel, input.reason, input.payload);
    const nowMs = this.clock.nowMs();
    const letter: DeadLetter = {
      deadLetterId, kind: input.kind, reason: input.reason, message: input.message, topic: CHANNELS[input.channel].topic, app: "sessions", tries: input.tries ?? 1,
      payload: input.payload, payloadEncoding: "utf8", firstFailedAtMs: nowMs, lastFailedAtMs: nowMs,
      ...(input.tenant === undefined ? {} : { tenant: input.tenant }),
      ...(input.sessionId === undefined ? {} : { sessionId: input.sessionId }),
      ...(input.actorId === undefined ? {} : { actorId: input.actorId }),
      ...(input.envelope === undefined ? {} : { envelope: attributesOf(input.envelope) }),
    };
    await this.bus.publish("deadLetters", { specversion: "1.0", id: deadLetterId, source: "docket://sessions", type: DEAD_LETTERED, ...(input.sessionId === undefined ? {} : { subject: input.sessionId }), data: JSON.stringify(packed(letter)) });
  }
}
