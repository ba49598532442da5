/**
 * Owns: accepting an event: identity, envelope, inbox row, first publish, and the 202's content. Every way in (prompt,
 * CloudEvent, webhook, cancel) ends here.
 *
 * Invariants
 *   A1 (I1) 202 is said only after the inbox row is committed; a failed publish changes nothing, the sweeper repeats it.
 *   A2 (I2) the same source and id give the same row, run and answer; the same id with other content is refused.
 *   A3 tenant, principal, correlation and partition key come from the edge, never from the sender.
 *   A4 from outside only `com.docket.prompt.received.v1` of Docket's own types comes in.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Accepted } from "../../contracts/api.js";
import { MAX_EVENT_BYTES, serializeEnvelope, type Envelope, type Principal } from "../../contracts/cloudevent.js";
import { actorIdOf, eventKeyOf, runIdOf, SessionId, sha256Hex } from "../../contracts/ids.js";
import { canonicalize, parseForUse } from "../../contracts/json.js";
import { PROMPT_RECEIVED, PromptReceived, RESERVED_TYPE_PREFIX } from "../../contracts/messages.js";
import { Problem, zodErrors } from "../../contracts/problems.js";
import type { Clock } from "../../platform/clock.js";
import { faultPoint } from "../../platform/faults.js";
import { errorFields, type Logger } from "../../platform/log.js";
import type { GatewayConfig } from "../config.js";
import type { Lanes } from "../lanes.js";
import type { Inbox, Router, TaskPublisher } from "../ports.js";
import { count } from "../../platform/telemetry/metrics.js";
import { logsAbout } from "../../platform/log-context.js";
import { recordAccepted, traceOf } from "./trace.js";

/** Whom the edge authenticated. */
export interface Sender { readonly tenant: string; readonly principal: Principal }

/** An event as its sender gave it. `data` is JSON text, digits kept. */
export interface Incoming {
  readonly source: string;
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly subject?: string;
  readonly agent?: string;
  readonly busymode?: string;
  readonly time?: string;
  readonly expirytime?: string;
  readonly traceparent?: string;
  readonly causationid?: string;
  readonly idempotencykey?: string;
  readonly datacontenttype?: string;
  readonly dataschema?: string;
}

/** Where an event goes. No agent: the session decides (commands to a session that is there). */
export interface Destination { readonly sessionId: string; readonly agent?: string }

export interface AcceptDeps {
  readonly publisher: TaskPublisher;
  readonly inbox: Inbox;
  readonly lanes: Pick<Lanes, "enter" | "has">;
  readonly route: Router;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly config: GatewayConfig;
}

/** What the way in knows beyond the event: the session it was sent to (wins over a trigger), and that session's agent. */
export interface Addressed { readonly sessionId?: string; readonly agent?: string | undefined }

/** Routes and accepts. Throws Problem. */
export async function acceptEvent(deps: AcceptDeps, sender: Sender, incoming: Incoming, addressed: Addressed = {}): Promise<Accepted> {
  assertAllowedType(incoming);
  const { sessionId } = addressed;
  const sent: Incoming = sessionId === undefined ? incoming : { ...incoming, subject: readSessionId(sessionId) };
  const agent = sent.agent ?? addressed.agent;
  const routed = route(deps.route, agent === undefined ? sent : { ...sent, agent });
  return acceptFor(deps, sender, sent, { sessionId: sessionId ?? routed.sessionId, agent: routed.agent });
}

/** Accepts for a known destination. Throws Problem. */
export async function acceptFor(deps: AcceptDeps, sender: Sender, incoming: Incoming, to: Destination): Promise<Accepted> {
  const startedAtMs = deps.clock.nowMs();
  const sessionId = readSessionId(to.sessionId);
  const actorId = actorIdOf(sender.tenant, sessionId);
  const eventKey = eventKeyOf(incoming.source, incoming.id);
  const runId = runIdOf(actorId, eventKey);
  const envelope = envelopeFor(deps, sender, incoming, { sessionId, actorId, runId, ...(to.agent === undefined ? {} : { agent: to.agent }) });
  logsAbout([runId, actorId], { tenant: sender.tenant, sessionId, runId, ...(envelope.traceparent === undefined ? {} : { traceId: envelope.traceparent.slice(3, 35) }) });
  const envelopeText = serializeEnvelope(envelope);
  if (Buffer.byteLength(envelopeText) > MAX_EVENT_BYTES) {
    throw new Problem("payload_too_large", `the event has ${Buffer.byteLength(envelopeText)} bytes with its attributes; the limit is ${MAX_EVENT_BYTES}`, { hint: "store the payload elsewhere and send a reference" });
  }
  const accepted = answerFor(sender.tenant, { sessionId, runId, eventKey, agent: to.agent ?? "", eventId: incoming.id, eventSource: incoming.source });
  const nowMs = deps.clock.nowMs();
  // The answer is remembered by tenant and event, not by session: one key names one request, wherever it is sent (A2).
  const identity = { key: sha256Hex(`${sender.tenant}\n${eventKey}`).slice(0, 32), digest: digestOf(incoming), answer: JSON.stringify(accepted) };
  const rowKey = inboxKeyOf(actorId, eventKey);
  const added = await deps.inbox.add({ key: rowKey, envelopeText, acceptedAtMs: nowMs, publishedAtMs: nowMs, attempts: 1 }, identity);
  if (added.status === "exists") {
    if (added.remembered.digest !== identity.digest) throw keyReused(incoming.id);
    // An earlier try was stored and got no answer, so it never was on its way: what comes next would overtake it (I3).
    if (!deps.lanes.has(actorId, rowKey) && await deps.inbox.holds(rowKey)) await firstPublish(deps, envelope, rowKey);
    count("docket.events.accepted", 1, { result: "again" });
    return JSON.parse(added.remembered.answer) as Accepted;
  }
  faultPoint("after-inbox-row");
  await firstPublish(deps, envelope, rowKey);
  count("docket.events.accepted", 1, { result: "new" });
  recordAccepted(envelope, { runId, sender: incoming.traceparent, startMs: startedAtMs, endMs: deps.clock.nowMs() });
  return accepted;
}

