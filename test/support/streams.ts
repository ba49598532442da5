/** Owns: other settings for a channel's stream in the embedded broker of a test's stack, to make the broker refuse or drop what it usually takes. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { jetstreamManager, type StreamConfig } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type { Channel } from "../../src/contracts/channels.js";
import { streamConfigOf } from "../../src/launcher/broker.js";
import type { TestStack } from "./cluster.js";

/** Without `settings`: as usual. */
export async function updateStream(test: TestStack, channel: Channel, settings: Partial<StreamConfig> = {}): Promise<void> {
  const token = /token: "([^"]+)"/.exec(readFileSync(join(test.dataDir, "nats/nats.conf"), "utf8"))?.[1] ?? "";
  const connection = await connect({ servers: `nats://127.0.0.1:${String(test.stack.ports["broker"] ?? 0)}`, token, reconnect: false });
  try {
    const { name, ...config } = streamConfigOf(channel);
    await (await jetstreamManager(connection)).streams.update(name, { max_msg_size: -1, ...config, ...settings });
  } finally {
    await connection.close();
  }
}
