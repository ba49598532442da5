/**
 * Owns: how a process starts and stops. Parts are stopped in the reverse order of their start, within a deadline; a
 * second signal, or the deadline, ends the process at once. A start that fails says why and what to do next, without a stack.
 */
import { Problem } from "../contracts/problems.js";
import { loadConfig, type Config } from "./config.js";
import { createLogger, errorFields, type Logger } from "./log.js";
import { LogLevelSwitch } from "./log-level.js";
import { startTelemetry } from "./telemetry/sdk.js";

/** Whoever stops an app from outside gives it longer than this. */
export const STOP_DEADLINE_MS = 20_000;

export interface Stoppable { stop(): Promise<void> }

export interface AppContext {
  readonly config: Config;
  readonly logger: Logger;
  readonly logLevel: LogLevelSwitch;
  /** Registers a part to be stopped. */
  readonly onStop: (name: string, part: Stoppable) => void;
}

/** Reads the configuration, runs `start`, then waits for SIGTERM or SIGINT and stops what `start` registered. Exit code 1 when it cannot start. */
export async function runApp(app: string, start: (context: AppContext) => Promise<void>): Promise<void> {
  const parts: { name: string; part: Stoppable }[] = [];
  const config = configOrExit(app);
  const logger = createLogger(app, config.logLevel);
  const logLevel = new LogLevelSwitch(logger);
  process.on("SIGUSR2", () => { logLevel.toggle(); });
  process.on("unhandledRejection", (reason) => {
    // A bug, never an expected failure: record it and go on, since the guard recovers what was in flight (I14).
    logger.error(errorFields(reason), "unhandled rejection");
  });
  try {
    const { metricsPort, metricsHost, traceContent: content } = config;
    const telemetry = await startTelemetry({ app, content, metricsPort, metricsHost, env: process.env });
    if (telemetry.traces || telemetry.metrics.length > 0) logger.info({ traces: telemetry.traces, metrics: telemetry.metrics, metricsPort }, "telemetry is on");
    parts.push({ name: "telemetry", part: telemetry });
    await start({ config, logger, logLevel, onStop: (name, part) => parts.push({ name, part }) });
  } catch (error) {
    logger.fatal(errorFields(error), "the app could not start");
    exitWith(app, error);
  }
  let stopping = false;
  const stop = (signal: string): void => {
    if (stopping) process.exit(130);
    stopping = true;
    const deadline = setTimeout(() => process.exit(1), STOP_DEADLINE_MS);
    deadline.unref();
    logger.info({ signal }, "stopping");
    void stopAll(logger, parts).then(() => process.exit(0));
  };
  process.on("SIGTERM", () => { stop("SIGTERM"); });
  process.on("SIGINT", () => { stop("SIGINT"); });
}

function configOrExit(app: string): Config {
  try {
    return loadConfig();
  } catch (error) {
    return exitWith(app, error);
  }
}

function exitWith(app: string, error: unknown): never {
  const hint = error instanceof Problem && error.hint !== undefined ? `\n  next: ${error.hint}` : "";
  process.stderr.write(`${app} could not start: ${error instanceof Error ? error.message : String(error)}${hint}\n`);
  process.exit(1);
}

async function stopAll(logger: Logger, parts: readonly { name: string; part: Stoppable }[]): Promise<void> {
  for (const { name, part } of [...parts].reverse()) {
    try {
      await part.stop();
    } catch (error) {
      logger.warn({ part: name, ...errorFields(error) }, "a part did not stop cleanly");
    }
  }
}
