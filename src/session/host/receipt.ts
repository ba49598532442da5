/** Owns: the session's receipt for an event: the gateway drops its inbox row on it, and lets what is behind it go (DESIGN 7.10). */
import type { Envelope } from "../../contracts/cloudevent.js";
import { eventKeyOf } from "../../contracts/ids.js";
import { EVENT_ACCEPTED, type EventAccepted } from "../../contracts/messages.js";

/** `rev`: the session's, 0 where no session ever saw the event. A new id for each, so that a broker's duplicate window swallows none. */
export function receiptFor(target: Pick<EventAccepted, "tenant" | "sessionId" | "actorId">, envelope: Envelope, said: { readonly verdict: string; readonly rev: number; readonly atMs: number }): Envelope {
  const { tenant, sessionId, actorId } = target;
  const key = eventKeyOf(envelope.source, envelope.id);
  const accepted: EventAccepted = { tenant, sessionId, actorId, key, rev: said.rev, verdict: said.verdict };
  return {
    specversion: "1.0", id: `receipt:${actorId}:${key}:${String(said.atMs)}`, source: "docket://sessions", type: EVENT_ACCEPTED,
    subject: sessionId, tenant, partitionkey: actorId, data: JSON.stringify(accepted),
  };
}
