/** Which processes a stack has: copies of an app, and the environment of each. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { writeBrokerConfig } from "../../../src/launcher/broker.js";
import { daprdArgs } from "../../../src/launcher/commands.js";
import { chooseInstances, planProcesses, portWishes } from "../../../src/launcher/plan.js";
import { readRunFile } from "../../../src/launcher/run-file.js";

const ROOT = join(import.meta.dirname, "../../..");
const runFile = readRunFile(join(ROOT, "dapr.yaml"));

describe("the instances of a stack", () => {
  it("are one of each app, and as many copies as are asked for", () => {
    expect(chooseInstances(runFile, [], {}).map(({ name }) => name).sort()).toEqual(["console", "gateway", "sessions", "tools"]);
    expect(chooseInstances(runFile, [], { sessions: 2, tools: 3 }).map(({ name }) => name).sort()).toEqual(["console", "gateway", "sessions", "sessions-2", "tools", "tools-2", "tools-3"]);
    expect(chooseInstances(runFile, ["tools"], { tools: 2 }).map(({ name, appId }) => [name, appId])).toEqual([["tools", "tools"], ["tools-2", "tools"]]);
  });

  it("get more environment for all, by app, and by copy; the nearer wins", () => {
    const instances = chooseInstances(runFile, ["tools"], { tools: 2 });
    const specs = planProcesses({
      root: ROOT, dataDir: "/data", profile: "embedded", resources: "/components", instances, ports: Object.fromEntries(Object.keys(portWishes(instances)).map((name, index) => [name, 20_000 + index])),
      dapr: { daprd: "daprd", placement: "placement", scheduler: "scheduler", version: "1.14.0", source: "" }, natsServer: "nats", mtls: undefined, brokerConfig: "nats.conf",
      secrets: { keysDir: "/keys", apiKeyFile: "/key", brokerToken: "t", sessionsActorKey: "k" }, tokens: {}, commands: {}, sidecarLogLevel: "info", env: {},
      extraEnv: { all: { A: "all", B: "all", C: "all" }, tools: { B: "app", C: "app" }, "tools-2": { C: "copy" } },
    });
    const of = (name: string): unknown[] => ["A", "B", "C"].map((key) => specs.find((spec) => spec.name === name)?.env[key]);
    expect(of("tools")).toEqual(["all", "app", "app"]);
    expect(of("tools-2")).toEqual(["all", "app", "copy"]);
    expect(of("tools-2-daprd")).toEqual([undefined, undefined, undefined]);
  });
});

/** Facts that no run shows until the power or placement goes (DESIGN 7). */
describe("what a stack is started with", () => {
  it("7.11: a broker that fsyncs each message before it is acknowledged; its own default is two minutes", () => {
    const dir = mkdtempSync(join(tmpdir(), "docket-broker-"));
    try {
      expect(readFileSync(writeBrokerConfig(dir, 4222, "t"), "utf8")).toMatch(/^ +sync_interval: always$/m);
    } finally {
      rmSync(dir, { recursive: true });
    }
  });

  it("7.12: two spellings of placement's address for each sidecar, in the run file too, or a restart of placement is never noticed", () => {
    const addresses = (text: string): string[] => text.split(",");
    const instances = chooseInstances(runFile, [], {});
    for (const { name: instance } of instances) {
      const args = daprdArgs({ appId: instance, instance, ports: Object.fromEntries(Object.keys(portWishes(instances)).map((name, index) => [name, 20_000 + index])), resources: "/components", configFile: undefined, flags: [], logLevel: "info", mtls: undefined });
      expect(new Set(addresses(args[args.indexOf("--placement-host-address") + 1] ?? "")).size).toBe(2);
    }
    const written = /^ *placementHostAddress: (\S+)$/gm;
    const inRunFile = [...readFileSync(join(ROOT, "dapr.yaml"), "utf8").matchAll(written)].map((match) => match[1] ?? "");
    expect(inRunFile.length).toBeGreaterThan(0);
    for (const text of inRunFile) expect(new Set(addresses(text)).size).toBe(2);
  });
});
