/** Owns: the Messages API's side of the wire, as platform.claude.com/docs/en/build-with-claude/streaming shows it: named events, pings, block indexes, cumulative usage. */
import { parseLossless, stringifyLossless } from "../../../src/contracts/json.js";
import type { Scene, Seen, StagedCall } from "./model.contract.js";
import type { Recorded, Reply } from "./wire-server.js";

const event = (type: string, data: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
const pieces = (text: string, size: number): string[] => text.match(new RegExp(`.{1,${String(size)}}`, "gsu")) ?? [];

export function anthropicReply(scene: Scene, model: string): Reply {
  if (scene.kind === "refuse") {
    return { status: scene.status, headers: { "request-id": "req_011CSHoEeqs5C35K2UUqR7Fy", ...scene.headers }, then: "end",
      body: JSON.stringify({ type: "error", error: { type: scene.type, message: scene.message }, request_id: "req_011CSHoEeqs5C35K2UUqR7Fy" }) };
  }
  const usage = scene.kind === "answer" && scene.usage !== undefined ? scene.usage : { inputTokens: 472, outputTokens: 30, cacheReadTokens: 0, cacheWriteTokens: 0 };
  const start = event("message_start", { message: {
    id: "msg_014p7gG3wDgGV9EUtLvnow3U", type: "message", role: "assistant", model, content: [], stop_reason: null, stop_sequence: null,
    usage: { input_tokens: usage.inputTokens, cache_creation_input_tokens: usage.cacheWriteTokens, cache_read_input_tokens: usage.cacheReadTokens, output_tokens: 2 },
  } });
  const text = scene.kind === "answer" ? scene.text : scene.after;
  const open = text === "" ? "" : event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }) + event("ping", {})
    + pieces(text, 7).map((piece) => event("content_block_delta", { index: 0, delta: { type: "text_delta", text: piece } })).join("");
  if (scene.kind === "break") {
    const error = scene.how === "overloaded" ? event("error", { error: { type: "overloaded_error", message: "Overloaded" } }) : "";
    return { status: 200, body: start + open + error, then: scene.how === "reset" || scene.how === "stall" ? scene.how : "end" };
  }
  const stop = scene.stop ?? ((scene.calls?.length ?? 0) > 0 ? "tool_use" : "end_turn");
  const first = text === "" ? 0 : 1;
  return { status: 200, then: "end", body: start + open + (text === "" ? "" : event("content_block_stop", { index: 0 }))
    + (scene.calls ?? []).map((call, index) => toolUse(call, first + index)).join("")
    + event("message_delta", { delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: usage.outputTokens } }) + event("message_stop", {}) };
}

function toolUse(call: StagedCall, index: number): string {
  return event("content_block_start", { index, content_block: { type: "tool_use", id: `toolu_01T1x1fJ34qAmk2tNTrN7Up${String(index)}`, name: call.name, input: {} } })
    + event("content_block_delta", { index, delta: { type: "input_json_delta", partial_json: "" } })
    + pieces(call.args, 5).map((piece) => event("content_block_delta", { index, delta: { type: "input_json_delta", partial_json: piece } })).join("")
    + event("content_block_stop", { index });
}

interface WireBlock { readonly type: string; readonly id: string; readonly name: string; readonly input: unknown; readonly tool_use_id: string; readonly content: string }

/** Rounds of the last request: each assistant message with calls, and what the message right after it answers. */
export function anthropicSeen(requests: readonly Recorded[]): Seen {
  const body = parseLossless(requests.at(-1)?.body ?? '{"messages":[]}') as { messages: { role: string; content: WireBlock[] }[] };
  const rounds = body.messages.flatMap((message, index) => {
    const calls = message.role === "assistant" ? message.content.filter((block) => block.type === "tool_use") : [];
    if (calls.length === 0) return [];
    const results = (body.messages[index + 1]?.content ?? []).filter((block) => block.type === "tool_result");
    return [{ calls: calls.map(({ id, name, input }) => ({ id, name, args: stringifyLossless(input) })), results: results.map((block) => ({ id: block.tool_use_id, text: block.content })) }];
  });
  return { rounds, requests: requests.length };
}
