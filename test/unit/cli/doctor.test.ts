/** `docket doctor` finds what would stop an app at its start: broken settings and broken policies. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { configurationCheck, policyCheck } from "../../../src/cli/commands/doctor.js";

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "docket-doctor-"));
  mkdirSync(join(root, "policies"));
  writeFileSync(join(root, "policies", "ok.yaml"), "version: 1\nrules: []\n");
});
afterAll(() => { rmSync(root, { recursive: true, force: true }); });

describe("the doctor", () => {
  it("is content with what works", () => {
    expect(configurationCheck({ env: {} }, root)).toMatchObject({ status: "ok" });
    expect(policyCheck({ env: {} }, root)).toMatchObject({ status: "ok", detail: expect.stringContaining("1 file, ") as string });
  });

  it("names every setting that is wrong, short webhook secrets too", () => {
    expect(configurationCheck({ env: { DOCKET_LOG_LEVEL: "loud", OPENAI_BASE_URL: "nonsense", DOCKET_STRIPE_WEBHOOK_SECRETS: "whsec" } }, root)).toMatchObject({
      status: "fail", detail: expect.stringMatching(/3 problem.*DOCKET_LOG_LEVEL.*OPENAI_BASE_URL.*DOCKET_STRIPE_WEBHOOK_SECRETS: each secret must have 8/) as string });
    writeFileSync(join(root, "docket.config.yaml"), "logLevl: debug\n");
    expect(configurationCheck({ env: {} }, root)).toMatchObject({ status: "fail", detail: expect.stringContaining("did you mean \"logLevel\"") as string });
  });

  it("names what is wrong with a policy, or that there is none", () => {
    writeFileSync(join(root, "policies", "zz.yaml"), "versionn: 1\n");
    expect(policyCheck({ env: {} }, root)).toMatchObject({ status: "fail", detail: expect.stringContaining("zz.yaml:1") as string });
    expect(policyCheck({ env: { DOCKET_POLICIES_DIR: "nowhere" } }, root)).toMatchObject({ status: "fail" });
  });
});
