/** Owns: what telemetry is started with. */
export interface TelemetryOptions {
  readonly app: string;
  /** Prompts and arguments too. */
  readonly content: boolean;
  /** Prometheus' text is served there. */
  readonly metricsPort?: number | undefined;
  readonly metricsHost: string;
  readonly env: NodeJS.ProcessEnv;
}
