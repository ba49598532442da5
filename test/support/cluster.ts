/**
 * Owns: a real stack for tests: own free ports, own data folder, nothing left behind. Slow to start (about five seconds), so
 * start one per file and use fresh session ids per test.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { APPS, CHANNELS, DEAD_LETTER_TOPIC, type AppId, type Channel } from "../../src/contracts/channels.js";
import { startStack, type Stack, type StackOptions } from "../../src/launcher/stack.js";

export const REPO_ROOT = resolve(import.meta.dirname, "../..");

export interface TestStackOptions extends Partial<Omit<StackOptions, "ports">> {
  /** Run the probe app of test/fixtures instead of the real apps. */
  readonly probeApps?: boolean;
  /** Leave the data folder for inspection; also with DOCKET_KEEP_TEST_DATA=1. */
  readonly keepData?: boolean;
}

export interface TestStack {
  readonly stack: Stack;
  readonly dataDir: string;
  /** Calls an app on its sidecar-facing port, with the token its sidecar would send. */
  callApp(instance: string, path: string, init?: RequestInit): Promise<Response>;
  /** Calls an instance's sidecar, with the app's token. */
  callSidecar(instance: string, path: string, init?: RequestInit): Promise<Response>;
  /** Stops everything and removes the data folder. */
  close(): Promise<void>;
}

/** Starts a stack for a test file. Without `dataDir` it gets a folder of its own. */
export async function startTestStack(options: TestStackOptions = {}): Promise<TestStack> {
  const { probeApps = false, keepData = process.env["DOCKET_KEEP_TEST_DATA"] === "1", ...stackOptions } = options;
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), "docket-test-"));
  const removeData = (): void => {
    if (!keepData && options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true });
  };
  const stack = await startStack({
    profile: "embedded",
    root: REPO_ROOT,
    ports: "free",
    onExit: "ignore",
    readyTimeoutMs: 90_000,
    // Any suite can be run under mutual TLS: DOCKET_TEST_MTLS=1 npm test -- e2e.
    mtls: process.env["DOCKET_TEST_MTLS"] === "1",
    report: (line) => process.stderr.write(`[stack] ${line}\n`),
    ...(probeApps ? probeSettings() : {}),
    ...stackOptions,
    dataDir,
  }).catch((error: unknown) => {
    removeData();
    throw error;
  });
  return {
    stack,
    dataDir,
    callApp: (instance, path, init) => call(stack, instance, "APP_PORT", "APP_API_TOKEN", path, init),
    callSidecar: (instance, path, init) => call(stack, instance, "DAPR_HTTP_PORT", "DAPR_API_TOKEN", path, init),
    close: async () => {
      await stack.stop();
      removeData();
    },
  };
}

/** Polls until `probe` gives a value; fails with `what` when it does not in time. */
export async function eventually<T>(what: string, probe: () => Promise<T | undefined> | T | undefined, timeoutMs = 15_000): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (let last: unknown; ; ) {
    try {
      const value = await probe();
      if (value !== undefined) return value;
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadline) throw new Error(`Did not happen within ${timeoutMs} ms: ${what}`, { cause: last });
    await new Promise((next) => setTimeout(next, 100));
  }
}

function call(stack: Stack, instance: string, portKey: string, tokenKey: string, path: string, init: RequestInit = {}): Promise<Response> {
  const env = stack.envOf(instance);
  const headers = new Headers(init.headers);
  headers.set("dapr-api-token", env[tokenKey] ?? "");
  if (init.body !== undefined && !headers.has("content-type")) headers.set("content-type", "application/json");
  return fetch(`http://127.0.0.1:${env[portKey]}${path}`, { ...init, headers });
}

function probeSettings(): Pick<StackOptions, "commands" | "extraEnv"> {
  const command = ["node", join(REPO_ROOT, "test/fixtures/probe-app/probe-app.mjs")];
  const perApp = <T>(value: (appId: AppId) => T): Record<AppId, T> => Object.fromEntries(APPS.map((appId) => [appId, value(appId)])) as Record<AppId, T>;
  return {
    commands: perApp(() => command),
    extraEnv: perApp((appId) => ({ DOCKET_PROBE_SUBSCRIPTIONS: JSON.stringify(subscriptionsOf(appId)) })),
  };
}

function subscriptionsOf(appId: AppId): unknown[] {
  return Object.values<Channel>(CHANNELS)
    .filter((channel) => channel.subscribers.includes(appId))
    .map((channel) => ({
      pubsubname: channel.component,
      topic: channel.topic,
      route: `/on/${channel.component}`,
      ...(channel.delivery === "broadcast" || channel.topic === DEAD_LETTER_TOPIC ? {} : { deadLetterTopic: DEAD_LETTER_TOPIC }),
    }));
}
