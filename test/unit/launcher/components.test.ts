/** The component files of both profiles say exactly what src/contracts says, and the doctor notices when they do not. */
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { readComponents, type ComponentFile } from "../../../src/launcher/components.js";
import { componentProblems, configurationChecks } from "../../../src/launcher/doctor/configuration.js";
import { PROFILES } from "../../../src/launcher/profiles.js";

const ROOT = resolve(import.meta.dirname, "../../..");
const embedded = readComponents(resolve(ROOT, "components/embedded"));

function changed(name: string, change: Partial<ComponentFile>): ComponentFile[] {
  return embedded.map((component) => (component.name === name ? { ...component, ...change } : component));
}

const valuesOf = (name: string): Readonly<Record<string, string>> => embedded.find((component) => component.name === name)!.values;

describe("the component files", () => {
  it.each([...PROFILES])("of profile %s pass every check", async (profile) => {
    const tasks = configurationChecks(ROOT, profile, resolve(ROOT, "dapr.yaml")).filter((task) => task.name !== "redis");
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
  ])("%s", (_what, components, problem) => {
    expect(componentProblems(components).join("\n")).toContain(problem);
  });
});
