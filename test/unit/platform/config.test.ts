/** Configuration: one table, all problems at once, each with its source and what was meant. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadConfig, required, SETTINGS } from "../../../src/platform/config.js";

let folder: string;
beforeAll(() => { folder = mkdtempSync(join(tmpdir(), "docket-config-")); });
afterAll(() => { rmSync(folder, { recursive: true, force: true }); });

function file(text: string): string {
  const path = join(folder, `${String(Math.random())}.yaml`);
  writeFileSync(path, text);
  return path;
}

describe("configuration", () => {
  it("has a default for whatever is not given", () => {
    expect(loadConfig({}, join(folder, "none.yaml"))).toMatchObject({ appHost: "127.0.0.1", daprHttpPort: 3500, dataDir: ".docket", allowUnsafeStore: false });
  });

  it("lets the environment win over the file, and the file over the default", () => {
    const path = file("defaultAgent: from-file\nlogLevel: debug\n");
    expect(loadConfig({ DOCKET_DEFAULT_AGENT: "from-env" }, path)).toMatchObject({ defaultAgent: "from-env", logLevel: "debug" });
  });

  it("treats an empty variable as not set", () => {
    expect(loadConfig({ DOCKET_LOG_LEVEL: "" }, join(folder, "none.yaml")).logLevel).toBe("info");
  });

  it("fails with all problems at once, each with its place and a near match", () => {
    const path = file("logLevl: debug\nappPort: 99999\n");
    expect(() => loadConfig({ DAPR_HTTP_PORT: "abc", DOCKET_SESSIONS_ACTOR_KEY: "short" }, path)).toThrow(
      expect.objectContaining({ code: "config_invalid", message: expect.stringMatching(/4 problem[\s\S]*logLevl[\s\S]*did you mean "logLevel"[\s\S]*DAPR_HTTP_PORT[\s\S]*/) as string }) as Error);
  });

  it("says what is missing when an app cannot do without it", () => {
    expect(() => required(loadConfig({}, join(folder, "none.yaml")), "appPort")).toThrow(/APP_PORT is not set/);
  });

  it("refuses a file that is named and not there", () => {
    expect(() => loadConfig({ DOCKET_CONFIG: join(folder, "gone.yaml") })).toThrow(/does not exist/);
  });

  it("describes every setting, and gives each a variable of its own", () => {
    const settings = Object.values(SETTINGS);
    expect(new Set(settings.map((setting) => setting.env)).size).toBe(settings.length);
    for (const setting of settings) expect(setting.about.length).toBeGreaterThan(10);
  });
});
