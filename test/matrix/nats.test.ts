/** The main job with NATS JetStream as broker: one message in flight, so two session hosts keep the order. */
import { natsVersion, startNats } from "../support/brokers.js";
import { describeMainJob } from "../support/main-job.js";

describeMainJob({ broker: "NATS JetStream", store: "PostgreSQL v2", profile: "nats", sessionHosts: 2, startBroker: startNats });
describeMainJob({
  broker: "NATS JetStream", store: "SQLite", profile: "embedded", sessionHosts: 2,
  // The launcher's own broker.
  startBroker: async () => ({ version: `NATS JetStream ${await natsVersion()}, fsync on each message`, env: {}, drop: () => Promise.resolve() }),
});
