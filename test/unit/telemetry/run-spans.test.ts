/** Spans of a run, from real turns over hand-driven surroundings: parents, links over waits, other hosts that go on, what is said and what is not. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { TOOL_REQUESTED } from "../../../src/contracts/tools.js";
import { APPROVAL_PENDING } from "../../../src/contracts/decisions.js";
import { RUN_ENDED } from "../../../src/contracts/messages.js";
import { readTraceParent, spanIdOf, traceIdOf } from "../../../src/platform/telemetry/trace.js";
import { branches, collectSpans, treeProblems, type SeenSpan } from "../../support/spans.js";
import { claimOf, decisionOn, fakeTime, pass, prompt, resultOf, until, World, type Host } from "../host/support.js";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const ACCEPT = "00f067aa0ba902b7";
const traceparent = `00-${TRACE}-${ACCEPT}-01`;

let world: World;
let host: Host;
let seen: ReturnType<typeof collectSpans>;
beforeEach(() => {
  fakeTime();
  world = new World();
  host = world.host();
  seen = collectSpans();
});
afterEach(() => {
  seen.stop();
  vi.useRealTimers();
});

const ended = (): Promise<void> => until("the run's end", () => world.bus.ended.length > 0);
/** Without turns, which are tested apart. */
const work = (spans: readonly SeenSpan[] = seen.spans): SeenSpan[] => spans.filter(({ name }) => !name.startsWith("turn "));
const named = (name: string): SeenSpan[] => seen.spans.filter((span) => span.name === name);

async function askedForRefund(about = {}): Promise<void> {
  await host.take("tasks", prompt("e1", "refund A1", { agent: "clerk", traceparent, ...about }));
  await until("a question is out", () => world.bus.pending.length === 1);
  await pass(0);
}

