/** What sessions count: commits only, each once, under labels that no model, sender or session can multiply. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { INSTRUMENTS, installMeter, type Instrument, type Reading } from "../../../src/platform/telemetry/metrics.js";
import { decisionOn, fakeTime, pass, prompt, resultOf, until, World, type Host } from "../host/support.js";

interface Recorded { readonly name: string; readonly value: number; readonly labels: Readonly<Record<string, string>> }

let world: World;
let host: Host;
let recorded: Recorded[];
let gauges: Map<string, () => Promise<readonly Reading[]> | readonly Reading[]>;
let stop: () => void;
beforeEach(() => {
  fakeTime();
  recorded = [];
  gauges = new Map();
  stop = installMeter({ record: (name, value, labels) => { recorded.push({ name, value, labels }); }, watch: (name, read) => { gauges.set(name, read); } });
  world = new World();
  host = world.host();
});
afterEach(() => {
  stop();
  vi.useRealTimers();
});

const of = (name: string): Recorded[] => recorded.filter((one) => one.name === name && (one.value !== 0 || !name.startsWith("docket.") || name.endsWith(".seconds")));
const sum = (name: string): number => of(name).reduce((total, { value }) => total + value, 0);

describe("a session's numbers", () => {
  it("tell of an event, its run, model, tool, question and decision, each once", async () => {
    const event = prompt("e1", "refund A1", { agent: "clerk" });
    await host.take("tasks", event);
    await until("a question is out", () => world.bus.pending.length === 1);
    await host.take("tasks", event);
    await pass(60_000);
    await host.take("approvalsResolved", decisionOn(world.bus.pending[0]!, "dec-1"));
    await until("a tool request is out", () => world.bus.requests.length === 1);
    await host.take("toolResults", resultOf(world.bus.requests[0]!));
    await until("the run's end", () => world.bus.ended.length > 0);
    await pass(0);
    expect(of("docket.events.handled")).toMatchObject([{ value: 1, labels: { agent: "clerk", verdict: "accepted" } }]);
    expect(sum("docket.events.deduplicated")).toBe(1);
    expect([sum("docket.runs.started"), sum("docket.runs.ended"), sum("docket.approvals.opened")]).toEqual([1, 1, 1]);
    expect(of("docket.mailbox.wait.seconds").map(({ value }) => value)).toEqual([0]);
    expect(of("docket.approval.decision.seconds")[0]?.value).toBeGreaterThanOrEqual(60);
    expect(of("docket.approvals.closed")).toMatchObject([{ labels: { agent: "clerk", as: "decided" } }]);
    expect(of("docket.tool.calls")).toMatchObject([{ labels: { tool: "refund", status: "succeeded" } }]);
    expect(of("gen_ai.client.operation.duration")).toHaveLength(2);
    expect(of("gen_ai.client.token.usage").map(({ labels }) => labels["gen_ai.token.type"])).toEqual(["input", "output", "input", "output"]);
  });

  it("have no label that a model can invent, and only labels of the table", async () => {
    await host.take("tasks", prompt("e1", "hello", { agent: "hand" }));
    await until("the model is called", () => world.hand.calls.length === 1);
    world.hand.last.answer({ stop: "tool_use", calls: [{ id: "c1", name: "no_such_tool", args: "{}" }] });
    await until("the model is called again", () => world.hand.calls.length === 2);
    expect(of("docket.tool.calls")).toMatchObject([{ labels: { tool: "unknown" } }]);
    for (const { name, labels } of recorded) expect(Object.keys(labels).sort(), name).toEqual([...(INSTRUMENTS as unknown as Record<string, Instrument>)[name]!.labels].sort());
  });

  it("say how old the oldest publication without evidence is, until there is evidence", async () => {
    const oldest = async (): Promise<number> => (await gauges.get("docket.outbox.oldest.seconds")!())[0]!.value;
    await host.take("tasks", prompt("e1", "look up A1", { agent: "clerk" }));
    await until("a tool request is out", () => world.bus.requests.length === 1);
    await pass(8_000);
    expect(await oldest()).toBeGreaterThanOrEqual(8);
    await host.take("toolResults", resultOf(world.bus.requests[0]!));
    await until("the run's end", () => world.bus.ended.length > 0);
    await pass(60_000);
    expect(await oldest()).toBe(0);
  });
});
