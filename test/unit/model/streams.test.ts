/** Streams as real servers send them, odd ones included: bytes taken from the providers' documents and servers' known habits. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AnthropicModel } from "../../../src/model/anthropic.js";
import { OpenAiCompatibleModel } from "../../../src/model/openai-compatible.js";
import { WireServer } from "../../contract/model/wire-server.js";
import { rejection, request } from "./request.js";

let server: WireServer;
beforeAll(async () => { server = await WireServer.start(7); });
afterAll(() => server.close());
const sse = (body: string, then: "end" | "stall" = "end"): void => server.reply({ status: 200, body, then });
const named = (...events: { type: string }[]): string => events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
const claude = (options: object = {}): AnthropicModel => new AnthropicModel({ apiKey: "k", baseUrl: server.url, ...options });
const chat = (options: object = {}): OpenAiCompatibleModel => new OpenAiCompatibleModel({ baseUrl: `${server.url}/v1`, ...options });

describe("anthropic", () => {
  it("keeps thinking out of the text and carries it, signature and all", async () => {
    sse(named(
      { type: "message_start", message: { id: "msg_1", type: "message", role: "assistant", model: "claude-opus-5-5", content: [], stop_reason: null, usage: { input_tokens: 10, output_tokens: 1 } } } as { type: string },
      { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "", signature: "" } } as { type: string },
      { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "Let me " } } as { type: string },
      { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "see." } } as { type: string },
      { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "EqQBCgIYAhIM" } } as { type: string },
      { type: "content_block_stop", index: 0 } as { type: string },
      { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } } as { type: string },
      { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "27 * 453 = 12,231" } } as { type: string },
      { type: "content_block_stop", index: 1 } as { type: string },
      { type: "some_event_of_the_future", index: 1 } as { type: string },
      { type: "message_delta", delta: { stop_reason: "a_reason_of_the_future" }, usage: { output_tokens: 40 } } as { type: string },
      { type: "message_stop" },
    ));
    const answer = await claude().answer(request({ model: "claude-opus-5-5" }));
    expect(answer).toMatchObject({ text: "27 * 453 = 12,231", stop: "end", usage: { inputTokens: 10, outputTokens: 40, cacheReadTokens: 0, cacheWriteTokens: 0 } });
    expect(JSON.parse(answer.carry!)).toEqual({ anthropic: [{ before: 0, block: { type: "thinking", thinking: "Let me see.", signature: "EqQBCgIYAhIM" } }] });
    expect(answer.costUsd).toBeCloseTo((10 * 4 + 40 * 20) / 1e6, 12);
  });

  it("reports what a broken call had used", async () => {
    sse(named({ type: "message_start", message: { id: "m", type: "message", role: "assistant", model: "c", content: [], usage: { input_tokens: 9, output_tokens: 1 } } } as { type: string },
      { type: "error", error: { type: "invalid_request_error", message: "output blocked" } } as { type: string }));
    expect(await rejection(claude().answer(request()))).toMatchObject({ kind: "permanent", usage: { inputTokens: 9, outputTokens: 1 } });
  });

  it("sends what the API asks for: version, key, stream", async () => {
    server.reply({ status: 401, body: "{}", then: "end" });
    await rejection(claude().answer(request()));
    const seen = server.requests.at(-1)!;
    expect(seen).toMatchObject({ path: "/v1/messages", headers: { authorization: "Bearer k", "anthropic-version": expect.stringMatching(/^20\d\d-/) as string, "content-type": "application/json" } });
    expect(JSON.parse(seen.body)).toMatchObject({ stream: true, max_tokens: 100 });
  });

  it("gives up on a server that goes silent", async () => {
    sse(named({ type: "ping" }), "stall");
    expect(await rejection(claude({ idleTimeoutMs: 40 }).answer(request()))).toMatchObject({ kind: "transient", message: expect.stringContaining("40 ms") as string });
  });

  it("takes a server that cannot be reached as transient", async () => {
    expect(await rejection(new AnthropicModel({ apiKey: "k", baseUrl: "http://127.0.0.1:1" }).answer(request()))).toMatchObject({ kind: "transient" });
  });

  it("takes a gateway's HTML page and a stream that is no JSON as what they are", async () => {
    server.reply({ status: 502, body: "<html>bad gateway</html>", then: "end" });
    expect(await rejection(claude().answer(request()))).toMatchObject({ kind: "transient" });
    sse("event: message_start\ndata: {broken\n\n");
    expect(await rejection(claude().answer(request()))).toMatchObject({ kind: "transient" });
  });
});

const chunk = (delta: object, finish: string | null = null, more: object = {}): string => `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", model: "llama3.2", choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`;

describe("openai-compatible", () => {
  it("does not estimate usage that was not reported", async () => {
    sse(`${chunk({ content: "hi" })}${chunk({}, "stop")}data: [DONE]\n\n`);
    expect(await chat().answer(request({ model: "gpt-4o" }))).toMatchObject({ text: "hi", usage: { inputTokens: 0, outputTokens: 0 }, costUsd: null });
  });

  it("takes Ollama's calls: whole, finish reason `stop`, indexes all zero or missing", async () => {
    const call = (id: string, city: string): object => ({ tool_calls: [{ id, type: "function", function: { name: "look_up", arguments: `{"city":"${city}"}` } }] });
    sse(`${chunk(call("call_a", "Bern"))}${chunk(call("call_b", "Oslo"))}${chunk({ content: "" }, "stop")}data: [DONE]\n\n`);
    expect(await chat().answer(request())).toMatchObject({ stop: "tool_use", calls: [{ id: "call_a", args: '{"city":"Bern"}' }, { id: "call_b", args: '{"city":"Oslo"}' }] });
  });

  it("gives calls without an id, or with one twice, ids that are the same on every attempt and differ", async () => {
    const body = `${chunk({ tool_calls: [0, 1].map((index) => ({ index, id: "", function: { name: "look_up", arguments: "{}" } })) })}${chunk({}, "tool_calls")}data: [DONE]\n\n`;
    const ids = async (attempt: number): Promise<string[]> => {
      sse(body);
      return (await chat().answer(request({ context: { sessionId: "s", runId: "run_9", step: 3, attempt } }))).calls.map((call) => call.id);
    };
    const first = await ids(1);
    expect(await ids(2)).toEqual(first);
    expect(new Set(first).size).toBe(2);
    sse(body.replaceAll('"id":""', '"id":"same"'));
    expect(new Set((await chat().answer(request())).calls.map((call) => call.id)).size).toBe(2);
  });

  it("assembles calls whose pieces are interleaved", async () => {
    const piece = (index: number, args: string, id?: string): string => chunk({ tool_calls: [{ index, ...(id === undefined ? {} : { id }), function: { ...(id === undefined ? {} : { name: "f" }), arguments: args } }] });
    sse(`${piece(1, '{"b"', "y")}${piece(0, '{"a"', "x")}${piece(1, ":2}")}${piece(0, ":1}")}${chunk({}, "tool_calls")}data: [DONE]\n\n`);
    expect((await chat().answer(request())).calls).toEqual([{ id: "x", name: "f", args: '{"a":1}' }, { id: "y", name: "f", args: '{"b":2}' }]);
  });

  it("reads the refusal field, and reasoning only as what it is: not text", async () => {
    sse(`${chunk({ reasoning_content: "hmm" })}${chunk({ refusal: "I cannot." })}${chunk({}, "stop")}data: [DONE]\n\n`);
    expect(await chat().answer(request())).toMatchObject({ text: "I cannot.", stop: "refusal" });
  });

  it("takes vLLM's error inside a stream by its code", async () => {
    const error = (code: number): string => `data: ${JSON.stringify({ error: { object: "error", message: "context too long", type: "BadRequestError", code } })}\n\n`;
    sse(`${chunk({ content: "a" })}${error(400)}`);
    expect(await rejection(chat().answer(request()))).toMatchObject({ kind: "permanent", partialText: "a" });
    sse(error(503));
    expect(await rejection(chat().answer(request()))).toMatchObject({ kind: "transient" });
  });

  it("knows the 429 that no waiting cures", async () => {
    server.reply({ status: 429, body: JSON.stringify({ error: { message: "You exceeded your current quota", type: "insufficient_quota", code: "insufficient_quota" } }), then: "end" });
    expect(await rejection(chat().answer(request()))).toMatchObject({ kind: "permanent" });
  });

  it("names the token limit as the server knows it", async () => {
    for (const field of ["max_tokens", "max_completion_tokens"] as const) {
      server.reply({ status: 400, body: "{}", then: "end" });
      await rejection(chat({ maxTokensField: field }).answer(request()));
      expect(JSON.parse(server.requests.at(-1)!.body)).toMatchObject({ [field]: 100, stream_options: { include_usage: true } });
    }
  });
});
