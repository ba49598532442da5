/** The main job with RabbitMQ as broker: a single active consumer, so two session hosts keep the order. */
import { createVhost, missingRabbitmq } from "../support/brokers.js";
import { describeMainJob, type StoreKind } from "../support/main-job.js";

const missing = await missingRabbitmq();
for (const store of ["PostgreSQL v2", "SQLite"] satisfies StoreKind[]) {
  describeMainJob({ broker: "RabbitMQ", store, profile: "rabbitmq", sessionHosts: 2, missing, startBroker: createVhost });
}
