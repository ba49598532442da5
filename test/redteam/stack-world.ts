/**
 * Owns: the red team's world on the real stack: real daprd, broker and stores, each app a process of its own. Bytes on a topic go through the sidecar of the app that may
 * publish there (who else may is not asked here: test/integration/worker-jail.test.ts). What came of it is read from the stores' files, the tools' own, and the logs.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CHANNELS, SESSION_ACTOR_TYPE, type ChannelName } from "../../src/contracts/channels.js";
import type { JournalEntry } from "../../src/contracts/journal.js";
import { ensureDataSecrets } from "../../src/launcher/secrets.js";
import { createApiKey, readApiKeyFile, writeApiKeyFile, type ApiKeyRecord } from "../../src/platform/apikeys.js";
import { loadSigner } from "../../src/platform/keys.js";
import { REPO_ROOT } from "../support/cluster.js";
import { eventually, startDocket, type Docket } from "../support/docket.js";
import { agentsWith } from "../support/fixture-agents.js";
import { SLACK_SECRET, startReceiver, WEBHOOK_SECRET, type Receiver } from "../support/notices.js";
import { StoreView } from "../support/store-view.js";
import { GITHUB_SECRET, jsonLinesOf, RED_FOLDER, RED_NOTICES, redKey, RedWorld, STRIPE_SECRET, type App, type Effect, type KeyAbout, type LogLine } from "./world.js";

/** Keys that are made together are written together: the console looks at their file every few seconds. */
const TOGETHER_MS = 50;

export class StackWorld extends RedWorld {
  readonly patienceMs = 60_000;
  /** Well below what the console lets one address ask in a minute. */
  readonly pollMs = 250;
  actorKey = "";
  readonly #added: ApiKeyRecord[] = [];
  readonly #removed: string[] = [];
  #written: Promise<void> | undefined;
  #writing: Promise<unknown> = Promise.resolve();
  #home = "";
  #docket: Docket | undefined;
  #receiver: Receiver | undefined;

  async start(): Promise<this> {
    mkdirSync(join(REPO_ROOT, ".docket"), { recursive: true });
    this.#home = mkdtempSync(join(REPO_ROOT, ".docket/red-"));
    const dataDir = join(this.#home, "data");
    const { keysDir, sessionsActorKey } = await ensureDataSecrets(dataDir);
    this.actorKey = sessionsActorKey;
    for (const app of ["sessions", "console", "tools"] as const) this.signers.set(app, await loadSigner(keysDir, app));
    const receiver = await startReceiver();
    this.#receiver = receiver;
    const notices = join(this.#home, "notices.yaml");
    writeFileSync(notices, RED_NOTICES);
    await this.populate();
    await this.#writeKeys();
    const { agentsDir, scriptsDir } = await agentsWith(this.#home, [{ folder: "red-agent", name: "red" }], ["assistant"]);
    this.#docket = await startDocket({ dataDir, extraEnv: {
      all: { DOCKET_AGENTS_DIR: agentsDir, DOCKET_SCRIPTS_DIR: scriptsDir, DOCKET_POLICIES_DIR: join(RED_FOLDER, "policies"), DOCKET_DEFAULT_AGENT: "red" },
      gateway: { DOCKET_GITHUB_WEBHOOK_SECRETS: GITHUB_SECRET, DOCKET_STRIPE_WEBHOOK_SECRETS: STRIPE_SECRET },
      console: {
        DOCKET_NOTICES_FILE: notices, DOCKET_NOTICE_SECRET_SLACK_URL: `${receiver.url}/slack/services/T0/B0/secret-path`, DOCKET_NOTICE_SECRET_DISCORD_URL: `${receiver.url}/discord/api/webhooks/1/secret-path`,
        DOCKET_NOTICE_SECRET_HOOK_URL: `${receiver.url}/hook`, DOCKET_NOTICE_SECRET_HOOK_SECRET: WEBHOOK_SECRET, DOCKET_NOTICE_SECRET_SLACK_SIGNING: SLACK_SECRET,
      },
    } });
    return this;
  }

