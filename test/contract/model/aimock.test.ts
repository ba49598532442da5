/**
 * Owns: a second opinion: the same contract against @copilotkit/aimock, a mock of both protocols that nobody here wrote.
 * It is not the only server because it re-serialises arguments (64-bit integers are rounded), reports no cache tokens and
 * has no errors inside a stream; those clauses are shown over wire-server.ts.
 */
import { LLMock, type FixtureOpts } from "@copilotkit/aimock";
import { AnthropicModel } from "../../../src/model/anthropic.js";
import { OpenAiCompatibleModel } from "../../../src/model/openai-compatible.js";
import { describeModelContract, type Clause, type Scene, type Subject } from "./model.contract.js";
import { openAiSeen } from "./openai-wire.js";

const CANNOT: Partial<Record<Clause, string>> = {
  "big integers": "aimock parses arguments as doubles", "429 in ms": "aimock sends retry-after only",
  "overloaded inside": "aimock has no error events", abort: "aimock does not stall after a given text", "early close": "aimock destroys the socket only",
};

function stage(mock: LLMock, scene: Scene, framesBeforeText: number): void {
  mock.clearFixtures();
  const on = (response: object, options: FixtureOpts = {}): void => void mock.on({}, response, { chunkSize: 6, ...options });
  switch (scene.kind) {
    case "refuse":
      on({ status: scene.status, error: { message: scene.message, type: scene.type }, ...(scene.headers === undefined ? {} : { retryAfter: Number(scene.headers["retry-after"] ?? 1) }) });
      return;
    case "break":
      on({ content: `${scene.after}tence that goes on` }, { chunkSize: scene.after.length, truncateAfterChunks: framesBeforeText + 2, latency: 30 });
      return;
    case "answer": {
      const finishReason = scene.stop === "max_tokens" ? "length" : scene.stop === "refusal" ? (framesBeforeText === 1 ? "content_filter" : "refusal") : undefined;
      const rest = { usage: { prompt_tokens: 11, completion_tokens: 5 }, ...(finishReason === undefined ? {} : { finishReason }) };
      const toolCalls = scene.calls?.map((call) => ({ name: call.name, arguments: call.args }));
      on(toolCalls === undefined ? { content: scene.text, ...rest } : { content: scene.text, toolCalls, ...rest });
    }
  }
}

const seen = (mock: LLMock) => openAiSeen(mock.getRequests().map((entry) => ({ path: "", headers: {}, body: JSON.stringify(entry.body) })));

describeModelContract("anthropic over aimock", async (): Promise<Subject> => {
  const mock = await LLMock.create({ port: 0, logLevel: "silent" });
  return {
    model: new AnthropicModel({ apiKey: "wrong-key-0123456789", baseUrl: mock.url }), name: "claude-haiku-4-5", usage: "some", priced: true,
    stage: (scene) => stage(mock, scene, 2), seen: () => seen(mock), close: () => mock.stop(),
  };
}, { ...CANNOT, "round trip": "aimock parses arguments as doubles" });

describeModelContract("openai-compatible over aimock", async (): Promise<Subject> => {
  const mock = await LLMock.create({ port: 0, logLevel: "silent" });
  return {
    model: new OpenAiCompatibleModel({ apiKey: "wrong-key-0123456789", baseUrl: `${mock.url}/v1` }), name: "gpt-4o-mini", usage: "some", priced: true,
    stage: (scene) => stage(mock, scene, 1), seen: () => seen(mock), close: () => mock.stop(),
  };
}, CANNOT);
