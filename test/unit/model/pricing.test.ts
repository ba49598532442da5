import { describe, expect, it } from "vitest";
import { costUsd, priceOf, promptTokensBound, reserveUsd } from "../../../src/model/pricing.js";
import { request } from "./request.js";

const usage = (over: object = {}) => ({ inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, ...over });

describe("price of a model", () => {
  it("is found by family for dated and -latest names", () => {
    for (const name of ["claude-sonnet-4-5", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5-latest"]) expect(priceOf("anthropic", name)).toMatchObject({ input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 });
    expect(priceOf("openai", "gpt-4o-mini-2024-07-18")).toMatchObject({ input: 0.15 });
  });

  it("is unknown for others, never guessed, also for names like those of an object's members", () => {
    for (const name of ["meta/llama-3.3-70b-instruct", "claude-opus-99", "constructor", "__proto__", ""]) expect(priceOf("openai", name)).toBeNull();
    expect(costUsd(usage({ inputTokens: 5 }), null)).toBeNull();
    expect(reserveUsd(request(), null)).toBe(0);
  });

  it("is overridden by configuration, for one server or for all", () => {
    const own = { input: 1, output: 2, cacheRead: 0, cacheWrite: 0 };
    expect(priceOf("nim", "llama", { "nim:llama": own })).toBe(own);
    expect(priceOf("ollama", "llama", { "nim:llama": own })).toBeNull();
    expect(priceOf("anthropic", "claude-haiku-4-5", { "claude-haiku-4-5": own })).toBe(own);
  });
});

describe("cost", () => {
  it("counts each kind of token at its own price", () => {
    expect(costUsd(usage({ inputTokens: 1e6, outputTokens: 1e6, cacheReadTokens: 1e6, cacheWriteTokens: 1e6 }), priceOf("anthropic", "claude-opus-4-8"))).toBeCloseTo(5 + 25 + 0.5 + 6.25, 9);
  });

  it("goes over to the long-prompt band by the whole prompt, cached parts included", () => {
    const price = priceOf("anthropic", "claude-haiku-5-5");
    expect(costUsd(usage({ inputTokens: 1, cacheReadTokens: 99_999 }), price)).toBeCloseTo((0.1 + 99_999 * 0.01) / 1e6, 12);
    expect(costUsd(usage({ inputTokens: 2, cacheReadTokens: 99_999, outputTokens: 10 }), price)).toBeCloseTo((2 * 0.5 + 99_999 * 0.05 + 10 * 2.5) / 1e6, 12);
  });
});

describe("reservation", () => {
  it("is above what the call can come to: prompt written to the cache, output used up", () => {
    const asked = request({ model: "claude-sonnet-4-5", messages: [{ role: "user", text: "word ".repeat(3000) }], maxOutputTokens: 1000 });
    const reserved = reserveUsd(asked, priceOf("anthropic", asked.model));
    expect(reserved).toBeGreaterThan((3000 * 3.75 + 1000 * 15) / 1e6);
    expect(reserved).toBeLessThan((3000 * 3.75 + 1000 * 15) / 1e6 * 2);
  });

  it("counts bytes, not characters, and everything that is sent", () => {
    const bound = (over: object): number => promptTokensBound(request(over));
    expect(bound({ messages: [{ role: "user", text: "漢".repeat(1000) }] })).toBeGreaterThanOrEqual(1000);
    const plain = bound({});
    expect(bound({ tools: [{ name: "t", description: "x".repeat(300), inputSchema: {} }] })).toBeGreaterThan(plain + 100);
    expect(bound({ messages: [{ role: "assistant", text: "", calls: [{ id: "c", name: "f", args: "x".repeat(300) }] }] })).toBeGreaterThan(plain + 100);
    expect(bound({ messages: [{ role: "tool_results", results: [{ id: "c", name: "f", text: "x".repeat(300), isError: false }] }] })).toBeGreaterThan(plain + 100);
  });
});
