/** Owns: composing the `console` app. */
import { join } from "node:path";
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
import { followedApiKeys } from "./api-keys.js";
import { listenForSidecar, sidecarOf } from "./sidecar-parts.js";

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
    authenticator: apiKeys.keys, clock: systemClock, logger,
  }, ConsoleConfig.parse({ database: join(config.dataDir, "console.db") }));
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
