/** Who inherits which variable of the shell that started the stack. */
import { describe, expect, it } from "vitest";
import { APPS } from "../../../src/contracts/channels.js";
import { appBaseEnv, sidecarBaseEnv } from "../../../src/launcher/child-env.js";

const SHELL = {
  PATH: "/bin", HOME: "/home/x", ANTHROPIC_API_KEY: "a", OPENAI_API_KEY: "o", GITHUB_WEBHOOK_SECRET: "w", DOCKET_TOOLS_DB_URL: "t",
  DOCKET_NATS_TOKEN: "n", DOCKET_SQLITE_SESSIONS: "s", DAPR_API_TOKEN: "old", APP_API_TOKEN: "old", DOCKET_LOG_LEVEL: "debug",
};

describe("what a child inherits", () => {
  it("model keys go to sessions alone, webhook secrets to the gateway, tool secrets to the worker", () => {
    const holders = (key: string): string[] => APPS.filter((app) => key in appBaseEnv(app, SHELL));
    expect(holders("ANTHROPIC_API_KEY")).toEqual(["sessions"]);
    expect(holders("OPENAI_API_KEY")).toEqual(["sessions"]);
    expect(holders("GITHUB_WEBHOOK_SECRET")).toEqual(["gateway"]);
    expect(holders("DOCKET_TOOLS_DB_URL")).toEqual(["tools"]);
    expect(holders("DOCKET_LOG_LEVEL")).toEqual([...APPS]);
  });

  it("no app learns how to reach broker or stores, nor another stack's tokens", () => {
    for (const app of APPS) {
      for (const key of ["DOCKET_NATS_TOKEN", "DOCKET_SQLITE_SESSIONS", "DAPR_API_TOKEN", "APP_API_TOKEN"]) expect(appBaseEnv(app, SHELL)).not.toHaveProperty(key);
    }
  });

  it("a sidecar gets no secret of the shell", () => {
    expect(sidecarBaseEnv(SHELL)).toEqual({ PATH: "/bin", HOME: "/home/x" });
  });
});
