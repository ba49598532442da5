/** Owns: numbers on their way out: the table's instruments in the SDK, read by Prometheus and pushed as OTLP. */
import type { Attributes } from "@opentelemetry/api";
import { PrometheusExporter } from "@opentelemetry/exporter-prometheus";
import { MeterProvider, PeriodicExportingMetricReader, type MetricReader } from "@opentelemetry/sdk-metrics";
import { INSTRUMENTS, installMeter, type Instrument, type MetricName } from "./metrics.js";
import type { TelemetryOptions } from "./options.js";
import { resourceOf } from "./resource-sdk.js";

/** Gives what ends it. Rejects where the port is taken: a scraper must not read another process. */
export async function startMetrics({ app, metricsPort: port, metricsHost: host }: TelemetryOptions, { otlp }: { readonly otlp: boolean }): Promise<() => Promise<void>> {
  const readers: MetricReader[] = [];
  if (port !== undefined) {
    const reader = new PrometheusExporter({ host, port, preventServerStart: true, withoutScopeInfo: true });
    await reader.startServer();
    readers.push(reader);
  }
  if (otlp) {
    const { OTLPMetricExporter } = await import("@opentelemetry/exporter-metrics-otlp-proto");
    readers.push(new PeriodicExportingMetricReader({ exporter: new OTLPMetricExporter() }));
  }
  const provider = new MeterProvider({ resource: resourceOf(app), readers });
  const meter = provider.getMeter("docket");
  const records = new Map<MetricName, (value: number, labels: Attributes) => void>();
  for (const [name, instrument] of Object.entries(INSTRUMENTS) as [MetricName, Instrument][]) {
    const { kind, buckets } = instrument;
    if (kind === "counter") {
      const counter = meter.createCounter(name, described(instrument));
      records.set(name, (value, labels) => { counter.add(value, labels); });
    } else if (kind === "histogram") {
      const histogram = meter.createHistogram(name, { ...described(instrument), ...(buckets === undefined ? {} : { advice: { explicitBucketBoundaries: [...buckets] } }) });
      records.set(name, (value, labels) => { histogram.record(value, labels); });
    }
  }
  const uninstall = installMeter({
    record: (name, value, labels) => { records.get(name)?.(value, labels); },
    watch: (name, read) => {
      meter.createObservableGauge(name, described(INSTRUMENTS[name])).addCallback(async (result) => {
        for (const { value, labels } of await read()) result.observe(value, labels ?? {});
      });
    },
  });
  return async () => {
    uninstall();
    await provider.shutdown();
  };
}

function described({ about, unit }: Instrument): { description: string; unit?: string } {
  return { description: about, ...(unit === undefined ? {} : { unit }) };
}
