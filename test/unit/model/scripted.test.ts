import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { ModelMessage, ModelRequest } from "../../../src/model/model.js";
import { parseScript } from "../../../src/model/script.js";
import { ScriptedModel, type CallLogLine } from "../../../src/model/scripted.js";
import { rejection, request } from "./request.js";

const scripted = (rules: unknown, stream?: object): ScriptedModel => new ScriptedModel({ scripts: new Map([["m", parseScript({ rules, ...(stream === undefined ? {} : { stream }) }, "test")]]) });
const user = (text: string): ModelMessage => ({ role: "user", text });
const called = (...results: { name: string; text: string; isError?: boolean }[]): ModelMessage[] => [
  { role: "assistant", text: "", calls: results.map(({ name }, index) => ({ id: `c${String(index)}`, name, args: "{}" })) },
  { role: "tool_results", results: results.map(({ name, text, isError = false }, index) => ({ id: `c${String(index)}`, name, text, isError })) },
];
const at = (step: number, attempt = 1): Pick<ModelRequest, "context"> => ({ context: { sessionId: "s", runId: "run_1", step, attempt } });

describe("rules", () => {
  it("answer in order, the first that fits, with named and numbered captures", async () => {
    const model = scripted([
      { when: { user: "/order (?<id>ord-\\d+)/i" }, say: "{{id}}={{1}}" },
      { when: { user: "exactly (this)" }, say: "literal" },
      { say: "fallback to {{user}}" },
    ]);
    const say = async (text: string): Promise<string> => (await model.answer(request({ messages: [user(text)] }))).text;
    expect(await say("Order ord-7 please")).toBe("ord-7=ord-7");
    expect(await say("exactly (this)")).toBe("literal");
    expect(await say("exactly this")).toBe("fallback to exactly this");
  });

  it("without a word on results answer user messages only, so a script cannot loop on its own tool", async () => {
    const model = scripted([{ when: { user: "go" }, call: { tool: "a" } }, { when: { tool: "a" }, say: "done" }]);
    expect((await model.answer(request({ messages: [user("go")] }))).calls).toHaveLength(1);
    expect(await model.answer(request({ messages: [user("go"), ...called({ name: "a", text: "ok" })] }))).toMatchObject({ text: "done", calls: [], stop: "end" });
  });

  it("look at the results of the last answer: by tool, text and status, several side by side", async () => {
    const model = scripted([
      { when: { tool: ["a", "b"], status: "error", result: "/code (\\d+)/" }, say: "{{tool}} failed with {{1}}" },
      { when: { tool: "*" }, say: "all well: {{results.a}} {{results.b}}" },
    ]);
    expect((await model.answer(request({ messages: [user("x"), ...called({ name: "a", text: "fine" }, { name: "b", text: "code 42", isError: true })] }))).text).toBe("b failed with 42");
    expect((await model.answer(request({ messages: [user("x"), ...called({ name: "b", text: "code 1", isError: true }), ...called({ name: "a", text: "1" }, { name: "b", text: "2" })] }))).text).toBe("all well: 1 2");
  });

  it("look at step and round", async () => {
    const model = scripted([{ when: { step: 3 }, say: "third step" }, { when: { round: [2, 3] }, say: "round {{round}}" }, { say: "first" }]);
    const messages = [user("x"), ...called({ name: "a", text: "1" })];
    expect((await model.answer(request({ messages, ...at(2) }))).text).toBe("round 2");
    expect((await model.answer(request({ messages, ...at(3) }))).text).toBe("third step");
    expect((await model.answer(request({ messages: [...messages, user("again")], ...at(2) }))).text).toBe("first");
  });

  it("none of which fits are a permanent failure that says what was heard", async () => {
    expect(await rejection(scripted([{ when: { user: "a" }, say: "x" }]).answer(request({ messages: [user("zzz")] })))).toMatchObject({ kind: "permanent", message: expect.stringContaining('"zzz"') as string });
    expect(await rejection(scripted([{ say: "{{nothing}}" }]).answer(request()))).toMatchObject({ kind: "permanent", message: expect.stringContaining("{{nothing}}") as string });
  });
});

