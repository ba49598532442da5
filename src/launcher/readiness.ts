/**
 * Owns: what "ready" means for each part, in the order it can become true, and the error that says which part is not, why, and
 * what its log said last.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { CHANNELS, SESSION_ACTOR_TYPE, type Channel } from "../contracts/channels.js";
import { componentsFor, type ComponentFile } from "./components.js";
import { LauncherError } from "./errors.js";
import type { ManagedProcess } from "./managed-process.js";
import type { Instance, InstanceTokens } from "./plan.js";
import type { PortMap } from "./ports.js";
import { actorAnswers, actorHostReady, answersAtAll, answersOk, componentsLoaded, outboundReady, subscribed, type NotYet } from "../dapr/probe.js";

const PROBE_ACTOR_ID = "docket-probe";
const POLL_MS = 150;

export interface Check {
  /** For example "sessions: actor host". */
  readonly label: string;
  /** Whose log explains it when it fails. */
  readonly process: string;
  readonly probe: () => Promise<NotYet>;
  readonly fix: string;
}

/** Checks of placement and scheduler, and of sentry where there is one. */
export function controlPlaneChecks(ports: PortMap): Check[] {
  return ["sentry", "placement", "scheduler"].filter((name) => ports[`${name}.health`] !== undefined).map((name) => ({
    label: name,
    process: name,
    probe: () => answersOk(ports[`${name}.health`] ?? 0, "/healthz"),
    fix: `Look into its log. A broken data folder is cured by removing the folder "${name === "sentry" ? "mtls" : name}" in the data directory.`,
  }));
}

/** Checks of one app and its sidecar, in order. */
export function instanceChecks(instance: Instance, ports: PortMap, tokens: InstanceTokens, components: readonly ComponentFile[]): Check[] {
  const { name, appId } = instance;
  const sidecar = { port: ports[`${name}.http`] ?? 0, token: tokens.daprApiToken };
  const publicPort = ports[`${name}.public`];
  const expected = componentsFor(appId, components).map((component) => component.name);
  const channels = Object.values<Channel>(CHANNELS).filter((channel) => channel.subscribers.includes(appId)).map((channel) => channel.component);
  const check = (label: string, process: string, fix: string, probe: () => Promise<NotYet>): Check => ({ label: `${name}: ${label}`, process, probe, fix });
  return [
    check("app health", name, "The app is not up: its log says why.", () => answersOk(ports[`${name}.app`] ?? 0, "/healthz")),
    ...(publicPort === undefined ? [] : [check("public address", name, "The app must listen on DOCKET_PUBLIC_PORT.", () => answersAtAll(publicPort))]),
    check("sidecar", `${name}-daprd`, "The sidecar could not start its components: is the broker up, are the component files right? `docket doctor` checks both.", () => outboundReady(sidecar)),
    check("components", `${name}-daprd`, "Compare the component files of the profile with the sidecar's log.", () => componentsLoaded(sidecar, expected)),
    check("subscriptions", `${name}-daprd`, "The app must list its channels at GET /dapr/subscribe, and the component's scopes must allow them.", () => subscribed(sidecar, channels)),
    ...(appId === "sessions"
      ? [
          check("actor host", `${name}-daprd`, "The sidecar must reach placement, and the session store must be an actor state store.", () => actorHostReady(sidecar)),
          check("actor call", name, `The app must answer ${SESSION_ACTOR_TYPE}/${PROBE_ACTOR_ID}/ping with {"ok":true}.`, () => actorAnswers(sidecar, SESSION_ACTOR_TYPE, PROBE_ACTOR_ID)),
        ]
      : []),
  ];
}

export interface AwaitOptions {
  readonly deadlineMs: number;
  readonly processes: ReadonlyMap<string, ManagedProcess>;
  readonly onReady?: (label: string) => void;
  readonly signal?: AbortSignal;
}

/** Passes the checks one after another; throws on the deadline, or as soon as the process behind a check is gone. */
export async function awaitChecks(checks: readonly Check[], options: AwaitOptions): Promise<void> {
  const deadline = Date.now() + options.deadlineMs;
  for (const check of checks) {
    for (let gone = false; ; ) {
      options.signal?.throwIfAborted();
      const reason = await check.probe();
      if (reason === undefined) break;
      if (gone || Date.now() > deadline) throw notReady(check, reason, options, gone);
      gone = options.processes.get(check.process)?.running === false;
      if (!gone) await sleep(POLL_MS);
    }
    options.onReady?.(check.label);
  }
}

function notReady(check: Check, reason: string, options: AwaitOptions, gone: boolean): LauncherError {
  const process = options.processes.get(check.process);
  const tail = (process?.recentLines ?? []).slice(-12).map((line) => `    ${line.slice(0, 400)}`);
  const when = gone ? `its process "${check.process}" has exited` : `not ready after ${Math.round(options.deadlineMs / 1000)} s`;
  return new LauncherError(
    "NOT_READY",
    `${check.label}: ${when}. ${reason}\n  Last lines of ${process?.spec.logFile ?? check.process}:\n${tail.join("\n") || "    (nothing)"}`,
    check.fix,
  );
}
