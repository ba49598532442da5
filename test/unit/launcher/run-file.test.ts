/** dapr.yaml: what is read from it, and how a wrong one is refused. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { APPS } from "../../../src/contracts/channels.js";
import { readRunFile } from "../../../src/launcher/run-file.js";

const ROOT = resolve(import.meta.dirname, "../../..");
let dir: string;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "docket-runfile-"));
});
afterAll(() => {
  rmSync(dir, { recursive: true, force: true });
});

function read(yaml: string): ReturnType<typeof readRunFile> {
  const file = join(dir, "dapr.yaml");
  writeFileSync(file, yaml);
  return readRunFile(file);
}

describe("readRunFile", () => {
  it("reads the repository's own file: four apps, each with its configuration and lenient health checks", () => {
    const { apps } = readRunFile(join(ROOT, "dapr.yaml"));
    expect(apps.map((app) => app.appId)).toEqual([...APPS]);
    for (const app of apps) {
      expect(app.configFile).toBe(join(ROOT, `components/configuration/${app.appId}.yaml`));
      expect(app.dir).toBe(ROOT);
      expect(app.daprdFlags).toContain("--enable-app-health-check");
      expect(app.env).toMatchObject({ DAPR_HOST_IP: "127.0.0.1" });
    }
  });

  it("merges common values under the app's own and makes paths absolute", () => {
    const { apps } = read("version: 1\ncommon:\n  env: {A: 1, B: true}\n  configFilePath: c.yaml\napps:\n  - {appID: one, appDirPath: x, appPort: 1000, command: [node, a.js], env: {B: own}}\n");
    expect(apps[0]).toMatchObject({ dir: join(dir, "x"), configFile: join(dir, "c.yaml"), env: { A: "1", B: "own" } });
  });

  it("names every wrong field at once", () => {
    expect(() => read("version: 2\nappz: []\napps:\n  - {appID: Bad Name, appDirPath: ., appPort: 70000, command: []}\n")).toThrow(/version[\s\S]*apps\.0\.appPort/);
  });

  it("refuses two apps on one port, broken YAML and a missing file", () => {
    expect(() => read("version: 1\napps:\n  - {appID: a, appDirPath: ., appPort: 1000, command: [x]}\n  - {appID: b, appDirPath: ., appPort: 1000, command: [x]}\n")).toThrow(/appPort 1000/);
    expect(() => read("version: 1\napps: [")).toThrow(/not valid YAML/);
    expect(() => readRunFile(join(dir, "none.yaml"))).toThrow(/Cannot read the run file/);
  });
});
