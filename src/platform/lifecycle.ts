/**
 * Owns: how a process starts and stops. Parts are stopped in the reverse order of their start, within a deadline; a
 * second signal, or the deadline, ends the process at once.
 */
import type { Logger } from "./log.js";
import { errorFields } from "./log.js";

export interface Stoppable { stop(): Promise<void> }

/** Runs `start`, then waits for SIGTERM or SIGINT and stops what `start` registered. Exit code 1 when start fails. */
export async function runApp(logger: Logger, start: (onStop: (name: string, part: Stoppable) => void) => Promise<void>): Promise<void> {
  const parts: { name: string; part: Stoppable }[] = [];
  process.on("unhandledRejection", (reason) => {
    // A bug, never an expected failure: record it and go on, since the guard recovers what was in flight (I14).
    logger.error(errorFields(reason), "unhandled rejection");
  });
  try {
    await start((name, part) => parts.push({ name, part }));
  } catch (error) {
    logger.fatal(errorFields(error), "the app could not start");
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  }
  let stopping = false;
  const stop = (signal: string): void => {
    if (stopping) process.exit(130);
    stopping = true;
    const deadline = setTimeout(() => process.exit(1), 20_000);
    deadline.unref();
    logger.info({ signal }, "stopping");
    void stopAll(logger, parts).then(() => process.exit(0));
  };
  process.on("SIGTERM", () => { stop("SIGTERM"); });
  process.on("SIGINT", () => { stop("SIGINT"); });
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
