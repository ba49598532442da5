/** Owns: a Redis of the test's own, on a free port, with nothing on disk. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { choosePorts } from "../../src/launcher/ports.js";
import { answers } from "../../src/launcher/externals.js";
import { eventually } from "./cluster.js";

export interface TestRedis { readonly host: string; stop(): Promise<void> }

export async function startRedis(): Promise<TestRedis> {
  const { redis: port = 0 } = await choosePorts({ wishes: { redis: undefined }, mode: "free", overrides: {} });
  const host = `127.0.0.1:${String(port)}`;
  const folder = mkdtempSync(join(tmpdir(), "docket-redis-"));
  const server = spawn("redis-server", ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder], { stdio: "ignore" });
  await eventually("redis answers", async () => ((await answers("redis", host)) ? true : undefined));
  return {
    host,
    stop: async () => {
      server.kill("SIGKILL");
      if (server.exitCode === null && server.signalCode === null) await once(server, "exit");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
