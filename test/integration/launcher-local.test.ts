/** The `local` profile (Redis Streams and SQLite, what `dapr init` leaves) on a Redis of the test's own. */
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CHANNELS, type Channel } from "../../src/contracts/channels.js";
import { choosePorts } from "../../src/launcher/ports.js";
import { answersPing } from "../../src/launcher/profiles.js";
import { eventually, startTestStack, type TestStack } from "../support/cluster.js";

const hasRedis = ((): boolean => {
  try {
    return execFileSync("redis-server", ["--version"], { encoding: "utf8" }).includes("Redis");
  } catch {
    return false;
  }
})();

describe.skipIf(!hasRedis)("the local profile", () => {
  let redis: ChildProcess;
  let redisDir: string;
  let host: string;
  let cluster: TestStack | undefined;

  beforeAll(async () => {
    const { redis: port } = await choosePorts({ wishes: { redis: undefined }, mode: "free", overrides: {} });
    host = `127.0.0.1:${port!}`;
    redisDir = mkdtempSync(join(tmpdir(), "docket-redis-"));
    redis = spawn("redis-server", ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--dir", redisDir], { stdio: "ignore" });
    await eventually("redis answers", async () => ((await answersPing(host)) ? true : undefined));
  });

  afterAll(async () => {
    await cluster?.close();
    redis.kill("SIGKILL");
    if (redis.exitCode === null && redis.signalCode === null) await once(redis, "exit");
    rmSync(redisDir, { recursive: true, force: true });
  });

  it("says what is missing when Redis does not answer", async () => {
    await expect(startTestStack({ profile: "local", probeApps: true, env: { ...process.env, DOCKET_REDIS_HOST: "127.0.0.1:1" } })).rejects.toMatchObject({
      code: "BROKER_UNREACHABLE",
      message: expect.stringContaining("127.0.0.1:1") as string,
    });
  });

  it("starts, carries every channel, and delivers what waited for a dead app", async () => {
    cluster = await startTestStack({ profile: "local", probeApps: true, env: { ...process.env, DOCKET_REDIS_HOST: host } });
    const publish = async (channel: Channel, id: string): Promise<void> => {
      const event = { specversion: "1.0", id, source: "test", type: "com.docket.test.v1", data: {} };
      const reply = await cluster!.callSidecar(channel.publishers[0]!, `/v1.0/publish/${channel.component}/${channel.topic}`, { method: "POST", headers: { "content-type": "application/cloudevents+json" }, body: JSON.stringify(event) });
      expect(reply.status).toBe(204);
    };
    const arrives = (channel: Channel, id: string): Promise<true> =>
      eventually(`${id} arrives`, async () => ((await (await cluster!.callApp(channel.subscribers[0]!, "/seen")).text()).includes(`"${id}"`) ? true : undefined), 45_000);

    for (const channel of Object.values<Channel>(CHANNELS)) {
      await publish(channel, `first-${channel.component}`);
      await arrives(channel, `first-${channel.component}`);
    }
    await cluster.stack.kill("tools");
    await publish(CHANNELS.toolRequests, "while-dead");
    await cluster.stack.start("tools");
    await arrives(CHANNELS.toolRequests, "while-dead");
  });
});
