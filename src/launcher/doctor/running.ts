/** Owns: the doctor's checks of a stack that runs on the data folder, or of the ports one would take. */
import { portWishes, chooseInstances } from "../plan.js";
import { isPortFree } from "../ports.js";
import { findPortHolder } from "../port-holder.js";
import { readRunFile } from "../run-file.js";
import { readRunRecord, type RunRecord } from "../run-record.js";
import { answersOk, outboundReady, type NotYet } from "../../dapr/probe.js";
import { fail, ok, warn, type CheckTask, type Finding } from "./check.js";

const SKEW_WARN_MS = 2_000;

/** Ports when nothing runs; health of every part when something does. */
export function runningChecks(dataDir: string, runFile: string): CheckTask[] {
  const record = readRunRecord(dataDir);
  if (record === undefined) return [{ name: "ports", run: () => checkPorts(runFile) }];
  return [
    { name: "stack", run: () => ok(`runs since process ${record.pid} started it, profile ${record.profile}`) },
    ...["sentry", "placement", "scheduler"].filter((name) => record.ports[`${name}.health`] !== undefined).map((name) => probeTask(name, () => answersOk(record.ports[`${name}.health`] ?? 0, "/healthz"))),
    ...instancesOf(record).flatMap((name) => [
      probeTask(`${name} app`, () => answersOk(record.ports[`${name}.app`] ?? 0, "/healthz")),
      probeTask(`${name} sidecar`, () => outboundReady({ port: record.ports[`${name}.http`] ?? 0, token: "" })),
    ]),
    { name: "clock", run: () => checkClock(record) },
  ];
}

function instancesOf(record: RunRecord): string[] {
  return Object.keys(record.ports).filter((name) => name.endsWith(".http")).map((name) => name.slice(0, -".http".length));
}

function probeTask(name: string, probe: () => Promise<NotYet>): CheckTask {
  return {
    name,
    run: async () => {
      const reason = await probe();
      return reason === undefined ? ok("healthy") : fail(reason, `See the log of ${name.replace(" sidecar", "-daprd").replace(" app", "")} in the data folder's logs/, then restart the stack.`);
    },
  };
}

async function checkPorts(runFile: string): Promise<Finding> {
  const wishes = portWishes(chooseInstances(readRunFile(runFile), [], {}));
  const taken: string[] = [];
  for (const [name, port] of Object.entries(wishes)) {
    if (port === undefined || (await isPortFree(port))) continue;
    taken.push(`${port} (${name}) is held by ${(await findPortHolder(port)) ?? "an unknown process"}`);
  }
  return taken.length === 0 ? ok("all free on 127.0.0.1") : warn(taken.join("\n"), "Stop that process, or start with --port <name>=<number> or --ports free.");
}

/** Expiry and grants compare clocks; on one machine they agree, behind a proxy or a container they may not. */
async function checkClock(record: RunRecord): Promise<Finding> {
  if (record.gatewayUrl === undefined) return ok("no gateway runs to compare with");
  const before = Date.now();
  const response = await fetch(record.gatewayUrl, { signal: AbortSignal.timeout(5_000) }).catch(() => undefined);
  if (response === undefined) return fail(`the gateway does not answer at ${record.gatewayUrl}`, "See logs/gateway.log in the data folder, then restart the stack.");
  const server = Date.parse(response.headers.get("date") ?? "");
  if (Number.isNaN(server)) return ok("the gateway tells no time");
  // The Date header has whole seconds.
  const skewMs = Math.max(0, Math.abs(server - (before + Date.now()) / 2) - 1_000);
  return skewMs > SKEW_WARN_MS ? warn(`the gateway's clock is ${Math.round(skewMs / 1000)} s away from this machine's`, "Synchronise the clocks (NTP): expiry and grants depend on them.") : ok("agrees with the gateway's");
}
