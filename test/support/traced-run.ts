/** Owns: the run that every collector must show as one tree: a prompt, an approval, `kill -9` and restart of everything, the decision, the tool, the answer. */
import { expect } from "vitest";
import { eventually, freshSession, type Docket } from "./docket.js";
import { branches, treeProblems, type SeenSpan } from "./spans.js";

/** The sender's own trace. */
const SENDER = { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7" };

/** `spansOf(traceId)`: what the collector has by now. Returns the spans of the whole run. */
export async function tracedRun(docket: Docket, spansOf: (traceId: string) => Promise<readonly SeenSpan[]>): Promise<readonly SeenSpan[]> {
  const session = freshSession("traced");
  const accepted = await docket.prompt(session, "refund 1200 cents of order 1001", { headers: { traceparent: `00-${SENDER.traceId}-${SENDER.spanId}-01` } });
  await docket.openApproval(session);
  const has = (spans: readonly SeenSpan[], name: string, times = 1): boolean => spans.filter((span) => span.name === name).length >= times;
  await eventually("the first stretch of the run at the collector", async () => {
    const spans = await spansOf(SENDER.traceId);
    return ["accept com.docket.prompt.received.v1", "invoke_agent assistant", "ask issue_refund", "turn ReceiveEvent"].every((name) => has(spans, name)) ? true : undefined;
  }, 20_000);

  await docket.test.stack.killAll("SIGKILL");
  await docket.test.stack.startAll();

  expect(await docket.decide(await docket.openApproval(session), "approve")).toMatchObject({ status: 200 });
  expect((await docket.ended(accepted)).outcome).toBe("completed");
  return await eventually("the whole run at the collector", async () => {
    const spans = await spansOf(SENDER.traceId);
    return has(spans, "answer") && has(spans, "invoke_agent assistant", 2) && has(spans, "decide issue_refund") && has(spans, "run issue_refund") && has(spans, "turn RecordToolResult") ? spans : undefined;
  }, 30_000);
}

/** One tree with the right parents, and nothing that was open while a person was awaited. */
export function checkTracedRun(spans: readonly SeenSpan[], model = "assistant"): void {
  expect(treeProblems(spans, SENDER.spanId), branches(spans).join("\n")).toEqual([]);
  const tree = new Set(branches(spans));
  const accept = "accept com.docket.prompt.received.v1";
  for (const branch of [
    `- > ${accept}`, `${accept} > turn ReceiveEvent`, `${accept} > invoke_agent assistant`, `invoke_agent assistant > chat ${model}`, "invoke_agent assistant > ask issue_refund",
    `${accept} > decide issue_refund`, "decide issue_refund > turn Decide", "invoke_agent assistant > execute_tool issue_refund", "execute_tool issue_refund > run issue_refund",
    "run issue_refund > turn RecordToolResult", "invoke_agent assistant > answer", `chat ${model} > turn RecordAnswer`,
  ]) expect([...tree], `${branch} is missing`).toContain(branch);
  const stretches = spans.filter(({ name }) => name === "invoke_agent assistant").sort((a, b) => a.startMs - b.startMs);
  const [before, after] = stretches;
  const asked = spans.find(({ name }) => name === "ask issue_refund");
  const decided = spans.find(({ name }) => name === "decide issue_refund");
  expect(stretches).toHaveLength(2);
  expect(after?.links).toEqual(expect.arrayContaining([before?.spanId, asked?.spanId, decided?.spanId]));
  expect(decided?.links).toEqual([asked?.spanId]);
  // The wait, which the restart is part of, belongs to no span.
  expect(spans.filter(({ startMs, endMs }) => startMs <= (before?.endMs ?? 0) && endMs >= (decided?.startMs ?? 0)).map(({ name }) => name)).toEqual([]);
  expect(new Set(spans.map(({ service }) => service))).toEqual(new Set(["gateway", "sessions", "tools", "console"]));
  const chats = spans.filter(({ name }) => name === `chat ${model}`);
  expect(chats.map(({ attributes }) => attributes["gen_ai.usage.input_tokens"]).every((tokens) => typeof tokens === "number" && tokens > 0)).toBe(true);
  for (const { name, attributes } of spans) {
    expect(attributes["gen_ai.conversation.id"], name).toMatch(/^traced-/);
    expect(JSON.stringify(attributes), name).not.toMatch(/1200|espresso/);
  }
}
