/** Owns: spans as tests see them, whatever brought them (memory, OTLP, Jaeger), and what must hold of a trace: one tree, no orphan, nothing open over a wait. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";
import { installTracer, type SpanFact } from "../../src/platform/telemetry/trace.js";

export interface SeenSpan {
  readonly name: string; readonly service: string; readonly traceId: string; readonly spanId: string; readonly parentId: string | undefined;
  readonly startMs: number; readonly endMs: number; readonly attributes: Readonly<Record<string, unknown>>; readonly links: readonly string[]; readonly failed: boolean;
}

/** Collects facts of this process. */
export function collectSpans(options: { readonly content?: boolean; readonly sample?: boolean } = {}): { readonly spans: SeenSpan[]; stop(): void } {
  const spans: SeenSpan[] = [];
  const stop = installTracer({ record: (fact) => { spans.push(seen(fact)); }, sample: (_traceId, parent) => parent ?? options.sample ?? true, content: options.content === true });
  return { spans, stop };
}

function seen({ name, traceId, spanId, parentId, startMs, endMs, attributes, links = [], error }: SpanFact): SeenSpan {
  return { name, service: "test", traceId, spanId, parentId, startMs, endMs, attributes, links: links.map((link) => link.spanId), failed: error !== undefined };
}

/** What is wrong with a trace as a tree. `outside`: the sender's span, if it had one. */
export function treeProblems(spans: readonly SeenSpan[], outside?: string): string[] {
  const ids = new Map(spans.map((span) => [span.spanId, span]));
  const problems: string[] = [];
  if (new Set(spans.map(({ traceId }) => traceId)).size > 1) problems.push("more than one trace");
  if (ids.size !== spans.length) problems.push(`a span came twice: ${spans.filter((span) => ids.get(span.spanId) !== span).map(({ name }) => name).join(", ")}`);
  const roots = spans.filter(({ parentId }) => parentId === undefined || parentId === outside);
  if (roots.length !== 1) problems.push(`${String(roots.length)} roots: ${roots.map(({ name }) => name).join(", ")}`);
  for (const span of spans) {
    if (span.parentId !== undefined && span.parentId !== outside && !ids.has(span.parentId)) problems.push(`${span.name} is an orphan`);
    for (const link of span.links) if (!ids.has(link)) problems.push(`${span.name} links to nothing`);
    if (span.endMs < span.startMs) problems.push(`${span.name} ends before it begins`);
  }
  return problems;
}

/** Each span as `parent > name`, in order of their begin. */
export function branches(spans: readonly SeenSpan[]): string[] {
  const names = new Map(spans.map((span) => [span.spanId, span.name]));
  return [...spans].sort((a, b) => a.startMs - b.startMs).map((span) => `${names.get(span.parentId ?? "") ?? "-"} > ${span.name}`);
}

const Value = z.object({ stringValue: z.string().optional(), intValue: z.union([z.string(), z.number()]).optional(), doubleValue: z.number().optional(), boolValue: z.boolean().optional(), arrayValue: z.unknown().optional() });
const Attributes = z.array(z.object({ key: z.string(), value: Value })).default([]);
const Exported = z.object({ resourceSpans: z.array(z.object({
  resource: z.object({ attributes: Attributes }),
  scopeSpans: z.array(z.object({ spans: z.array(z.object({
    name: z.string(), traceId: z.string(), spanId: z.string(), parentSpanId: z.string().optional(), startTimeUnixNano: z.string(), endTimeUnixNano: z.string(), attributes: Attributes,
    links: z.array(z.object({ spanId: z.string() })).default([]), status: z.object({ code: z.number().optional() }).default({}),
  })) })),
})) });

/** Spans of what an OTLP/JSON request or Jaeger's `/api/v3` answer holds. */
export function readOtlp(body: unknown): SeenSpan[] {
  return Exported.parse(body).resourceSpans.flatMap(({ resource, scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans.map((span): SeenSpan => ({
    name: span.name, service: String(plain(resource.attributes)["service.name"]), traceId: span.traceId, spanId: span.spanId,
    parentId: span.parentSpanId === undefined || span.parentSpanId === "" ? undefined : span.parentSpanId,
    startMs: Number(BigInt(span.startTimeUnixNano) / 1_000_000n), endMs: Number(BigInt(span.endTimeUnixNano) / 1_000_000n),
    attributes: plain(span.attributes), links: span.links.map((link) => link.spanId), failed: span.status.code === 2,
  }))));
}

function plain(attributes: z.infer<typeof Attributes>): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value: { stringValue, intValue, doubleValue, boolValue, arrayValue } }) => [key, stringValue ?? (intValue === undefined ? undefined : Number(intValue)) ?? doubleValue ?? boolValue ?? arrayValue]));
}

/** A collector for OTLP/JSON on a free port. */
export async function startCollector(): Promise<{ readonly url: string; readonly spans: SeenSpan[]; stop(): Promise<void> }> {
  const spans: SeenSpan[] = [];
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on("data", (chunk: Buffer) => { chunks.push(chunk); }).on("end", () => {
      if (req.url === "/v1/traces") spans.push(...readOtlp(JSON.parse(Buffer.concat(chunks).toString("utf8"))));
      res.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  });
  await new Promise<void>((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`, spans,
    stop: () => new Promise((resolve) => { server.close(() => { resolve(); }); server.closeAllConnections(); }),
  };
}
