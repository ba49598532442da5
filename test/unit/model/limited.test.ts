/** Which models had no room is remembered for the console's diagnosis; nothing else changes. */
import { describe, expect, it } from "vitest";
import { modelErrorOf } from "../../../src/model/failure.js";
import { watchLimits } from "../../../src/model/limited.js";
import { ModelError, type Model, type ModelRequest } from "../../../src/model/model.js";

const AT = { provider: "anthropic", model: "m", signal: new AbortController().signal, stalledMs: undefined, partialText: "", usage: undefined, apiKey: "secret-key" };
const failureOf = (status: number | undefined, type?: string): ModelError => modelErrorOf(new Error("x"), { status, type, code: undefined, message: "secret-key is over its limit", headers: undefined }, AT);

describe("a failure for want of room", () => {
  it.each<[string, ModelError, boolean]>([
    ["429", failureOf(429), true], ["529", failureOf(529), true], ["inside a stream", failureOf(undefined, "overloaded_error"), true], ["503", failureOf(503), false], ["401", failureOf(401), false],
    ["our own limit", new ModelError("not_sent", "used up", { limited: true }), true], ["a broken connection", new ModelError("transient", "gone"), false],
  ])("%s", async (_name, error, expected) => {
    const model: Model = { provider: "anthropic", reserveUsd: () => 7, answer: () => Promise.reject(error) };
    const { resolve, limited } = watchLimits((full) => ({ model, name: full.slice(full.indexOf(":") + 1) }), () => 42);
    const { model: watched, name } = resolve("anthropic:m");
    expect([name, watched.provider, watched.reserveUsd({ model: "m", messages: [], maxOutputTokens: 1, instructions: "" })]).toEqual(["m", "anthropic", 7]);
    for (let n = 0; n < 2; n += 1) await expect(watched.answer({} as ModelRequest)).rejects.toBe(error);
    expect(limited()).toEqual(expected ? [{ model: "anthropic:m", atMs: 42, count: 2, message: error.message }] : []);
    expect(JSON.stringify(limited())).not.toContain("secret-key");
  });
});
