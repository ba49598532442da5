/** Prometheus' own tool runs the rules' tests, and reads how Prometheus is to find the apps. */
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { REPO_ROOT } from "../support/cluster.js";
import { prometheusBinary } from "../support/prometheus.js";

let home: string;
let promtool: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "docket-promtool-"));
  promtool = prometheusBinary("promtool", home);
});
afterAll(() => { rmSync(home, { recursive: true, force: true }); });

describe("alert rules", () => {
  const folder = join(REPO_ROOT, "observability");
  const succeeds = (args: readonly string[], cwd = folder): void => {
    const { status, stdout, stderr } = spawnSync(promtool, args, { cwd, encoding: "utf8" });
    expect(`${stdout}${stderr}`).toContain("SUCCESS");
    expect(`${stdout}${stderr}`).not.toContain("FAILED");
    expect(status).toBe(0);
  };

  it.each([["check", "rules", "alerts.yaml"], ["test", "rules", "alerts.test.yaml"]])("promtool %s %s %s", (...args) => { succeeds(args); });

  // Debian's build of Prometheus cannot discover pods, and does not know the word. What is discovered: test/integration/manifests.test.ts.
  it("promtool check config scrape.yaml, as far as this promtool knows its words", () => {
    const { stdout, stderr } = spawnSync(promtool, ["check", "config", "scrape.yaml"], { cwd: folder, encoding: "utf8" });
    if (!`${stdout}${stderr}`.includes("field kubernetes_sd_configs not found")) { succeeds(["check", "config", "scrape.yaml"]); return; }
    const config = parse(readFileSync(join(folder, "scrape.yaml"), "utf8")) as { scrape_configs: { kubernetes_sd_configs?: unknown; static_configs?: unknown }[] };
    for (const scrape of config.scrape_configs) {
      delete scrape.kubernetes_sd_configs;
      scrape.static_configs = [{ targets: ["127.0.0.1:9464"] }];
    }
    writeFileSync(join(home, "scrape.yaml"), stringify(config));
    copyFileSync(join(folder, "alerts.yaml"), join(home, "alerts.yaml"));
    succeeds(["check", "config", "scrape.yaml"], home);
  });
});
