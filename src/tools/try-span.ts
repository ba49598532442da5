/** Owns: what the worker says of one run of a tool: its span under the session's `execute_tool`, and its numbers. */
import type { ToolRequest } from "../contracts/tools.js";
import { measure } from "../platform/telemetry/metrics.js";
import { readTraceParent, recordSpan, spanIdOf, traceParentText, tracing } from "../platform/telemetry/trace.js";
import type { ClaimedTry, StoredResult } from "./record.js";

/** Gives the trace parent that the result goes on with; undefined where the request is not traced. */
export function recordTry({ request, claim, traceparent }: { readonly request: ToolRequest; readonly claim: ClaimedTry; readonly traceparent?: string | undefined }, result: StoredResult): string | undefined {
  const { tool, outcome, startedAtMs, endedAtMs, failure } = result;
  measure("docket.tool.duration.seconds", (endedAtMs - startedAtMs) / 1000, { tool, outcome });
  const parent = tracing() ? readTraceParent(traceparent) : undefined;
  if (parent?.sampled !== true) return undefined;
  const spanId = spanIdOf("try", request.callId, claim.try, claim.fence);
  const { sessionId } = request;
  recordSpan({
    name: `run ${tool}`, kind: "consumer", traceId: parent.traceId, spanId, parentId: parent.spanId, startMs: startedAtMs, endMs: endedAtMs, error: outcome === "succeeded" ? undefined : failure?.kind ?? outcome,
    attributes: {
      "gen_ai.conversation.id": sessionId, "session.id": sessionId, "langsmith.metadata.session_id": sessionId, "docket.run.id": request.runId, "docket.tenant": request.tenant, "gen_ai.tool.name": tool, "tool.name": tool,
      "docket.call.id": request.callId, "docket.try": claim.try, "docket.tool.outcome": outcome, "docket.worker": result.worker, "openinference.span.kind": "CHAIN",
    },
  });
  return traceParentText({ ...parent, spanId });
}
