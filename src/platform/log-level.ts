/**
 * Owns: changing the log level while the app runs: by SIGUSR2 (debug, and back), and for the route of the sidecar-facing listener
 * (docs/telemetry.md). It goes back by itself, so that nobody's disk is filled by a level that was forgotten.
 */
import type { Logger } from "./log.js";

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const DEFAULT_FOR_MS = 15 * 60_000;
export const MAX_FOR_MS = 24 * 3_600_000;

export interface LogLevelState { readonly level: string; /** When it goes back; left out where it is the configured one. */ readonly untilMs?: number }

export class LogLevelSwitch {
  readonly #configured: string;
  #back: { readonly timer: NodeJS.Timeout; readonly atMs: number } | undefined;

  constructor(private readonly logger: Logger, private readonly nowMs: () => number = Date.now) {
    this.#configured = logger.level;
  }

  state(): LogLevelState { return { level: this.logger.level, ...(this.#back === undefined ? {} : { untilMs: this.#back.atMs }) }; }

  /** Changes the level for a while. */
  set(level: LogLevel, forMs = DEFAULT_FOR_MS): LogLevelState {
    this.#forget();
    const before = this.logger.level;
    this.logger.level = level;
    if (level !== this.#configured) {
      const timer = setTimeout(() => { this.reset(); }, forMs);
      timer.unref();
      this.#back = { timer, atMs: this.nowMs() + forMs };
    }
    this.logger.warn({ before, ...this.state() }, "the log level was changed");
    return this.state();
  }

  /** Back to the configured one. */
  reset(): LogLevelState {
    this.#forget();
    this.logger.level = this.#configured;
    this.logger.info({ level: this.#configured }, "the log level is the configured one again");
    return this.state();
  }

  /** What SIGUSR2 does. */
  toggle(): void {
    if (this.logger.level === this.#configured) this.set("debug");
    else this.reset();
  }

  #forget(): void {
    clearTimeout(this.#back?.timer);
    this.#back = undefined;
  }
}
