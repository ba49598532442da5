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
import { CallRecord, createWorker, systemWorkerClock, workspacesIn, type Results } from "../tools/index.js";
import { deadLettersOf, listenForSidecar, sidecarOf, untilReady } from "./sidecar-parts.js";

await runApp("tools", async ({ config, logger, onStop }) => {
  const sidecar = sidecarOf(config);
  onStop("sidecar client", { stop: () => sidecar.close() });
  const worker = `${hostname()}-${String(process.pid)}-${randomBytes(3).toString("hex")}`;
  const keysDir = keysDirOf(config);
  const signer = await loadSigner(keysDir, "tools");
  const trust = await loadTrust(keysDir);
  const bus = new DaprBus(sidecar, { together: false });
  const state = new DaprState(sidecar, STATE_STORES.tools);
  const tools = await loadTools([config.agentsDir], builtinTools(builtinSettingsFrom(process.env)));
  const executor = createWorker({
    tools, store: new DaprCallStore(state, (document) => CallRecord.parse(document)), results: resultsOver(bus, worker),
    grants: { verify: (jws) => verifyGrant(trust, jws, Date.now()) },
    signer: { sign: (claims) => signResult(signer, claims) },
    deadLetters: deadLettersOf(bus, "tools"),
    secrets: { find: (name) => process.env[`DOCKET_TOOL_SECRET_${name}`] },
    clock: systemWorkerClock, workspace: workspacesIn(join(config.dataDir, "workspaces")),
    log: (level, message, fields) => { logger[level](fields ?? {}, message); },
  }, { worker, maxConcurrent: config.toolConcurrency });
  onStop("sidecar listener", await listenForSidecar(config, logger, { toolRequests: (text) => executor.handleRequest(text) }));
  onStop("running tools", { stop: () => executor.drain() });
  await untilReady(() => probeFencing(state, STATE_STORES.tools, config.allowUnsafeStore));
  logger.info({ worker, tools: [...tools.keys()] }, "tools ready");
});

/** Claims and results as events: a new id for each publication, so that a broker's duplicate window swallows none. */
function resultsOver(bus: DaprBus, worker: string): Results {
  let count = 0;
  const publish = (type: string, data: { callId: string; sessionId: string; tenant: string; actorId: string; try: number }): Promise<void> => {
    count += 1;
    return bus.publish("toolResults", {
      specversion: "1.0", id: `${data.callId}:${String(data.try)}:${worker}:${String(count)}`, source: "docket://tools", type,
      subject: data.sessionId, tenant: data.tenant, partitionkey: data.actorId, data: JSON.stringify(data),
    });
  };
  return { claimed: (claim) => publish(TOOL_CLAIMED, claim), completed: (result) => publish(TOOL_COMPLETED, result) };
}
