/**
 * Owns: spans as facts. A span is said once, when what it tells of has ended, with both its times; nothing is "open" in memory. Its id is
 * computed from what it is about (a run, a call, a decision), so that any process, also one that was started after all others had died, knows
 * the parent of what it says (docs/telemetry.md).
 *
 * T1 without a sink (no exporter is configured) `tracing()` is false, and nobody builds a span.
 * T2 the same thing has the same span id in every process and after every restart.
 */
import { createHash } from "node:crypto";

export type AttributeValue = string | number | boolean | readonly string[];
export type Attributes = Readonly<Record<string, AttributeValue | undefined>>;

export interface SpanLink { readonly spanId: string; /** Default: the span's own trace. */ readonly traceId?: string; readonly attributes?: Attributes }

export interface SpanFact {
  readonly name: string;
  readonly kind: "internal" | "server" | "client" | "producer" | "consumer";
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId?: string | undefined;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  readonly links?: readonly SpanLink[];
  /** What failed: a short code, no text from outside. */
  readonly error?: string | undefined;
}

/** Where a span belongs. */
export interface TraceContext { readonly traceId: string; readonly spanId: string; readonly sampled: boolean }

/** Says whether a trace that begins here is recorded; `parent` where the sender has decided already. */
export type Sampling = (traceId: string, parent: boolean | undefined) => boolean;

interface Tracer { readonly record: (span: SpanFact) => void; readonly sample: Sampling; /** Prompts and arguments too. */ readonly content: boolean }

let tracer: Tracer | undefined;

/** Spans go there from now on; gives what takes it back. */
export function installTracer(sink: Tracer): () => void {
  const before = tracer;
  tracer = sink;
  return () => { tracer = before; };
}

/** Somebody takes spans. Ask before building one (T1). */
export function tracing(): boolean { return tracer !== undefined; }

/** Prompts, answers and arguments may be part of a span. */
export function contentTraced(): boolean { return tracer?.content === true; }

export function recordSpan(span: SpanFact): void { tracer?.record(span); }

export function sampled(traceId: string, parent: boolean | undefined): boolean { return tracer?.sample(traceId, parent) === true; }

/** Id of the span about that thing (T2). */
export function spanIdOf(what: "accept" | "run" | "chat" | "tool" | "try" | "ask" | "decide" | "turn" | "answer", ...id: readonly (string | number)[]): string {
  return digest([what, ...id].join("\n")).slice(0, 16);
}

/** Trace of a run whose sender brought none. */
export function traceIdOf(runId: string): string { return digest(`trace\n${runId}`).slice(0, 32); }

/** Undefined for what is no W3C trace parent, or one of zeros. */
export function readTraceParent(text: string | undefined): TraceContext | undefined {
  const match = text === undefined ? null : /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text);
  const [, version, traceId, spanId, flags] = match ?? [];
  if (traceId === undefined || spanId === undefined || version === "ff" || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, sampled: (parseInt(flags ?? "0", 16) & 1) === 1 };
}

export function traceParentText({ traceId, spanId, sampled: recorded }: TraceContext): string {
  return `00-${traceId}-${spanId}-${recorded ? "01" : "00"}`;
}

/** Of zeros alone an id may not be, and no digest is. */
function digest(text: string): string { return createHash("sha256").update(text).digest("hex").replace(/^0/, "1"); }
