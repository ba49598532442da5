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
import { loadSigner, loadTrust } from "../platform/keys.js";
import { errorFields } from "../platform/log.js";
import { runApp } from "../platform/lifecycle.js";
import { signAuditHead, signButton, signDecision, signLink, verifyAuditHead, verifyButton, verifyLink } from "../platform/signing.js";
import { loadCatalog } from "./catalog.js";
import { followedApiKeys, type KeyChange } from "./api-keys.js";
import { installedFrom, partsBehind } from "./console-parts.js";
import { noticesFrom } from "./notices.js";
import { signInFrom } from "./sign-in.js";
import { listenForSidecar, sidecarOf } from "./sidecar-parts.js";

const DAY_MS = 86_400_000;
/** Where `npm run build` puts the web pages. */
const WEB_DIR = fileURLToPath(new URL("../../web", import.meta.url));

await runApp("console", async ({ config, logger, logLevel, onStop }) => {
  const sidecar = sidecarOf(config);
  onStop("sidecar client", { stop: () => sidecar.close() });
  const bus = new DaprBus(sidecar);
  const keysDir = keysDirOf(config);
  const signer = await loadSigner(keysDir, "console");
  const trust = await loadTrust(keysDir);
  const audit: { keysChanged?: (change: KeyChange) => Promise<void> } = {};
  const apiKeys = await followedApiKeys(config, logger, (change) => {
    audit.keysChanged?.(change).catch((error: unknown) => { logger.error(errorFields(error), "a change of API keys could not be written into the audit"); });
  });
  onStop("API keys", apiKeys);
  const ops = createConsole({
    sessions: new SessionsClient(sidecar),
    tasks: { publish: (envelope) => bus.publish("tasks", envelope) },
    // Session hosts hand them on.
    receipts: { publish: (envelope) => bus.publish("tasks", envelope) },
    decisions: { publish: (envelope) => bus.publish("approvalsResolved", envelope) },
    signer: { sign: (claims) => signDecision(signer, claims) },
    auditSigner: { sign: (claims) => signAuditHead(signer, claims), verify: (jws, nowMs) => verifyAuditHead(trust, jws, nowMs) },
    noticeSigner: {
      signLink: (claims) => signLink(signer, claims), verifyLink: (jws, nowMs) => verifyLink(trust, jws, nowMs),
      signButton: (claims) => signButton(signer, claims), verifyButton: (jws, nowMs) => verifyButton(trust, jws, nowMs),
    },
    authenticator: apiKeys.keys, installed: installedFrom(await loadCatalog(config)), parts: partsBehind(sidecar), clock: systemClock, logger,
  }, ConsoleConfig.parse({
    trustProxyHops: config.trustProxyHops,
    database: config.consoleDatabase ?? join(config.dataDir, "console.db"), webDir: WEB_DIR, ...(config.consoleUrl === undefined ? {} : { origin: new URL(config.consoleUrl).origin }),
    ...signInFrom(config), notices: noticesFrom(config, process.env),
    retention: { idleMs: Math.ceil(config.sessionIdleDays * DAY_MS), closedMs: Math.ceil(config.sessionClosedDays * DAY_MS), journalMs: Math.ceil(config.journalKeepDays * DAY_MS), journalEntries: config.journalKeepEntries },
  }));
  audit.keysChanged = (change) => ops.keysChanged(change);
  onStop("sidecar listener", await listenForSidecar({ config, logger, logLevel }, {
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