/** Row key of an event: the hash that also names its run, so that a receipt (actor and event key) finds it. */
export function inboxKeyOf(actorId: string, eventKey: string): string { return runIdOf(actorId, eventKey); }

/** Throws Problem `validation_failed` for what can be no session id. */
export function readSessionId(text: string): string {
  const parsed = SessionId.safeParse(text);
  if (!parsed.success) throw new Problem("validation_failed", `the session id is not usable: ${parsed.error.issues.map((issue) => issue.message).join("; ")}`, { hint: "1 to 200 characters, no control characters" });
  return parsed.data;
}

function assertAllowedType(incoming: Incoming): void {
  if (!incoming.type.startsWith(RESERVED_TYPE_PREFIX)) return;
  if (incoming.type !== PROMPT_RECEIVED) {
    throw new Problem("reserved_type", `events of type ${incoming.type} are made by Docket only`, { hint: `use a type outside ${RESERVED_TYPE_PREFIX}, or ${PROMPT_RECEIVED}` });
  }
  const prompt = PromptReceived.safeParse(parseForUse(incoming.data));
  if (!prompt.success) throw new Problem("validation_failed", `the data is not that of ${PROMPT_RECEIVED}`, { errors: zodErrors(prompt.error) });
}

/** Asks the router. A trigger is user code: whatever it throws is a refusal of this event, never a crash (I14). */
function route(router: Router, incoming: Incoming): { agent: string; sessionId: string } {
  let decision: ReturnType<Router>;
  try {
    decision = router({ specversion: "1.0", ...incoming });
  } catch (error) {
    throw new Problem("agent_unknown", `an agent's trigger failed on ${incoming.type} ${incoming.id}`, { cause: error, hint: "triggers must be pure and must not throw" });
  }
  if (!decision.ok) throw decision.problem;
  return { agent: decision.agent.name, sessionId: decision.sessionId };
}

function envelopeFor(deps: AcceptDeps, sender: Sender, incoming: Incoming, ids: { sessionId: string; actorId: string; runId: string; agent?: string }): Envelope {
  const nowMs = deps.clock.nowMs();
  const expirytime = incoming.expirytime ?? new Date(nowMs + deps.config.expiryMs).toISOString();
  if (Date.parse(expirytime) <= nowMs) throw new Problem("expired", `the event's expirytime ${expirytime} has passed`, { hint: "nothing was done; send it again with a later expiry" });
  const { source, id, type, data, busymode, causationid, idempotencykey, dataschema, datacontenttype } = incoming;
  return {
    specversion: "1.0", id, source, type, data, expirytime,
    subject: ids.sessionId, tenant: sender.tenant, principal: JSON.stringify(sender.principal),
    partitionkey: ids.actorId, correlationid: ids.runId, time: incoming.time ?? new Date(nowMs).toISOString(),
    traceparent: traceOf(ids.runId, incoming.traceparent), datacontenttype: datacontenttype ?? "application/json",
    ...(ids.agent === undefined ? {} : { agent: ids.agent }),
    ...(busymode === undefined ? {} : { busymode }), ...(causationid === undefined ? {} : { causationid }),
    ...(idempotencykey === undefined ? {} : { idempotencykey }), ...(dataschema === undefined ? {} : { dataschema }),
  };
}

/** What makes two sendings of one id the same event: what was sent, not how it was routed. Time stamps and traces may differ between retries. */
function digestOf(incoming: Incoming): string {
  const { type, subject, agent, busymode, expirytime } = incoming;
  return sha256Hex(JSON.stringify([type, subject ?? null, agent ?? null, busymode ?? null, expirytime ?? null, canonicalize(incoming.data)]));
}

/** Publishes once, or leaves it to the session's lane, waiting a bounded time so that one client's requests are published in their order (I3). */
async function firstPublish(deps: AcceptDeps, envelope: Envelope, rowKey: string): Promise<void> {
  const published = deps.lanes.enter(envelope.partitionkey ?? "", rowKey, () => deps.publisher.publish(envelope)).catch((error: unknown) => {
    deps.logger.warn({ eventId: envelope.id, ...errorFields(error) }, "the first publish failed; the sweeper repeats it");
  });
  const waiting = new AbortController();
  await Promise.race([published, sleep(deps.config.publishWaitMs, undefined, { signal: waiting.signal }).catch(() => undefined)]);
  waiting.abort();
}

function answerFor(tenant: string, ids: Omit<Accepted, "tenant" | "links">): Accepted {
  const session = `/v1/sessions/${encodeURIComponent(ids.sessionId)}`;
  return { tenant, ...ids, links: { session, stream: `${session}/stream?wait=1&until=run:${ids.runId}`, outcome: `${session}/events/${ids.eventKey}` } };
}

function keyReused(id: string): Problem {
  return new Problem("idempotency_key_reused", `the event id or Idempotency-Key ${JSON.stringify(id.slice(0, 100))} was used before with other content`, { hint: "use a new key for a new request; repeat the same request to get the same answer" });
}