  get docket(): Docket { return this.#docket!; }
  get outside(): Receiver { return this.#receiver!; }
  url(app: App): string { return this.docket.test.stack.urls[app] ?? ""; }

  get effects(): Effect[] {
    const root = join(this.docket.dataDir, "workspaces");
    let folders: string[] = [];
    try { folders = readdirSync(root); } catch { /* nothing has run yet */ }
    const lines = folders.flatMap((folder) => jsonLinesOf(join(root, folder, "effects.jsonl")) as unknown as (Effect & { readonly atMs: number })[]);
    return lines.sort((a, b) => a.atMs - b.atMs);
  }
  get gatewayLog(): LogLine[] { return this.#log("gateway"); }
  get consoleLog(): LogLine[] { return this.#log("console"); }
  #log(app: App): LogLine[] { return jsonLinesOf(join(this.docket.dataDir, "logs", `${app}.log`)); }
  journal(sessionId: string, tenant?: string): JournalEntry[] { return new StoreView(this.docket.dataDir).journal(sessionId, tenant); }

  async key(id: string, about: KeyAbout = {}): Promise<string> {
    const made = createApiKey(redKey(id, about));
    this.keys.set(id, made.key);
    this.#added.push(made.record);
    await this.#known();
    return made.key;
  }
  async revoke(key: string): Promise<void> {
    this.#removed.push(key.split("_")[1] ?? "");
    await this.#known();
  }
  /** The console's audit says which keys it has seen come and go. Before the start there is nobody to know them. */
  async #known(): Promise<void> {
    if (this.#docket === undefined) return;
    this.#written ??= new Promise((resolve) => { setTimeout(resolve, TOGETHER_MS); }).then(async () => {
      this.#written = undefined;
      const changed = await this.#writeKeys();
      await eventually("the console to know the keys", async () => {
        const reply = await this.http("console", { method: "GET", path: "/v1/audit?limit=200", headers: { authorization: `Bearer ${this.docket.apiKey}` } });
        const seen = (reply.body["items"] as { action: string; target: string }[]).map(({ action, target }) => `${action} ${target}`);
        return changed.every((line) => seen.includes(line)) ? true : undefined;
      }, this.patienceMs);
    });
    await this.#written;
  }
  /** One after the other: the file is read and written. Gives what the console will say of it, in rows of its own tenant. */
  #writeKeys(): Promise<string[]> {
    const written = this.#writing.then(() => this.#writeNow());
    this.#writing = written;
    return written;
  }
  async #writeNow(): Promise<string[]> {
    const [added, removed] = [this.#added.splice(0), this.#removed.splice(0)];
    const file = join(this.#home, "data/keys/api-keys.json");
    const before = await readApiKeyFile(file);
    await writeApiKeyFile(file, [...before.filter(({ id }) => !removed.includes(id)), ...added]);
    return [...added.filter(({ tenant }) => tenant === "default").map(({ id }) => `api-key.added ${id}`), ...removed.map((id) => `api-key.removed ${id}`)];
  }

  async publish(channel: ChannelName, text: string): Promise<void> {
    const { component, topic, publishers: [publisher] } = CHANNELS[channel];
    const reply = await this.docket.test.callSidecar(publisher, `/v1.0/publish/${component}/${topic}`, { method: "POST", body: text, headers: { "content-type": "application/cloudevents+json" } });
    if (reply.status !== 204) throw new Error(`the sidecar of ${publisher} did not take it: ${String(reply.status)} ${await reply.text()}`);
  }
  readonly callActor = async (method: string, actorId: string, body: object): Promise<Record<string, unknown>> => {
    const reply = await this.docket.test.callSidecar("gateway", `/v1.0/actors/${SESSION_ACTOR_TYPE}/${actorId}/method/${method}`, { method: "PUT", body: JSON.stringify({ ...body, token: "red" }) });
    return await reply.json() as Record<string, unknown>;
  };
  /** It does so every few seconds. */
  flushRefusals(): Promise<void> { return Promise.resolve(); }

  async close(): Promise<void> {
    await this.#docket?.close();
    await this.#receiver?.close();
    rmSync(this.#home, { recursive: true, force: true });
  }
}
