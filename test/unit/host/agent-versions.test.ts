/** A session keeps its agent's version, or goes over to the one that is installed, by the rule of the installed one. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { AgentDefinition } from "../../../src/agent/definition.js";
import { fakeTime, prompt, quiet, resultOf, World, type Host } from "./support.js";

let world: World;
let host: Host;
const definition = (version: string, about: Partial<AgentDefinition> = {}): AgentDefinition => ({ name: "hand", version, description: "x", instructions: `as of ${version}`, triggers: [], model: "hand:any", tools: ["lookup"], ...about });
/** What the host has from now on: the newest version, and others that are installed beside it. */
const installed = (current: AgentDefinition, kept: AgentDefinition[] = []): void => {
  (world.catalog.agents as Map<string, AgentDefinition>).set("hand", current);
  Object.assign(world.catalog, { kept });
};
const begin = async (id: string): Promise<void> => { await host.take("tasks", prompt(id, `message ${id}`, { agent: "hand" })); await quiet(); };
const answer = async (): Promise<string> => {
  const { instructions } = world.hand.last.request;
  world.hand.last.answer();
  await quiet();
  return instructions;
};

beforeEach(async () => {
  fakeTime();
  world = new World();
  host = world.host();
  installed(definition("1"));
  await begin("first");
});
afterEach(() => { vi.useRealTimers(); });

describe("a session that an earlier version of its agent began", () => {
  it("goes over to the installed version with its next run, and says so in the journal", async () => {
    await answer();
    installed(definition("2"));
    await begin("second");
    expect(await answer()).toBe("as of 2");
    await begin("third");
    await answer();
    expect(world.events("RunStarted").map(({ agentVersion }) => agentVersion)).toEqual([undefined, "2", undefined]);
    expect(world.state.agentVersion).toBe("2");
    world.checkFold();
  });

  it("goes back with an agent that is rolled back", async () => {
    await answer();
    installed(definition("2"));
    await begin("second");
    await answer();
    installed(definition("1"));
    await begin("third");
    expect([await answer(), world.state.agentVersion]).toEqual(["as of 1", "1"]);
  });

  it("stays with its own where the installed version says `keep`, limits included", async () => {
    await answer();
    installed(definition("2", { sessions: "keep" }), [definition("1", { limits: { maxSteps: 3 } })]);
    await begin("second");
    expect([await answer(), world.state.agentVersion]).toEqual(["as of 1", "1"]);
    expect(world.events("RunStarted").at(-1)).toMatchObject({ maxSteps: 3 });
  });

  it("refuses an event, visibly, where its own version is to be kept and is not installed", async () => {
    await answer();
    installed(definition("2", { sessions: "keep" }));
    await begin("second");
    expect(world.events("RunEnded").at(-1)).toMatchObject({ outcome: "rejected", code: "agent_unknown", text: expect.stringContaining("keeps version 1 of agent hand") as string });
    expect([world.state.status, world.hand.calls.length]).toEqual(["IDLE", 1]);
  });

  it("counts for what waits in the mailbox too: a run begins under the version that is there when it begins", async () => {
    await begin("second");
    installed(definition("2"));
    await answer();
    expect([await answer(), world.state.agentVersion]).toEqual(["as of 2", "2"]);
  });

  it("ends a run that is under way under the version it began with, where that is installed", async () => {
    const lookup = { id: "l1", name: "lookup", args: "{\"order\":\"A1\"}" };
    const goOn = async (kept: AgentDefinition[]): Promise<string> => {
      installed(definition("2"), kept);
      world.hand.last.answer({ text: "I look", calls: [lookup], stop: "tool_use" });
      await quiet();
      const [request] = world.bus.requests.slice(-1);
      await host.take("toolResults", resultOf(request!));
      await quiet();
      return world.hand.last.request.instructions;
    };
    expect(await goOn([definition("1")])).toBe("as of 1");
    expect(await goOn([])).toBe("as of 2");
  });
});
