/** The `local` profile (Redis Streams and SQLite, what `dapr init` leaves) on a Redis of the test's own. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CHANNELS, type Channel } from "../../src/contracts/channels.js";
import { eventually, startTestStack, type TestStack } from "../support/cluster.js";
import { startRedis, type TestRedis } from "../support/redis.js";

describe("the local profile", () => {
  let redis: TestRedis;
  let cluster: TestStack | undefined;

  beforeAll(async () => { redis = await startRedis(); });

  afterAll(async () => {
    await cluster?.close();
    await redis.stop();
  });

  it("says what is missing when Redis does not answer", async () => {
    await expect(startTestStack({ profile: "local", probeApps: true, env: { ...process.env, DOCKET_REDIS_HOST: "127.0.0.1:1" } })).rejects.toMatchObject({
      code: "BROKER_UNREACHABLE",
      message: expect.stringContaining("127.0.0.1:1") as string,
    });
  });

  it("starts, carries every channel, and delivers what waited for a dead app", async () => {
    cluster = await startTestStack({ profile: "local", probeApps: true, env: { ...process.env, DOCKET_REDIS_HOST: redis.host } });
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
