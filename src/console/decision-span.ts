/**
 * Owns: the span of a person's decision, in the trace of the run that asked. Its parent is what brought the run's event in, and it links to the
 * question: between the two nobody had a span open.
 */
import type { PendingApproval } from "../contracts/decisions.js";
import { readTraceParent, recordSpan, spanIdOf, traceParentText, tracing, type TraceContext } from "../platform/telemetry/trace.js";

/** What was decided, by whom. */
interface Decided { readonly pending: PendingApproval; readonly request: { readonly kind: string }; readonly caller: { readonly principal: { readonly id: string } }; readonly via: string }

function runTraceOf(pending: PendingApproval): TraceContext | undefined {
  const context = tracing() ? readTraceParent(pending.traceparent) : undefined;
  return context?.sampled === true ? context : undefined;
}

/** Trace parent that a decision goes on with; undefined where its run is not traced. */
export function decisionTrace(pending: PendingApproval, decisionId: string): string | undefined {
  const context = runTraceOf(pending);
  return context === undefined ? undefined : traceParentText({ ...context, spanId: spanIdOf("decide", decisionId) });
}

/** Says that a decision was carried to its session. */
export function recordDecision({ pending, request, caller, via }: Decided, decisionId: string, { verdict, startMs, endMs }: { readonly verdict: string; readonly startMs: number; readonly endMs: number }): void {
  const context = runTraceOf(pending);
  if (context === undefined) return;
  const { record, sessionId, tenant } = pending;
  recordSpan({
    name: `decide ${record.tool ?? record.escalation ?? "approval"}`, kind: "server", traceId: context.traceId, spanId: spanIdOf("decide", decisionId), parentId: context.spanId, startMs, endMs,
    links: [{ spanId: spanIdOf("ask", record.approvalId), attributes: { "docket.link": "question" } }],
    attributes: {
      "gen_ai.conversation.id": sessionId, "session.id": sessionId, "langsmith.metadata.session_id": sessionId, "docket.run.id": record.runId, "docket.tenant": tenant,
      "docket.approval.id": record.approvalId, "docket.decision": request.kind, "docket.verdict": verdict, "docket.via": via, "enduser.id": caller.principal.id,
      "docket.waited.seconds": Math.max(0, Math.round((startMs - record.openedAtMs) / 1000)), "openinference.span.kind": "CHAIN",
    },
  });
}
