/** Where the runtime is looked for, and what is said when there is none. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { cacheDirOf } from "../../../src/launcher/runtime/build.js";
import { locateDapr, locateNats } from "../../../src/launcher/runtime/locate.js";

const ROOT = resolve(import.meta.dirname, "../../..");
let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "docket-locate-"));
});
afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

function fakeBinaries(folder: string, names: readonly string[]): void {
  mkdirSync(folder, { recursive: true });
  for (const name of names) {
    writeFileSync(join(folder, name), "#!/bin/sh\necho 1.99.0\n");
    chmodSync(join(folder, name), 0o755);
  }
}

/** HOME is empty too, or a `dapr init` on this machine would be found. */
const options = (env: NodeJS.ProcessEnv) => ({ root: ROOT, report: () => undefined, build: false, env: { HOME: join(dir, "home"), ...env } });

describe("locateDapr", () => {
  it("takes DOCKET_RUNTIME_DIR first and reads the version off the binary", async () => {
    fakeBinaries(dir, ["daprd", "placement", "scheduler"]);
    expect(await locateDapr(options({ DOCKET_RUNTIME_DIR: dir }))).toMatchObject({ daprd: join(dir, "daprd"), version: "1.99.0" });
  });

  it("says what is missing in DOCKET_RUNTIME_DIR instead of looking elsewhere", async () => {
    fakeBinaries(dir, ["daprd"]);
    await expect(locateDapr(options({ DOCKET_RUNTIME_DIR: dir }))).rejects.toThrow(/placement, scheduler are not in it/);
  });

  it("finds what an earlier start built into the cache", async () => {
    const env = { DOCKET_CACHE_DIR: dir };
    fakeBinaries(cacheDirOf("dapr", ROOT, env), ["daprd", "placement", "scheduler"]);
    fakeBinaries(cacheDirOf("nats", ROOT, env), ["nats-server"]);
    expect((await locateDapr(options(env))).daprd).toContain(dir);
    expect(await locateNats(options(env))).toContain(dir);
  });

  it("names the two ways to get on when there is nothing", async () => {
    await expect(locateDapr(options({ DOCKET_CACHE_DIR: dir }))).rejects.toMatchObject({ code: "RUNTIME_MISSING", hint: expect.stringMatching(/install Go[\s\S]*dapr init/) as string });
  });

  it("keys the cache by the content of the module", () => {
    expect(cacheDirOf("dapr", ROOT, { DOCKET_CACHE_DIR: dir })).toMatch(/dapr-[0-9a-f]{16}-/);
    expect(cacheDirOf("dapr", ROOT, { DOCKET_CACHE_DIR: dir })).not.toBe(cacheDirOf("nats", ROOT, { DOCKET_CACHE_DIR: dir }));
  });
});
