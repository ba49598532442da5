/** The main job with Kafka's protocol (runtime/kfake): partitioned by session, so two session hosts share the work and keep the order. */
import { startKafka } from "../support/brokers.js";
import { describeMainJob, type StoreKind } from "../support/main-job.js";

for (const store of ["PostgreSQL v2", "SQLite"] satisfies StoreKind[]) {
  describeMainJob({ broker: "Kafka", store, profile: "production", sessionHosts: 2, startBroker: startKafka });
}
