/** Owns: composing the `console` app. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ConsoleConfig } from "../console/config.js";
import { createConsole } from "../console/console.js";
import { DaprBus } from "../dapr/bus.js";
import { SessionsClient } from "../dapr/sessions-client.js";
import { systemClock } from "../platform/clock.js";
import { keysDirOf } from "../platform/config.js";
import { listen } from "../platform/http.js";
import { loadSigner } from "../platform/keys.js";
import { runApp } from "../platform/lifecycle.js";
import { signDecision } from "../platform/signing.js";
import { loadCatalog } from "./catalog.js";
import { followedApiKeys } from "./api-keys.js";
import { installedFrom, partsBehind } from "./console-parts.js";
import { listenForSidecar, sidecarOf } from "./sidecar-parts.js";

const DAY_MS = 86_400_000;
/** Where `npm run build` puts the web pages. */
const WEB_DIR = fileURLToPath(new URL("../../web", import.meta.url));

await runApp("console", async ({ config, logger, onStop }) => {
  const sidecar = sidecarOf(config);
  onStop("sidecar client", { stop: () => sidecar.close() });
  const bus = new DaprBus(sidecar);
  const keysDir = keysDirOf(config);
  const signer = await loadSigner(keysDir, "console");
  const apiKeys = await followedApiKeys(keysDir, logger);
  onStop("API keys", apiKeys);
  const ops = createConsole({
    sessions: new SessionsClient(sidecar),
    tasks: { publish: (envelope) => bus.publish("tasks", envelope) },
    decisions: { publish: (envelope) => bus.publish("approvalsResolved", envelope) },
    signer: { sign: (claims) => signDecision(signer, claims) },
    authenticator: apiKeys.keys, installed: installedFrom(await loadCatalog(config)), parts: partsBehind(sidecar), clock: systemClock, logger,
  }, ConsoleConfig.parse({
    database: join(config.dataDir, "console.db"), webDir: WEB_DIR, ...(config.consoleUrl === undefined ? {} : { origin: new URL(config.consoleUrl).origin }),
    retention: { idleMs: Math.ceil(config.sessionIdleDays * DAY_MS), closedMs: Math.ceil(config.sessionClosedDays * DAY_MS) },
  }));
  onStop("sidecar listener", await listenForSidecar(config, logger, {
    journal: (text) => ops.handleJournal(text),
    approvalsPending: (text) => ops.handleApprovalPending(text),
    deadLetters: (text, bytes) => ops.handleDeadLetter(text, bytes),
  }));
  const listening = await listen(ops.publicApp, { host: config.publicHost, port: config.publicPort ?? 7301 });
  onStop("public listener", { stop: () => listening.close() });
  await ops.start();
  onStop("console", ops);
  logger.info({ url: listening.url }, "console ready");
});
