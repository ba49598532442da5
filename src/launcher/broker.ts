/**
 * Owns: NATS: the embedded broker's configuration, one JetStream stream per channel, and dropping the consumers of sidecars
 * that are gone. On a server that is not this stack's own, only streams that are missing are made.
 * "Durable" here means fsync on each message: NATS's default is two minutes (DESIGN 7.11).
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { DiscardPolicy, JetStreamApiError, jetstreamManager, PersistMode, RetentionPolicy, StorageType, type JetStreamManager, type StreamConfig } from "@nats-io/jetstream";
import { connect, nanos, type NatsConnection } from "@nats-io/transport-node";
import { CHANNELS, type Channel } from "../contracts/channels.js";
import { messageOf } from "./errors.js";

const MIB = 1024 * 1024;
/**
 * As short as NATS allows. daprd sends the CloudEvent's id alone as the message id, so within the window two events of
 * different sources with one id would be taken for one, and the second lost. The session's ledger is what deduplicates.
 */
const DUPLICATE_WINDOW_MS = 100;
/** A channel's backlog. Beyond it a publish is refused, visibly; nothing unread is dropped. */
const CHANNEL_BYTES = 512 * MIB;

/** Writes nats-server's configuration; returns the file. */
export function writeBrokerConfig(dataDir: string, port: number, token: string): string {
  const dir = join(dataDir, "nats");
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const file = join(dir, "nats.conf");
  const config = `listen: "127.0.0.1:${port}"
server_name: docket
max_payload: 8MB
jetstream {
  store_dir: ${JSON.stringify(dir)}
  sync_interval: always
  max_file_store: 8GB
  max_memory_store: 128MB
}
authorization { token: ${JSON.stringify(token)} }
`;
  writeFileSync(file, config, { mode: 0o600 });
  return file;
}

/** The stream of a channel: dots are not allowed in stream names. */
export function streamNameOf(channel: Channel): string {
  return `DOCKET_${channel.component.toUpperCase().replaceAll("-", "_")}`;
}

/**
 * A channel's stream. Competing channels are work queues: what is acked is gone, what is not acked is never dropped. A channel that may
 * lose messages does not wait for the disk (`persist_mode`, NATS 2.12), where the server is the stack's own and so new enough.
 */
export function streamConfigOf(channel: Channel, { owned } = { owned: false }): Partial<StreamConfig> & { name: string; subjects: string[] } {
  const shared = { name: streamNameOf(channel), subjects: [channel.topic], num_replicas: 1, duplicate_window: nanos(DUPLICATE_WINDOW_MS) };
  if (channel.delivery === "broadcast") {
    return { ...shared, storage: StorageType.File, retention: RetentionPolicy.Limits, discard: DiscardPolicy.Old, max_age: nanos(300_000), max_bytes: 32 * MIB, ...(owned ? { persist_mode: PersistMode.Async } : {}) };
  }
  return { ...shared, storage: StorageType.File, retention: RetentionPolicy.Workqueue, discard: DiscardPolicy.New, max_bytes: CHANNEL_BYTES };
}

/** A NATS server with JetStream. */
export interface StreamServer {
  readonly url: string;
  /** Empty: it asks for none. */
  readonly token: string;
  /** True for the stack's own server: nobody else has set its streams up or reads from them. */
  readonly owned: boolean;
}

export interface PrepareOptions extends StreamServer {
  readonly deadlineMs: number;
  /** True when no sidecar is connected: what the last ones left unacked is delivered at once. */
  readonly dropConsumers: boolean;
}

/** Waits for the broker, then creates every stream that is missing; on the stack's own server it updates the others. */
export async function prepareStreams(options: PrepareOptions): Promise<void> {
  const connection = await connectBefore(options.url, options.token, Date.now() + options.deadlineMs);
  try {
    const manager = await jetstreamManager(connection);
    for (const channel of Object.values<Channel>(CHANNELS)) {
      await ensureStream(manager, channel, options.owned);
      if (options.owned && options.dropConsumers) await dropConsumers(manager, channel);
    }
  } finally {
    await connection.close();
  }
}

async function connectBefore(url: string, token: string, deadline: number): Promise<NatsConnection> {
  for (;;) {
    try {
      return await connect({ servers: url, ...(token === "" ? {} : { token }), reconnect: false, timeout: 2_000, name: "docket-launcher" });
    } catch (error) {
      if (Date.now() > deadline) throw new Error(`nothing answers at ${url}: ${messageOf(error)}`, { cause: error });
      await sleep(100);
    }
  }
}

async function ensureStream(manager: JetStreamManager, channel: Channel, owned: boolean): Promise<void> {
  const config = streamConfigOf(channel, { owned });
  const found = await foundStream(manager, config.name);
  if (found !== undefined && !owned) return;
  // How a stream is persisted cannot be changed. Only a broadcast channel's ever was, and losing what is in it is allowed.
  const isOld = channel.delivery === "broadcast" && found !== undefined && found.persist_mode !== config.persist_mode;
  if (isOld) await manager.streams.delete(config.name);
  if (found === undefined || isOld) await manager.streams.add(config);
  else await manager.streams.update(config.name, config);
}

async function foundStream(manager: JetStreamManager, name: string): Promise<StreamConfig | undefined> {
  try {
    return (await manager.streams.info(name)).config;
  } catch (error) {
    if (error instanceof JetStreamApiError) return undefined;
    throw error;
  }
}

/**
 * A consumer that outlived its sidecars still waits for their acks (30 s, and `tasks` lets nothing else through meanwhile), and
 * daprd refuses one whose settings are not those of its component file. The stream alone knows what is unread, so with no
 * sidecar running the consumers are dropped: daprd makes them anew and unread events come at once, in order. Those of `live` go with them,
 * since each belongs to one replica of then.
 */
async function dropConsumers(manager: JetStreamManager, channel: Channel): Promise<void> {
  for await (const { name } of manager.consumers.list(streamNameOf(channel))) await manager.consumers.delete(streamNameOf(channel), name);
}
