/** Owns: the chat completions side of the wire: unnamed events, calls in pieces by index, usage in a last chunk without choices, [DONE]. */
import type { Scene, Seen } from "./model.contract.js";
import type { Recorded, Reply } from "./wire-server.js";

const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
const pieces = (text: string, size: number): string[] => text.match(new RegExp(`.{1,${String(size)}}`, "gsu")) ?? [];

export function openAiReply(scene: Scene, model: string): Reply {
  if (scene.kind === "refuse") {
    return { status: scene.status, headers: { ...scene.headers }, then: "end", body: JSON.stringify({ error: { message: scene.message, type: scene.type, param: null, code: null } }) };
  }
  const chunk = (choice: object | undefined, more: object = {}): string =>
    data({ id: "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG", object: "chat.completion.chunk", created: 1741570283, model, system_fingerprint: "fp_fc9f1d7035", choices: choice === undefined ? [] : [choice], usage: null, ...more });
  const delta = (value: object, finish: string | null = null): string => chunk({ index: 0, delta: value, logprobs: null, finish_reason: finish });
  const text = scene.kind === "answer" ? scene.text : scene.after;
  const said = delta({ role: "assistant", content: text === "" ? null : "", refusal: null }) + pieces(text, 7).map((piece) => delta({ content: piece })).join("");
  if (scene.kind === "break") {
    const error = scene.how === "overloaded" ? data({ error: { message: "The server is overloaded", type: "server_error", param: null, code: null } }) : "";
    return { status: 200, body: said + error, then: scene.how === "reset" || scene.how === "stall" ? scene.how : "end" };
  }
  const calls = (scene.calls ?? []).map((call, index) =>
    delta({ tool_calls: [{ index, id: `call_DdmO9pD3xa9XTPNJ32zg2hc${String(index)}`, type: "function", function: { name: call.name, arguments: "" } }] })
    + pieces(call.args, 5).map((piece) => delta({ tool_calls: [{ index, function: { arguments: piece } }] })).join("")).join("");
  const finish = scene.stop === "max_tokens" ? "length" : scene.stop === "refusal" ? "content_filter" : calls === "" ? "stop" : "tool_calls";
  const usage = scene.usage ?? { inputTokens: 82, outputTokens: 17, cacheReadTokens: 0, cacheWriteTokens: 0 };
  const prompt = usage.inputTokens + usage.cacheReadTokens;
  return { status: 200, then: "end", body: said + calls + delta({}, finish)
    + chunk(undefined, { usage: { prompt_tokens: prompt, completion_tokens: usage.outputTokens, total_tokens: prompt + usage.outputTokens, prompt_tokens_details: { cached_tokens: usage.cacheReadTokens } } }) + "data: [DONE]\n\n" };
}

interface WireMessage { readonly role: string; readonly content: string | null; readonly tool_call_id: string; readonly tool_calls?: { id: string; function: { name: string; arguments: string } }[] }

export function openAiSeen(requests: readonly Recorded[]): Seen {
  const { messages } = JSON.parse(requests.at(-1)?.body ?? '{"messages":[]}') as { messages: WireMessage[] };
  const rounds = messages.flatMap((message, index) => {
    if (message.tool_calls === undefined) return [];
    const after = messages.slice(index + 1);
    const end = after.findIndex((next) => next.role !== "tool");
    const results = after.slice(0, end === -1 ? after.length : end);
    return [{ calls: message.tool_calls.map((call) => ({ id: call.id, name: call.function.name, args: call.function.arguments })), results: results.map((result) => ({ id: result.tool_call_id, text: result.content ?? "" })) }];
  });
  return { rounds, requests: requests.length };
}
