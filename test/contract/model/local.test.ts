/** Owns: the model contract against local subjects: the scripted model, and both HTTP providers over servers on loopback. */
import { AnthropicModel } from "../../../src/model/anthropic.js";
import type { Model } from "../../../src/model/model.js";
import { OpenAiCompatibleModel } from "../../../src/model/openai-compatible.js";
import { ScriptedModel } from "../../../src/model/scripted.js";
import { parseScript, type Script } from "../../../src/model/script.js";
import { anthropicReply, anthropicSeen } from "./anthropic-wire.js";
import { describeModelContract, type Scene, type Subject } from "./model.contract.js";
import { openAiReply, openAiSeen } from "./openai-wire.js";
import { WireServer } from "./wire-server.js";

const CLAUDE = "claude-sonnet-4-5";

describeModelContract("anthropic over a local server", async (): Promise<Subject> => {
  const server = await WireServer.start();
  const model = (apiKey: string): Model => new AnthropicModel({ apiKey, baseUrl: server.url });
  return {
    model: model("right-key"), wrongKey: model("wrong-key-0123456789"), name: CLAUDE, usage: "staged", priced: true,
    stage: (scene) => server.reply(anthropicReply(scene, CLAUDE)), seen: () => anthropicSeen(server.requests), cut: () => server.cut(), close: () => server.close(),
  };
});

describeModelContract("openai-compatible over a local server", async (): Promise<Subject> => {
  const server = await WireServer.start();
  const model = (apiKey: string): Model => new OpenAiCompatibleModel({ apiKey, baseUrl: `${server.url}/v1` });
  return {
    model: model("right-key"), wrongKey: model("wrong-key-0123456789"), name: "gpt-4o-mini", usage: "staged", priced: true,
    stage: (scene) => server.reply(openAiReply(scene, "gpt-4o-mini")), seen: () => openAiSeen(server.requests), cut: () => server.cut(), close: () => server.close(),
  };
});

describeModelContract("scripted", async (): Promise<Subject> => {
  const scripts = new Map<string, Script>();
  return {
    model: new ScriptedModel({ scripts }), name: "scene", usage: "some", priced: true,
    stage: (scene) => void scripts.set("scene", scriptOf(scene)), close: async () => undefined,
  };
}, {
  "429 in ms": "a script says the wait itself", "wrong key": "there is no key", "one request": "there is no request",
  "early close": "the same as a reset", "overloaded inside": "the same as a reset",
});

function scriptOf(scene: Scene): Script {
  switch (scene.kind) {
    case "answer":
      return script({ say: scene.text, call: scene.calls?.map((call) => ({ tool: call.name, args: call.args })), stop: scene.stop });
    case "refuse":
      return script({ fail: { kind: scene.status === 400 ? "permanent" : "transient", message: scene.message, retryAfterMs: scene.headers === undefined ? undefined : Number(scene.headers["retry-after"]) * 1000 } });
    case "break":
      return scene.how === "stall"
        ? script({ say: `${scene.after} and more that never comes` }, { chars: scene.after.length, everyMs: 600_000 })
        : script({ say: `${scene.after}tence`, fail: { kind: "transient", afterChars: scene.after.length } });
  }
}

function script(rule: object, stream = { chars: 5, everyMs: 0 }): Script {
  return parseScript(JSON.parse(JSON.stringify({ stream, rules: [rule, { ...rule, when: { tool: "*" } }] })), "scene");
}
