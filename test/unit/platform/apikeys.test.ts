/** API keys of an app: the file is followed, the development key is for loopback only, and uses are noted. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { followedApiKeys } from "../../../src/main/api-keys.js";
import { createApiKey, createApiKeys, writeApiKeyFile } from "../../../src/platform/apikeys.js";
import { loadConfig } from "../../../src/platform/config.js";
import { keepKeyUses, readKeyUses } from "../../../src/platform/key-uses.js";
import { ensureDevApiKeys } from "../../../src/platform/keys.js";
import { createLogger } from "../../../src/platform/log.js";

let dir: string;
beforeEach(() => { dir = mkdtempSync(join(tmpdir(), "docket-apikeys-")); });
afterEach(() => { rmSync(dir, { recursive: true }); });
const config = (publicHost: string) => loadConfig({ DOCKET_KEYS_DIR: dir, DOCKET_DATA_DIR: dir, DOCKET_PUBLIC_HOST: publicHost }, join(dir, "none.yaml"));
const follow = (publicHost: string) => followedApiKeys(config(publicHost), createLogger("test", "silent"));

it.each(["0.0.0.0", "::", "10.1.2.3", "console.example.com"])("an app does not start on %s with the development key; it does with other keys", async (host) => {
  const { record } = createApiKey({ tenant: "default", principalId: "ann", class: "person", roles: ["viewer"], scopes: ["*"] });
  await writeApiKeyFile(join(dir, "api-keys.json"), [record]);
  const started = await follow(host);
  expect(started.keys.development()).toBe(false);
  await started.stop();
  await ensureDevApiKeys(dir);
  await expect(follow(host)).rejects.toThrow("for this machine only");
});

it.each(["127.0.0.1", "localhost", "::1"])("on %s it does, and says that the keys are for development", async (host) => {
  const { devKeyFile } = await ensureDevApiKeys(dir);
  const started = await follow(host);
  expect(started.keys.development()).toBe(true);
  expect(started.keys.authenticate(`Bearer ${readFileSync(devKeyFile, "utf8").trim()}`).principal.id).toBe("dev-operator");
  await started.stop();
  expect((await readKeyUses(dir)).size).toBe(1);
});

it("notes when a key was last used, the latest of all processes, and forgets files of processes that are gone", async () => {
  const { key, record } = createApiKey({ tenant: "default", principalId: "ann", class: "person", scopes: ["*"] });
  for (const [pid, atMs] of [[4_000_001, 50], [4_000_002, 70], [4_000_003, 60]] as const) {
    const { keys, stop } = keepKeyUses(createApiKeys([record]), join(dir, `key-uses-${String(pid)}.json`), (error) => { throw error; }, { nowMs: () => atMs });
    keys.authenticate(`Bearer ${key}`);
    expect(() => keys.authenticate("Bearer dk_0000_00000000000000000000")).toThrow();
    await stop();
  }
  for (let again = 0; again < 2; again += 1) expect([...await readKeyUses(dir)]).toEqual([[record.id, 70]]);
});
