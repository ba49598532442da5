/** Owns: what each app reports about itself to the console. */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { AppId } from "../contracts/channels.js";
import type { AppReport } from "../contracts/reports.js";
import type { DaprBus } from "../dapr/bus.js";
import { checkSidecar } from "../dapr/self-check.js";
import type { Sidecar } from "../dapr/sidecar.js";
import { systemClock } from "../platform/clock.js";
import type { Logger } from "../platform/log.js";
import { Reporter } from "../platform/reporter.js";

type Own = Partial<Pick<AppReport, "actors" | "agents" | "policy" | "limited" | "tools">>;

/** A name for this process, of machine, process and chance. */
export function instanceName(): string { return `${hostname()}-${String(process.pid)}-${randomBytes(3).toString("hex")}`; }

/** Reports what the app's sidecar is like and what `own` adds. */
export function reporterOf(parts: { readonly app: AppId; readonly instance: string; readonly sidecar: Sidecar; readonly bus: DaprBus; readonly stores: readonly string[]; readonly logger: Logger }, own: () => Own): Reporter {
  const { app, instance, sidecar, bus, stores, logger } = parts;
  return new Reporter({
    app, instance, clock: systemClock, logger,
    look: async () => ({ ...await checkSidecar(sidecar, app, stores), ...own() }),
    publish: (envelope) => bus.publish("deadLetters", envelope),
  });
}