describe("calls", () => {
  it("take values out of JSON, digits and types kept", async () => {
    const model = scripted([{ call: [
      { tool: "a", args: { id: "{{user.order.id}}", text: "no. {{user.order.id}}", nested: [{ lines: "{{user.order.lines}}" }], fixed: 9007199254740993n } },
      { tool: "b", args: '{"id": {{user.order.id}}, "note": "{{user.order.note}}"}' },
    ] }]);
    const { calls } = await model.answer(request({ messages: [user('{"order":{"id":9007199254740993,"lines":[1,2.50],"note":"say \\"hi\\""}}')] }));
    expect(calls[0]!.args).toBe('{"id":9007199254740993,"text":"no. 9007199254740993","nested":[{"lines":[1,2.50]}],"fixed":9007199254740993}');
    expect(calls[1]!.args).toBe('{"id": 9007199254740993, "note": "say \\"hi\\""}');
  });

  it("have ids that are the same on every attempt and differ within a session", async () => {
    const model = scripted([{ call: [{ tool: "a" }, { tool: "b" }] }]);
    const ids = async (step: number, attempt: number): Promise<string[]> => (await model.answer(request(at(step, attempt)))).calls.map((call) => call.id);
    expect(await ids(1, 1)).toEqual(await ids(1, 2));
    expect(new Set([...await ids(1, 1), ...await ids(2, 1)]).size).toBe(4);
  });
});

describe("failures", () => {
  it("count by the attempt number, so that a restart changes nothing", async () => {
    const rules = [{ fail: { kind: "transient", attempts: 2, retryAfterMs: 50, message: "503" }, say: "at last" }];
    for (const attempt of [1, 2]) expect(await rejection(scripted(rules).answer(request(at(1, attempt))))).toMatchObject({ kind: "transient", retryAfterMs: 50, message: "503" });
    expect((await scripted(rules).answer(request(at(1, 3)))).text).toBe("at last");
    expect((await scripted(rules).answer(request(at(9, 3)))).text).toBe("at last");
  });
});

describe("determinism and limits", () => {
  it("gives the same answer and usage every time, at no cost, and cuts at the output limit", async () => {
    const model = scripted([{ say: "0123456789".repeat(10), call: { tool: "a" } }]);
    const first = await model.answer(request());
    expect(await model.answer(request())).toEqual(first);
    expect(first).toMatchObject({ costUsd: 0, usage: { outputTokens: Math.ceil((100 + 1 + 2) / 4) } });
    expect(await model.answer(request({ maxOutputTokens: 3 }))).toMatchObject({ text: "012345678901", stop: "max_tokens", calls: [] });
    expect(model.calls).toBe(3);
    expect(model.reserveUsd()).toBe(0);
  });

  it("stops waiting when aborted", async () => {
    const abort = new AbortController();
    const pending = rejection(scripted([{ delayMs: 600_000, say: "never" }]).answer(request({ signal: abort.signal })));
    abort.abort();
    expect(await pending).toMatchObject({ kind: "aborted", partialText: "" });
  });

  it("never cuts a character in two", async () => {
    const deltas: string[] = [];
    await scripted([{ say: "🦊🦊🦊" }], { chars: 1 }).answer(request({ onDelta: (text) => deltas.push(text) }));
    expect(deltas).toEqual(["🦊", "🦊", "🦊"]);
  });
});

describe("scripted:echo and names", () => {
  it("is always there", async () => {
    const model = new ScriptedModel();
    expect((await model.answer(request({ model: "echo", messages: [user("hi")] }))).text).toBe("You said: hi");
    expect((await model.answer(request({ model: "echo", messages: [user("hi"), ...called({ name: "clock", text: "noon" })] }))).text).toBe("clock answered: noon");
  });

  it("tells the nearest name for one that is not known", async () => {
    expect(await rejection(new ScriptedModel().answer(request({ model: "ehco" })))).toMatchObject({ kind: "permanent", message: expect.stringContaining('did you mean "echo"') as string });
  });
});

describe("the call log", () => {
  it("has one line per call, failed and aborted ones too", async () => {
    const callLog = join(mkdtempSync(join(tmpdir(), "docket-model-")), "deep", "calls.jsonl");
    const model = new ScriptedModel({ callLog });
    await model.answer(request({ model: "echo", ...at(4, 2) }));
    await rejection(model.answer(request({ model: "nobody" })));
    await rejection(model.answer(request({ model: "echo", signal: AbortSignal.abort() })));
    const lines = readFileSync(callLog, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line) as CallLogLine);
    expect(lines).toHaveLength(3);
    expect(lines[0]).toEqual({ at: expect.any(String) as string, sessionId: "s", runId: "run_1", step: 4, attempt: 2, model: "echo" });
  });
});
