import { describe, expect, it } from "vitest";
import { stringifyLossless } from "../../../src/contracts/json.js";
import { anthropicBody } from "../../../src/model/anthropic-request.js";
import type { ModelMessage, ModelTool } from "../../../src/model/model.js";
import { request } from "./request.js";

const TOOLS: ModelTool[] = ["a", "b"].map((name) => ({ name, description: "d", inputSchema: { type: "object", properties: {} } }));
const ROUND = (n: number): ModelMessage[] => [
  { role: "assistant", text: "", calls: [{ id: `c${String(n)}`, name: "a", args: "{}" }] },
  { role: "tool_results", results: [{ id: `c${String(n)}`, name: "a", text: "ok", isError: false }] },
];
const CONVERSATION: ModelMessage[] = [{ role: "user", text: "go" }, ...ROUND(1), ...ROUND(2), ...ROUND(3)];
const off = { thinking: "off" } as const;
const marked = (value: unknown): number => stringifyLossless(value).split("cache_control").length - 1;

describe("the prompt's cacheable prefix", () => {
  it("is marked at the last tool, the instructions, and the end of the last two user-side messages", () => {
    const body = anthropicBody(request({ tools: TOOLS, messages: CONVERSATION }), off);
    expect([marked(body.tools?.[0]), marked(body.tools?.[1]), marked(body.system)]).toEqual([0, 1, 1]);
    expect(body.messages.map(marked)).toEqual([0, 0, 0, 0, 1, 0, 1]);
    expect(marked(body)).toBe(4);
  });

  it("has the same bytes up to the previous call's breakpoint, one round later", () => {
    const bare = (messages: readonly ModelMessage[]): string => stringifyLossless(anthropicBody(request({ tools: TOOLS, messages }), off)).replaceAll(',"cache_control":{"type":"ephemeral"}', "");
    const earlier = bare(CONVERSATION);
    expect(bare([...CONVERSATION, ...ROUND(4)]).startsWith(earlier.slice(0, earlier.lastIndexOf("]}")))).toBe(true);
  });

  it("leaves out instructions and tools that are empty", () => {
    const body = anthropicBody(request({ instructions: " ", tools: [] }), off);
    expect(body).not.toHaveProperty("system");
    expect(body).not.toHaveProperty("tools");
  });
});

describe("the transcript", () => {
  it("puts results before text that was steered in between, in one message", () => {
    const body = anthropicBody(request({ messages: [...CONVERSATION.slice(0, 3), { role: "user", text: "and hurry" }] }), off);
    expect(body.messages.map((message) => message.role)).toEqual(["user", "assistant", "user"]);
    expect(body.messages[2]!.content).toMatchObject([{ type: "tool_result", tool_use_id: "c1" }, { type: "text", text: "and hurry" }]);
  });

  it("sends nothing that the API refuses: empty text, odd ids, arguments that are no object", () => {
    const body = anthropicBody(request({ messages: [{ role: "user", text: "" }, { role: "assistant", text: "  ", calls: [{ id: "a:b", name: "a", args: "[1]" }] }, { role: "assistant", text: "", calls: [] }] }), off);
    expect(body.messages).toMatchObject([
      { role: "user", content: [{ type: "text", text: "(empty message)" }] },
      { role: "assistant", content: [{ type: "tool_use", input: { unparsed_arguments: "[1]" } }] },
    ]);
    expect(stringifyLossless(body)).toMatch(/"id":"id_[0-9a-f]{32}"/);
  });

  it("keeps the digits of arguments", () => {
    const messages: ModelMessage[] = [{ role: "user", text: "x" }, { role: "assistant", text: "", calls: [{ id: "c", name: "a", args: '{"id":9007199254740993,"f":1.10}' }] }];
    expect(stringifyLossless(anthropicBody(request({ messages }), off))).toContain('"input":{"id":9007199254740993,"f":1.10}');
  });

  it("hands thinking blocks back where they stood, and ignores another provider's carry", () => {
    const block = { type: "thinking", thinking: "", signature: "EqQBCg" };
    const carry = JSON.stringify({ anthropic: [{ before: 0, block }, { before: 2, block: { type: "redacted_thinking", data: "x" } }] });
    const message = (kept: string): ModelMessage => ({ role: "assistant", text: "hm", calls: [{ id: "c", name: "a", args: "{}" }, { id: "d", name: "a", args: "{}" }], carry: kept });
    const types = (kept: string): unknown => (anthropicBody(request({ messages: [{ role: "user", text: "x" }, message(kept)] }), off).messages[1]!.content as { type: string }[]).map(({ type }) => type);
    expect(types(carry)).toEqual(["thinking", "text", "tool_use", "redacted_thinking", "tool_use"]);
    expect(types('{"openai":1}')).toEqual(["text", "tool_use", "tool_use"]);
    expect(types("{")).toEqual(["text", "tool_use", "tool_use"]);
  });
});

describe("thinking", () => {
  it.each([
    ["claude-sonnet-5-5", { type: "between_tools" }], ["claude-opus-5", { type: "disabled" }], ["claude-sonnet-5", { type: "disabled" }], ["claude-haiku-5-5", { type: "disabled" }],
    ["claude-opus-5-5", undefined], ["claude-fable-5-1", undefined], ["claude-sonnet-4-5", undefined], ["claude-of-the-future", undefined],
  ])("is turned off on %s as that model takes it", (model, expected) => {
    expect(anthropicBody(request({ model }), off).thinking).toEqual(expected);
    expect(anthropicBody(request({ model }), { thinking: "model_default" }).thinking).toBeUndefined();
  });
});
