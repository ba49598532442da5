/** The component files of every profile say exactly what src/contracts says, and the doctor notices when they do not. */
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { readComponents, type ComponentFile } from "../../../src/launcher/components.js";
import { componentProblems, configurationChecks } from "../../../src/launcher/doctor/configuration.js";
import { externalsOf } from "../../../src/launcher/externals.js";
import { PROFILES, type ProfileName } from "../../../src/launcher/profiles.js";

const ROOT = resolve(import.meta.dirname, "../../..");
const componentsOf = (profile: ProfileName): ComponentFile[] => readComponents(resolve(ROOT, "components", profile));
const embedded = componentsOf("embedded");

function changed(name: string, change: Partial<ComponentFile>, profile: ProfileName = "embedded"): ComponentFile[] {
  return componentsOf(profile).map((component) => (component.name === name ? { ...component, ...change } : component));
}

const valuesOf = (name: string, profile: ProfileName = "embedded"): Readonly<Record<string, string>> => componentsOf(profile).find((component) => component.name === name)!.values;

/** The component with one value set to another, or taken away. */
const set = (profile: ProfileName, name: string, key: string, value?: string): ComponentFile[] => {
  const { [key]: _old, ...others } = valuesOf(name, profile);
  return changed(name, { values: value === undefined ? others : { ...others, [key]: value } }, profile);
};

describe("the component files", () => {
  it.each([...PROFILES])("of profile %s pass every check", async (profile) => {
    const outside = externalsOf(profile, process.env).map((external): string => external.name);
    const tasks = configurationChecks(ROOT, profile, resolve(ROOT, "dapr.yaml")).filter((task) => !outside.includes(task.name));
    for (const task of tasks) expect(await task.run()).toMatchObject({ status: "ok" });
  });

  it("take machine-dependent values from the environment only", () => {
    for (const component of PROFILES.flatMap((profile) => readComponents(resolve(ROOT, "components", profile)))) {
      expect(Object.values(component.values).filter((value) => /localhost|127\.0\.0\.1|\/|:\d/.test(value))).toEqual([]);
    }
  });

  it("keep one tasks message in flight, so that two session hosts do not reorder", () => {
    expect(valuesOf("tasks")).toMatchObject({ maxAckPending: "1", concurrency: "single" });
  });
});

describe("the doctor notices", () => {
  it.each([
    ["a channel that is gone", embedded.filter(({ name }) => name !== "tasks"), 'no pub/sub component "tasks"'],
    ["an app that may load too much", changed("session-store", { scopes: ["sessions", "tools"] }), "session-store: scopes are [sessions, tools]"],
    ["an app that a scope list forgets", changed("tasks", { values: { ...valuesOf("tasks"), publishingScopes: "console=agent.tasks.incoming" } }), 'leaves out "gateway"'],
    ["an app that may publish too much", changed("tool-results", { values: { ...valuesOf("tool-results"), publishingScopes: "sessions=agent.dlq.poison-pills,agent.tools.completed;tools=agent.tools.completed" } }), "publishingScopes gives sessions"],
    ["parallel delivery", changed("tasks", { values: { ...valuesOf("tasks"), concurrency: "parallel" } }), "acks before the handler ran"],
    ["Redis as session store", changed("session-store", { type: "state.redis" }), "Redis neither rolls back"],
    ["the old PostgreSQL component", changed("session-store", { version: "v1" }, "production"), "version must be v2"],
    ["a redelivery interval of Redis with a unit (DESIGN 7.13)", set("local", "tasks", "redeliverInterval", "15s"), "takes milliseconds without a unit"],
    ["none", set("local", "tasks", "redeliverInterval"), "takes milliseconds without a unit"],
    ["RabbitMQ queues that go with their last reader", set("rabbitmq", "tasks", "deletedWhenUnused"), 'deletedWhenUnused is "", expected "false"'],
    ["RabbitMQ messages in memory only", set("rabbitmq", "responses", "deliveryMode", "1"), "messages must be on disk"],
    ["RabbitMQ without confirms", set("rabbitmq", "tool-requests", "publisherConfirm"), "a publish that never arrived looks good"],
    ["several RabbitMQ tasks in flight", set("rabbitmq", "tasks", "prefetchCount", "2"), "more in flight reorder"],
    ["RabbitMQ replicas that share live", changed("live", { envRefs: ["DOCKET_RABBITMQ_URL"] }, "rabbitmq"), "broadcast needs a queue for each replica"],
    ["RabbitMQ replicas that do not share tasks", set("rabbitmq", "tasks", "consumerID", "{uuid}"), "must leave consumerID out"],
    ["Kafka replicas that share live", set("production", "live", "consumerGroup", "gateway"), "broadcast needs a consumerGroup for each replica"],
    ["Kafka readers that begin at the end", set("production", "tasks", "initialOffset", "newest"), "published before the first reader came is lost"],
    ["Kafka readers that skip what failed", set("production", "tasks", "consumeRetryEnabled", "false"), "consumeRetryEnabled must not be false"],
  ])("%s", (_what, components, problem) => {
    expect(componentProblems(components).join("\n")).toContain(problem);
  });
});
