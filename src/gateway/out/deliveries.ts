/**
 * Owns: what the gateway does with deliveries of the channels it subscribes to. Receipts and run ends drop inbox rows; hints and
 * deltas go to the streams. What cannot be read is dead-lettered and settled (I14); a store that is down is a
 * failure of the way: RETRY.
 */
import { CHANNELS } from "../../contracts/channels.js";
import { parseEnvelope, type Envelope } from "../../contracts/cloudevent.js";
import { sha256Hex } from "../../contracts/ids.js";
import { EVENT_ACCEPTED, EventAccepted, LIVE_ADVANCED, LIVE_DELTA, LiveAdvanced, LiveDelta, RUN_ENDED, RunEndedMessage, type DeadLetter, type DeliveryStatus } from "../../contracts/messages.js";
import { Problem } from "../../contracts/problems.js";
import type { Clock } from "../../platform/clock.js";
import { errorFields, type Logger } from "../../platform/log.js";
import { inboxKeyOf } from "../in/accept.js";
import { recordAnswered } from "../in/trace.js";
import type { Lanes } from "../lanes.js";
import type { DeadEvent, DeadLetters, Inbox } from "../ports.js";
import type { Feeds } from "./feeds.js";

export interface DeliveryDeps {
  readonly inbox: Inbox;
  readonly lanes: Pick<Lanes, "leave" | "look">;
  readonly deadLetters: DeadLetters;
  readonly feeds: Feeds;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Whose event it was. */
interface Receipt { readonly actorId: string; readonly key: string; readonly rev: number; readonly dead?: DeadEvent }

/** One delivery of `responses`. Throws what is a failure of the way: the caller answers RETRY. */
export async function handleResponse(deps: DeliveryDeps, text: string): Promise<DeliveryStatus> {
  let receipt: Receipt;
  try {
    receipt = readReceipt(parseEnvelope(text), deps.clock.nowMs());
  } catch (error) {
    await deps.deadLetters.record(unreadable(deps, text, error));
    return "SUCCESS";
  }
  const row = inboxKeyOf(receipt.actorId, receipt.key);
  if (receipt.dead === undefined) await deps.inbox.remove(row);
  else await deps.inbox.bury(row, receipt.dead);
  deps.lanes.leave(receipt.actorId, row);
  if (receipt.dead === undefined) deps.feeds.reached(receipt.actorId, receipt.rev);
  else deps.feeds.look(receipt.actorId);
  return "SUCCESS";
}

/** One delivery of `live`: lossy by contract, so what is not readable is left out. */
export function handleLive(deps: Pick<DeliveryDeps, "feeds" | "lanes" | "logger">, text: string): DeliveryStatus {
  try {
    const envelope = parseEnvelope(text);
    if (envelope.type === LIVE_ADVANCED) {
      for (const { actorId, rev, entry } of LiveAdvanced.parse(JSON.parse(envelope.data)).advanced) {
        deps.feeds.advance(actorId, rev, entry);
        deps.lanes.look(actorId).catch((error: unknown) => { deps.logger.debug({ actorId, ...errorFields(error) }, "the inbox could not be asked; the sweeper does it"); });
      }
    }
    else if (envelope.type === LIVE_DELTA) deps.feeds.delta(LiveDelta.parse(JSON.parse(envelope.data)));
  } catch (error) {
    deps.logger.warn({ ...errorFields(error) }, "a live message was not readable and is left out");
  }
  return "SUCCESS";
}

function readReceipt(envelope: Envelope, nowMs: number): Receipt {
  if (envelope.type === EVENT_ACCEPTED) {
    const { actorId, key, rev, verdict, deadLetterId } = EventAccepted.parse(JSON.parse(envelope.data));
    return { actorId, key, rev, ...(deadLetterId === undefined ? {} : { dead: { code: verdict, deadLetterId } }) };
  }
  if (envelope.type === RUN_ENDED) {
    const ended = RunEndedMessage.parse(JSON.parse(envelope.data));
    recordAnswered(envelope, { ...ended, atMs: nowMs });
    return ended;
  }
  throw new Problem("unknown_type", `${envelope.type} is neither a receipt nor a run's end that this version knows`);
}

function unreadable(deps: DeliveryDeps, text: string, error: unknown): DeadLetter {
  const nowMs = deps.clock.nowMs();
  const { topic } = CHANNELS.responses;
  return {
    deadLetterId: `dl_${sha256Hex(`${topic}\n${text}`).slice(0, 24)}`,
    kind: "unreadable", reason: error instanceof Problem ? error.code : "validation_failed",
    message: error instanceof Error ? error.message.slice(0, 2_000) : String(error),
    topic, app: "gateway", tries: 1, payload: text, payloadEncoding: "utf8", firstFailedAtMs: nowMs, lastFailedAtMs: nowMs,
  };
}
