/**
 * Owns: the same contract on the real services, where a key is in the environment: ANTHROPIC_API_KEY (model:
 * ANTHROPIC_TEST_MODEL), OPENAI_BASE_URL with OPENAI_TEST_MODEL (and OPENAI_API_KEY). It costs a few cents. What a real
 * service cannot be asked for is not registered.
 */
import { describe, expect, it } from "vitest";
import { AnthropicModel } from "../../../src/model/anthropic.js";
import { OpenAiCompatibleModel } from "../../../src/model/openai-compatible.js";
import { priceOf } from "../../../src/model/pricing.js";
import { describeModelContract, type Clause } from "./model.contract.js";

const CANNOT: Partial<Record<Clause, string>> = Object.fromEntries(
  (["429", "429 in ms", "529", "500", "reset", "early close", "overloaded inside", "refusal", "one request"] satisfies Clause[]).map((clause) => [clause, "a real service cannot be asked for it"]));
const { ANTHROPIC_API_KEY: key, ANTHROPIC_TEST_MODEL: claude = "claude-haiku-4-5", OPENAI_BASE_URL: baseUrl, OPENAI_API_KEY: apiKey, OPENAI_TEST_MODEL: chat } = process.env;

if (key !== undefined && key !== "") {
  describeModelContract(`anthropic, the real service (${claude})`, async () => ({
    model: new AnthropicModel({ apiKey: key }), wrongKey: new AnthropicModel({ apiKey: "wrong-key-0123456789" }), name: claude,
    usage: "some", priced: priceOf("anthropic", claude) !== null, close: async () => undefined,
  }), CANNOT);
}
if (baseUrl !== undefined && baseUrl !== "" && chat !== undefined) {
  const server = { baseUrl, ...(apiKey === undefined ? {} : { apiKey }) };
  describeModelContract(`openai-compatible, ${baseUrl} (${chat})`, async () => ({
    model: new OpenAiCompatibleModel(server), wrongKey: new OpenAiCompatibleModel({ ...server, apiKey: "wrong-key-0123456789" }), name: chat,
    usage: "some", priced: priceOf("openai", chat) !== null, close: async () => undefined,
  }), { ...CANNOT, ...(apiKey === undefined ? { "wrong key": "this server asks for no key" } : {}) });
}

describe("the contract on real services", () => {
  it("says which services were asked", () => {
    const asked = { anthropic: key !== undefined && key !== "", openai: baseUrl !== undefined && baseUrl !== "" && chat !== undefined };
    for (const [service, yes] of Object.entries(asked)) console.info(`model contract: the real ${service} service was ${yes ? "asked" : "NOT asked: no key or address in the environment"}`);
    expect(Object.keys(asked)).toEqual(["anthropic", "openai"]);
  });
});
