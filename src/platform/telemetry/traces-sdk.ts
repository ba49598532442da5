/** Owns: spans on their way out: facts become the SDK's spans, are batched, and sent as OTLP. The SDK's tracer is not used: what is said here has ended already. */
import { SpanKind, SpanStatusCode, type Attributes as OtelAttributes, type HrTime } from "@opentelemetry/api";
import type { Resource } from "@opentelemetry/resources";
import { BatchSpanProcessor, SamplingDecision, TraceIdRatioBasedSampler, type ReadableSpan, type SpanProcessor } from "@opentelemetry/sdk-trace-base";
import type { TelemetryOptions } from "./options.js";
import { resourceOf } from "./resource-sdk.js";
import { installTracer, type Attributes, type Sampling, type SpanFact } from "./trace.js";

/** What is ended goes out this soon, so that a process that is killed takes little with it. OTEL_BSP_SCHEDULE_DELAY wins. */
const EXPORT_EVERY_MS = 1_000;
/** A span without length is taken for a broken clock by some readers. */
const LEAST_MS = 0.001;
const SAMPLED = 1;
const KINDS = { internal: SpanKind.INTERNAL, server: SpanKind.SERVER, client: SpanKind.CLIENT, producer: SpanKind.PRODUCER, consumer: SpanKind.CONSUMER };

/** Gives what ends it, with all that was said sent. */
export async function startTraces({ app, env, content }: Pick<TelemetryOptions, "app" | "env" | "content">): Promise<() => Promise<void>> {
  const json = (env["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] ?? env["OTEL_EXPORTER_OTLP_PROTOCOL"]) === "http/json";
  const { OTLPTraceExporter } = json ? await import("@opentelemetry/exporter-trace-otlp-http") : await import("@opentelemetry/exporter-trace-otlp-proto");
  const processor = new BatchSpanProcessor(new OTLPTraceExporter(), (env["OTEL_BSP_SCHEDULE_DELAY"] ?? "") === "" ? { scheduledDelayMillis: EXPORT_EVERY_MS } : {});
  const uninstall = installTracer({ record: spanSink(processor, resourceOf(app)), sample: samplingOf(env), content });
  return async () => {
    uninstall();
    await processor.shutdown();
  };
}

/** Hands facts to a processor as the spans they are. */
export function spanSink(processor: Pick<SpanProcessor, "onEnd">, resource: Resource): (fact: SpanFact) => void {
  return (fact) => { processor.onEnd(readableSpan(fact, resource)); };
}

function readableSpan(fact: SpanFact, resource: Resource): ReadableSpan {
  const { traceId, spanId, parentId, error } = fact;
  const endMs = Math.max(fact.endMs, fact.startMs + LEAST_MS);
  const contextOf = (id: string, trace = traceId) => ({ traceId: trace, spanId: id, traceFlags: SAMPLED });
  return {
    name: fact.name, kind: KINDS[fact.kind], spanContext: () => contextOf(spanId),
    ...(parentId === undefined ? {} : { parentSpanContext: { ...contextOf(parentId), isRemote: true } }),
    startTime: hrTime(fact.startMs), endTime: hrTime(endMs), duration: hrTime(endMs - fact.startMs), ended: true,
    status: error === undefined ? { code: SpanStatusCode.UNSET } : { code: SpanStatusCode.ERROR, message: error },
    attributes: defined(error === undefined ? fact.attributes : { ...fact.attributes, "error.type": error }),
    links: (fact.links ?? []).map((link) => ({ context: contextOf(link.spanId, link.traceId), attributes: defined(link.attributes ?? {}) })),
    events: [], resource, instrumentationScope: { name: "docket" }, droppedAttributesCount: 0, droppedEventsCount: 0, droppedLinksCount: 0,
  };
}

function hrTime(ms: number): HrTime { return [Math.floor(ms / 1000), Math.round((ms % 1000) * 1e6)]; }

function defined(attributes: Attributes): OtelAttributes {
  const kept: OtelAttributes = {};
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) kept[key] = typeof value === "object" ? [...value] : value;
  return kept;
}

/** OTEL_TRACES_SAMPLER and its argument; default: the sender's word, and all traces that begin here. */
function samplingOf(env: NodeJS.ProcessEnv): Sampling {
  const name = env["OTEL_TRACES_SAMPLER"] ?? "parentbased_always_on";
  const ratio = new TraceIdRatioBasedSampler(Number(env["OTEL_TRACES_SAMPLER_ARG"] ?? 1));
  const root = (traceId: string): boolean => {
    if (name.endsWith("always_off")) return false;
    return !name.endsWith("ratio") || ratio.shouldSample(undefined, traceId).decision === SamplingDecision.RECORD_AND_SAMPLED;
  };
  return (traceId, parent) => (name.startsWith("parentbased") ? parent ?? root(traceId) : root(traceId));
}
