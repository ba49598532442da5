/**
 * Owns: what the environment asks for, and that it is started and stopped. OpenTelemetry's SDK (the files `*-sdk.ts`) is loaded only then, so that
 * it costs nothing elsewhere. Standard variables (OTEL_*) are read as the SDK reads them.
 */
import type { TelemetryOptions } from "./options.js";

export interface Telemetry { readonly traces: boolean; readonly metrics: readonly ("prometheus" | "otlp")[]; stop(): Promise<void> }

/** Starts what the environment asks for. Throws where a port is taken. */
export async function startTelemetry(options: TelemetryOptions): Promise<Telemetry> {
  const { metricsPort } = options;
  const wanted = wantedOf(options.env);
  const stops: (() => Promise<void>)[] = [];
  if (wanted.traces) stops.push(await (await import("./traces-sdk.js")).startTraces(options));
  if (wanted.metrics || metricsPort !== undefined) stops.push(await (await import("./metrics-sdk.js")).startMetrics(options, { otlp: wanted.metrics }));
  return {
    traces: wanted.traces, metrics: [...(metricsPort === undefined ? [] : ["prometheus" as const]), ...(wanted.metrics ? ["otlp" as const] : [])],
    stop: async () => { await Promise.all(stops.map((stop) => stop())); },
  };
}

/** The specification's variables: an endpoint switches a signal on, `none` and OTEL_SDK_DISABLED switch it off. Pure. */
export function wantedOf(env: NodeJS.ProcessEnv): { readonly traces: boolean; readonly metrics: boolean } {
  const off = env["OTEL_SDK_DISABLED"]?.toLowerCase() === "true";
  const set = (name: string): boolean => (env[name] ?? "") !== "";
  const wants = (signal: "TRACES" | "METRICS"): boolean => !off && env[`OTEL_${signal}_EXPORTER`] !== "none" && (set("OTEL_EXPORTER_OTLP_ENDPOINT") || set(`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`));
  return { traces: wants("TRACES"), metrics: wants("METRICS") };
}
