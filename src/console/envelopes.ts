/** Owns: the events that the console sends: who sends them, for whom, and how their ids are made. */
import type { Envelope } from "../contracts/cloudevent.js";
import { actorIdOf } from "../contracts/ids.js";
import type { Authenticated } from "../platform/apikeys.js";

export const CONSOLE_SOURCE = "/docket/console";

export interface Outgoing {
  /** Deterministic wherever a repetition must be recognised. */
  readonly id: string;
  readonly type: string;
  readonly tenant: string;
  readonly sessionId: string;
  readonly data: unknown;
  readonly atMs: number;
  readonly by?: Authenticated["principal"];
  readonly causationId?: string;
  readonly expiresAtMs?: number;
  readonly traceparent?: string | undefined;
}

export function envelopeFor(out: Outgoing): Envelope {
  return {
    specversion: "1.0", id: out.id, source: CONSOLE_SOURCE, type: out.type, subject: out.sessionId, tenant: out.tenant,
    // The key that the gateway uses too: another one is another partition, and an operator's word overtakes what came before it.
    partitionkey: actorIdOf(out.tenant, out.sessionId),
    time: new Date(out.atMs).toISOString(), datacontenttype: "application/json", data: JSON.stringify(out.data),
    principal: JSON.stringify(out.by ?? { id: "docket/console", class: "system", roles: [] }),
    ...(out.causationId === undefined ? {} : { causationid: out.causationId }),
    ...(out.traceparent === undefined ? {} : { traceparent: out.traceparent }),
    ...(out.expiresAtMs === undefined ? {} : { expirytime: new Date(out.expiresAtMs).toISOString() }),
  };
}
