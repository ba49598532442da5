/** The main job with Redis Streams as broker. One session host: with two, Redis reorders (DESIGN 7.6). */
import { startRedisBroker } from "../support/brokers.js";
import { describeMainJob, type StoreKind } from "../support/main-job.js";

const limits = "In order with one session host only: two readers of a stream take entries side by side, and Dapr's component has no way to make one of them wait.";
for (const store of ["PostgreSQL v2", "SQLite"] satisfies StoreKind[]) {
  describeMainJob({ broker: "Redis Streams", store, profile: "local", sessionHosts: 1, limits, startBroker: startRedisBroker });
}
