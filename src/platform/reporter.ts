/** Owns: telling the console periodically how an app is. A report that fails is followed by the next; nothing waits for one. */
import { randomUUID } from "node:crypto";
import type { Envelope } from "../contracts/cloudevent.js";
import { APP_REPORTED, type AppReport } from "../contracts/reports.js";
import type { Clock } from "./clock.js";
import { errorFields, type Logger } from "./log.js";

const EVERY_MS = 15_000;
/** A sidecar that is gone must not hold up the end of the app. */
const FAREWELL_MS = 1_000;

export interface ReporterDeps {
  readonly app: AppReport["app"]; readonly instance: string;
  /** What is so now. */
  readonly look: () => Promise<Omit<AppReport, "app" | "instance" | "startedAtMs" | "atMs" | "everyMs" | "stopping" | "node">>;
  readonly publish: (envelope: Envelope) => Promise<void>;
  readonly clock: Clock; readonly logger: Logger; readonly everyMs?: number;
}

export class Reporter {
  readonly #startedAtMs: number;
  readonly #everyMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly deps: ReporterDeps) {
    this.#startedAtMs = deps.clock.nowMs();
    this.#everyMs = deps.everyMs ?? EVERY_MS;
  }

  /** Reports at once and then periodically. */
  start(): void {
    const report = (): void => { this.report().catch((error: unknown) => { this.deps.logger.debug(errorFields(error), "a report on this app did not get out; the next one follows"); }); };
    report();
    this.#timer = setInterval(report, this.#everyMs).unref();
  }

  /** One report. Throws Problem where the broker does not take it. */
  async report(stopping = false): Promise<void> {
    const { app, instance, look, publish, clock } = this.deps;
    const data: AppReport = { app, instance, startedAtMs: this.#startedAtMs, atMs: clock.nowMs(), everyMs: this.#everyMs, stopping, node: process.version, ...(stopping ? { checks: [] } : await look()) };
    await publish({ specversion: "1.0", id: randomUUID(), source: `docket://${app}`, type: APP_REPORTED, data: JSON.stringify(data) });
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => { timer = setTimeout(resolve, FAREWELL_MS); });
    await Promise.race([this.report(true).catch(() => undefined), late]);
    clearTimeout(timer);
  }
}