describe("a run without people", () => {
  it("is one stretch with its model calls and tool calls", async () => {
    await host.take("tasks", prompt("e1", "look up A1", { agent: "clerk", traceparent }));
    await until("a tool request is out", () => world.bus.requests.length === 1);
    await pass(100);
    await host.take("toolResults", resultOf(world.bus.requests[0]!));
    await ended();
    expect(branches(work()).sort()).toEqual(["- > invoke_agent clerk", "invoke_agent clerk > chat clerk", "invoke_agent clerk > chat clerk", "invoke_agent clerk > execute_tool lookup"]);
    expect(treeProblems(seen.spans, ACCEPT).filter((problem) => !problem.includes("roots"))).toEqual([]);
    expect(named("invoke_agent clerk")[0]).toMatchObject({ traceId: TRACE, parentId: ACCEPT, attributes: { "gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "order-1", "docket.run.outcome": "completed", "openinference.span.kind": "AGENT", "langfuse.observation.type": "agent" } });
    expect(named("chat clerk")[0]?.attributes).toMatchObject({ "gen_ai.operation.name": "chat", "gen_ai.provider.name": "scripted", "gen_ai.request.model": "clerk", "gen_ai.response.finish_reasons": ["tool_calls"], "llm.token_count.prompt": expect.any(Number) as number, "langsmith.span.kind": "llm" });
    expect(named("execute_tool lookup")[0]?.attributes).toMatchObject({ "gen_ai.tool.name": "lookup", "docket.tool.status": "succeeded", "gen_ai.tool.call.id": expect.any(String) as string, "openinference.span.kind": "TOOL" });
  });

  it("gets a trace of its own where its sender brought none", async () => {
    await host.take("tasks", prompt("e1"));
    await ended();
    const [run] = named("invoke_agent echo");
    expect(run).toMatchObject({ parentId: undefined, traceId: traceIdOf(world.bus.ended[0]!.runId) });
    expect(treeProblems(seen.spans)).toEqual([]);
  });

  it("is left out where its sender's trace is not recorded", async () => {
    await host.take("tasks", prompt("e1", "hello", { traceparent: `00-${TRACE}-${ACCEPT}-00` }));
    await ended();
    expect(seen.spans).toEqual([]);
  });
});

describe("a run that waits for a person", () => {
  it("has no span open meanwhile: the next stretch links to the one before, the question and the decision", async () => {
    await askedForRefund();
    expect(branches(work()).sort()).toEqual(["- > invoke_agent clerk", "invoke_agent clerk > ask refund", "invoke_agent clerk > chat clerk"]);
    await pass(6 * 3_600_000);
    const [pending] = world.bus.pending;
    await host.take("approvalsResolved", decisionOn(pending!, "dec-1"));
    await until("a tool request is out", () => world.bus.requests.length === 1);
    await host.take("toolResults", resultOf(world.bus.requests[0]!));
    await ended();
    const [before, after] = named("invoke_agent clerk");
    expect(after).toMatchObject({ parentId: ACCEPT, traceId: TRACE });
    expect(after?.links).toEqual([before?.spanId, spanIdOf("ask", pending!.record.approvalId), spanIdOf("decide", "dec-1")]);
    expect(named("execute_tool refund")[0]?.parentId).toBe(after?.spanId);
    expect(named("chat clerk").map(({ parentId }) => parentId)).toEqual([before?.spanId, after?.spanId]);
    for (const { startMs, endMs, name } of work()) expect(endMs - startMs, name).toBeLessThan(3_600_000);
  });

  it("goes on in the same trace on another host, which knows nothing but what is stored", async () => {
    await askedForRefund();
    const other = world.host("host-2");
    await other.take("approvalsResolved", decisionOn(world.bus.pending[0]!, "dec-1"));
    await until("a tool request is out", () => world.bus.requests.length === 1);
    const third = world.host("host-3");
    await third.take("toolResults", resultOf(world.bus.requests[0]!));
    await ended();
    const stretches = named("invoke_agent clerk");
    expect(stretches.map(({ traceId, parentId }) => [traceId, parentId])).toEqual([[TRACE, ACCEPT], [TRACE, ACCEPT]]);
    expect(named("execute_tool refund")[0]?.parentId).toBe(stretches[1]?.spanId);
    expect(new Set(seen.spans.map(({ spanId }) => spanId)).size).toBe(seen.spans.length);
  });

  it("hands the right parents on: the tool call to the worker, the run to the console, the last stretch to the gateway", async () => {
    await askedForRefund();
    expect(world.bus.pending[0]?.traceparent).toBe(traceparent);
    expect(world.bus.envelopes(APPROVAL_PENDING)[0]?.traceparent).toBe(traceparent);
    await host.take("approvalsResolved", decisionOn(world.bus.pending[0]!, "dec-1"));
    await until("a tool request is out", () => world.bus.requests.length === 1);
    const [request] = world.bus.requests;
    expect(readTraceParent(world.bus.envelopes(TOOL_REQUESTED)[0]?.traceparent)).toEqual({ traceId: TRACE, spanId: spanIdOf("tool", request!.callId), sampled: true });
    await host.take("toolResults", resultOf(request!));
    await ended();
    expect(readTraceParent(world.bus.envelopes(RUN_ENDED)[0]?.traceparent)?.spanId).toBe(named("invoke_agent clerk")[1]?.spanId);
  });

  it("ends as expired without a person, in a stretch of its own", async () => {
    await askedForRefund({ expirytime: new Date(Date.now() + 60_000).toISOString() });
    await pass(120_000);
    await host.service.tick(world.state.actorId);
    await ended();
    expect(named("invoke_agent clerk").map(({ attributes, failed }) => [attributes["docket.ended_by"], failed])).toEqual([["waits_for_people", false], ["end", true]]);
  });
});

describe("turns", () => {
  it("stand under what caused them: the delivery's span, the model call, else the stretch", async () => {
    await host.take("tasks", prompt("e1", "look up A1", { agent: "clerk", traceparent }));
    await until("a tool request is out", () => world.bus.requests.length === 1);
    const [request] = world.bus.requests;
    await host.take("toolResults", claimOf(request!));
    await host.take("toolResults", { ...resultOf(request!), traceparent: `00-${TRACE}-aaaaaaaaaaaaaaaa-01` });
    await ended();
    expect(named("turn ReceiveEvent")[0]?.parentId).toBe(ACCEPT);
    expect(named("turn RecordAnswer")[0]?.parentId).toBe(named("chat clerk")[0]?.spanId);
    expect(named("turn RecordClaim")[0]?.parentId).toBe(named("invoke_agent clerk")[0]?.spanId);
    expect(named("turn RecordToolResult")[0]?.parentId).toBe("aaaaaaaaaaaaaaaa");
  });
});

describe("content", () => {
  it("is in no span, unless it is asked for", async () => {
    await host.take("tasks", prompt("e1", "refund A1 with card 4111 1111 1111 1111", { agent: "clerk", traceparent }));
    await until("a question is out", () => world.bus.pending.length === 1);
    expect(JSON.stringify(seen.spans)).not.toMatch(/4111|I refund it|"A1"|\\"A1\\"/);
  });

  it("is redacted where it is", async () => {
    seen.stop();
    seen = collectSpans({ content: true });
    await host.take("tasks", prompt("e1", "refund A1 with card 4111 1111 1111 1111 and key sk-ant-REDACTED", { agent: "clerk", traceparent }));
    await until("a question is out", () => world.bus.pending.length === 1);
    const said = JSON.stringify(seen.spans);
    expect(said).toContain("I refund it");
    expect(said).toContain("[redacted]");
    expect(said).not.toMatch(/4111|abcdefghijklmnop/);
  });
});

describe("without anybody who takes spans", () => {
  it("no parents are handed on and nothing more is read", async () => {
    seen.stop();
    const read = vi.spyOn(world.store, "readEntries");
    await askedForRefund();
    expect(world.bus.pending[0]?.traceparent).toBeUndefined();
    const without = read.mock.calls.length;
    seen = collectSpans();
    expect(seen.spans).toEqual([]);
    expect(without).toBeLessThanOrEqual(2);
  });
});
