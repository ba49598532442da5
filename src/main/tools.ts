/** Owns: composing the `tools` app, the isolated worker. It holds tool code and tool secrets, never model keys or the session store. */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import { loadTools } from "../agent/loader.js";
import { STATE_STORES } from "../contracts/channels.js";
import { TOOL_CLAIMED, TOOL_COMPLETED } from "../contracts/tools.js";
import { DaprBus } from "../dapr/bus.js";
import { DaprCallStore } from "../dapr/call-store.js";
import { probeFencing } from "../dapr/fencing.js";
import { DaprState } from "../dapr/state.js";
import { keysDirOf } from "../platform/config.js";
import { loadSigner, loadTrust } from "../platform/keys.js";
import { runApp } from "../platform/lifecycle.js";
import { signResult, verifyGrant } from "../platform/signing.js";
import { builtinSettingsFrom, builtinTools } from "../tools/builtin/index.js";
import { CallRecord, createWorker, handleRelease, systemWorkerClock, Workspaces, type Results } from "../tools/index.js";
import { reporterOf } from "./reporting.js";
import { besideReceipts, deadLettersOf, letterBoxOf, listenForSidecar, sidecarOf, untilReady } from "./sidecar-parts.js";

const DAY_MS = 86_400_000;
const SWEEP_EVERY_MS = 3_600_000;

await runApp("tools", async ({ config, logger, logLevel, onStop }) => {
  const sidecar = sidecarOf(config);
  onStop("sidecar client", { stop: () => sidecar.close() });
  const worker = `${hostname()}-${String(process.pid)}-${randomBytes(3).toString("hex")}`;
  const keysDir = keysDirOf(config);
  const signer = await loadSigner(keysDir, "tools");
  const trust = await loadTrust(keysDir);
  const bus = new DaprBus(sidecar, { together: false });
  const state = new DaprState(sidecar, STATE_STORES.tools);
  const letters = letterBoxOf(bus, state, logger);
  const tools = await loadTools([config.agentsDir], builtinTools(builtinSettingsFrom(process.env)));
  const workspaces = new Workspaces(join(config.dataDir, "workspaces"));
  const grants = { verify: (jws: string) => verifyGrant(trust, jws, Date.now()) };
  const log: Parameters<typeof createWorker>[0]["log"] = (level, message, fields) => { logger[level](fields ?? {}, message); };
  const executor = createWorker({
    tools, store: new DaprCallStore(state, (document) => CallRecord.parse(document)), results: resultsOver(bus, worker),
    grants,
    signer: { sign: (claims) => signResult(signer, claims) },
    deadLetters: deadLettersOf(letters, "tools"),
    secrets: { find: (name) => process.env[`DOCKET_TOOL_SECRET_${name}`] },
    clock: systemWorkerClock, workspace: (actorId) => workspaces.open(actorId), log,
  }, { worker, maxConcurrent: config.toolConcurrency });
  onStop("sidecar listener", await listenForSidecar({ config, logger, logLevel }, {
    toolRequests: besideReceipts(({ deadLetterId }) => letters.received(deadLetterId), async (text) => await handleRelease({ grants, workspaces, log }, text) ?? await executor.handleRequest(text)),
  }));
  onStop("running tools", { stop: () => executor.drain() });
  onStop("workspace sweep", sweeping(() => workspaces.sweep(config.workspaceDays * DAY_MS), log));
  await untilReady(() => probeFencing(state, STATE_STORES.tools, config.allowUnsafeStore));
  letters.start();
  onStop("letter box", letters);
  const reporter = reporterOf({ app: "tools", instance: worker, sidecar, bus, stores: [STATE_STORES.tools], logger }, () => ({ tools: [...tools.keys()] }));
  reporter.start();
  onStop("reports", reporter);
  logger.info({ worker, tools: [...tools.keys()] }, "tools ready");
});

/** Claims and results as events: a new id for each publication, so that a broker's duplicate window swallows none. */
function resultsOver(bus: DaprBus, worker: string): Results {
  let count = 0;
  const publish = (type: string, data: { callId: string; sessionId: string; tenant: string; actorId: string; try: number }, traceparent?: string): Promise<void> => {
    count += 1;
    return bus.publish("toolResults", {
      specversion: "1.0", id: `${data.callId}:${String(data.try)}:${worker}:${String(count)}`, source: "docket://tools", type,
      subject: data.sessionId, tenant: data.tenant, partitionkey: data.actorId, data: JSON.stringify(data), ...(traceparent === undefined ? {} : { traceparent }),
    });
  };
  return { claimed: (claim) => publish(TOOL_CLAIMED, claim), completed: (result, traceparent) => publish(TOOL_COMPLETED, result, traceparent) };
}

/** Now and every hour. A failure is logged, and the next sweep comes all the same. */
function sweeping(sweep: () => Promise<number>, log: (level: "info" | "warn", message: string, fields: Record<string, unknown>) => void): { stop: () => Promise<void> } {
  const run = (): void => {
    sweep().then((removed) => { if (removed > 0) log("info", "workspaces that nobody used any more were removed", { removed }); },
      (error: unknown) => { log("warn", "workspaces could not be swept", { error: error instanceof Error ? error.message : String(error) }); });
  };
  run();
  const timer = setInterval(run, SWEEP_EVERY_MS);
  return { stop: () => { clearInterval(timer); return Promise.resolve(); } };
}
