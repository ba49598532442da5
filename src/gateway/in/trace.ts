/**
 * Owns: traces at the edge: an event's trace begins here or goes on with its sender's, and the envelope carries the span of its acceptance
 * on. A trace parent that is none is replaced (DESIGN 7.7).
 */
import { randomBytes } from "node:crypto";
import type { Envelope } from "../../contracts/cloudevent.js";
import { readTraceParent, recordSpan, sampled, spanIdOf, traceIdOf, traceParentText, tracing } from "../../platform/telemetry/trace.js";

/** The trace parent that an event goes on with: its acceptance, where that is traced; else its sender's, or a new one. */
export function traceOf(runId: string, sender: string | undefined): string {
  const parent = readTraceParent(sender);
  if (!tracing()) return parent !== undefined && sender !== undefined ? sender : `00-${randomBytes(16).toString("hex")}-${randomBytes(8).toString("hex")}-01`;
  const traceId = parent?.traceId ?? traceIdOf(runId);
  return traceParentText({ traceId, spanId: spanIdOf("accept", runId), sampled: sampled(traceId, parent?.sampled) });
}

/** Says that an event was accepted, under the span that its envelope names. */
export function recordAccepted(envelope: Envelope, { runId, sender, startMs, endMs }: { readonly runId: string; readonly sender: string | undefined; readonly startMs: number; readonly endMs: number }): void {
  const own = tracing() ? readTraceParent(envelope.traceparent) : undefined;
  if (own?.sampled !== true) return;
  const { traceId, spanId } = own;
  recordSpan({
    name: `accept ${envelope.type}`, kind: "server", traceId, spanId, parentId: readTraceParent(sender)?.spanId, startMs, endMs,
    attributes: {
      "gen_ai.conversation.id": envelope.subject, "session.id": envelope.subject, "langsmith.metadata.session_id": envelope.subject, "docket.run.id": runId, "docket.tenant": envelope.tenant, "gen_ai.agent.name": envelope.agent,
      "cloudevents.event_id": envelope.id, "cloudevents.event_source": envelope.source, "cloudevents.event_type": envelope.type, "openinference.span.kind": "CHAIN",
    },
  });
}

/** Says that the answer of a run has arrived at the edge: the end of its way. */
export function recordAnswered(envelope: Envelope, { sessionId, runId, outcome, atMs }: { readonly sessionId: string; readonly runId: string; readonly outcome: string; readonly atMs: number }): void {
  const stretch = tracing() ? readTraceParent(envelope.traceparent) : undefined;
  if (stretch?.sampled !== true) return;
  recordSpan({
    name: "answer", kind: "consumer", traceId: stretch.traceId, spanId: spanIdOf("answer", runId), parentId: stretch.spanId, startMs: atMs, endMs: atMs,
    attributes: { "gen_ai.conversation.id": sessionId, "session.id": sessionId, "langsmith.metadata.session_id": sessionId, "docket.run.id": runId, "docket.run.outcome": outcome, "openinference.span.kind": "CHAIN" },
  });
}
