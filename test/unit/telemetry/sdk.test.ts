/** The SDK behind it: what the environment switches on, spans as an exporter gets them, numbers as Prometheus reads them. */
import { afterEach, describe, expect, it } from "vitest";
import { defaultResource } from "@opentelemetry/resources";
import { InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { count, measure, metering, watch } from "../../../src/platform/telemetry/metrics.js";
import { startTelemetry, wantedOf, type Telemetry } from "../../../src/platform/telemetry/sdk.js";
import { spanSink } from "../../../src/platform/telemetry/traces-sdk.js";
import { recordSpan, sampled, traceIdOf, tracing } from "../../../src/platform/telemetry/trace.js";
import { choosePorts } from "../../../src/launcher/ports.js";
import { startCollector } from "../../support/spans.js";

let started: Telemetry | undefined;
afterEach(async () => {
  await started?.stop();
  started = undefined;
});
const base = { app: "sessions", content: false, metricsHost: "127.0.0.1" };
const span = { name: "chat m", kind: "client", traceId: traceIdOf("r"), spanId: "00f067aa0ba902b7", parentId: "00f067aa0ba902b8", startMs: 1_000, endMs: 1_250, attributes: { a: 1, left: undefined } } as const;

describe("what the environment switches on", () => {
  it("is nothing without an endpoint, and what has one with it", () => {
    const on = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318" };
    expect(wantedOf({})).toEqual({ traces: false, metrics: false });
    expect(wantedOf({ OTEL_EXPORTER_OTLP_ENDPOINT: "" })).toEqual({ traces: false, metrics: false });
    expect(wantedOf(on)).toEqual({ traces: true, metrics: true });
    expect(wantedOf({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://c:4318/v1/traces" })).toEqual({ traces: true, metrics: false });
    expect(wantedOf({ ...on, OTEL_METRICS_EXPORTER: "none" })).toEqual({ traces: true, metrics: false });
    expect(wantedOf({ ...on, OTEL_SDK_DISABLED: "true" })).toEqual({ traces: false, metrics: false });
  });

  it("leaves nobody who takes spans or numbers where it is nothing", async () => {
    started = await startTelemetry({ ...base, env: {} });
    expect([started.traces, started.metrics, tracing(), metering()]).toEqual([false, [], false, false]);
  });
});

describe("a span", () => {
  it("reaches an exporter with its ids, times, parent, link and error", () => {
    const exporter = new InMemorySpanExporter();
    const record = spanSink(new SimpleSpanProcessor(exporter), defaultResource());
    record({ ...span, links: [{ spanId: "aaaaaaaaaaaaaaaa" }], error: "transient" });
    const [seen] = exporter.getFinishedSpans();
    expect(seen).toMatchObject({ name: "chat m", kind: 2, startTime: [1, 0], endTime: [1, 250_000_000], duration: [0, 250_000_000], status: { code: 2, message: "transient" }, attributes: { a: 1, "error.type": "transient" }, parentSpanContext: { spanId: "00f067aa0ba902b8", traceId: span.traceId } });
    expect(Object.keys(seen!.attributes)).not.toContain("left");
    expect(seen!.links[0]!.context).toMatchObject({ spanId: "aaaaaaaaaaaaaaaa", traceId: span.traceId });
  });

  it("goes to the collector of the environment, whole at a stop, and is sampled as it says", async () => {
    const collector = await startCollector();
    process.env["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = `${collector.url}/v1/traces`;
    try {
      started = await startTelemetry({ ...base, env: { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json", OTEL_TRACES_SAMPLER: "parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG: "0" } });
      expect([sampled(span.traceId, undefined), sampled(span.traceId, true), sampled(span.traceId, false)]).toEqual([false, true, false]);
      recordSpan(span);
      await started.stop();
      expect(collector.spans).toMatchObject([{ name: "chat m", service: "sessions", parentId: "00f067aa0ba902b8", startMs: 1_000, endMs: 1_250, attributes: { a: 1 } }]);
      expect(tracing()).toBe(false);
    } finally {
      delete process.env["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
      await collector.stop();
    }
  });
});

describe("numbers", () => {
  it("are served to Prometheus under their documented names", async () => {
    const { metrics } = await choosePorts({ wishes: { metrics: undefined }, mode: "free", overrides: {} });
    started = await startTelemetry({ ...base, metricsPort: metrics!, env: {} });
    count("docket.runs.ended", 2, { agent: "clerk", outcome: "completed" });
    measure("docket.turn.duration.seconds", 0.004, { command: "Tick" });
    watch("docket.outbox.oldest.seconds", () => [{ value: 7 }]);
    watch("docket.sessions", () => Promise.reject(new Error("the database is away")));
    const page = await (await fetch(`http://127.0.0.1:${String(metrics)}/metrics`)).text();
    expect(page).toMatch(/^docket_runs_ended_total\{agent="clerk",outcome="completed"\} 2$/m);
    expect(page).toMatch(/^docket_turn_duration_seconds_bucket\{command="Tick",le="0.005"\} 1$/m);
    expect(page).toMatch(/^docket_outbox_oldest_seconds 7$/m);
    expect(page).toMatch(/service_name="sessions"/);
    await expect(startTelemetry({ ...base, metricsPort: metrics!, env: {} })).rejects.toThrow(/EADDRINUSE/);
  });
});
