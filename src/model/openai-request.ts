/** Owns: the neutral request as chat completions take it. Argument texts go out as they are, so digits are kept. */
import type OpenAI from "openai";
import { stringifyLossless } from "../contracts/json.js";
import type { ModelMessage, ModelRequest } from "./model.js";
import { argumentObject, wireCallId } from "./transcript.js";

type Body = OpenAI.ChatCompletionCreateParamsStreaming;

export function chatBody(request: ModelRequest, maxTokensField: "max_tokens" | "max_completion_tokens"): Body {
  return {
    model: request.model,
    stream: true,
    stream_options: { include_usage: true },
    [maxTokensField]: request.maxOutputTokens,
    ...(request.tools.length === 0 ? {} : {
      tools: request.tools.map((tool) => ({ type: "function" as const, function: { name: tool.name, description: tool.description, parameters: tool.inputSchema } })),
    }),
    messages: [
      ...(request.instructions.trim() === "" ? [] : [{ role: "system" as const, content: request.instructions }]),
      ...request.messages.flatMap(messagesOf),
    ],
  };
}

function messagesOf(message: ModelMessage): OpenAI.ChatCompletionMessageParam[] {
  switch (message.role) {
    case "user":
      return [{ role: "user", content: message.text.trim() === "" ? "(empty message)" : message.text }];
    case "assistant":
      return assistantOf(message);
    case "tool_results":
      // The protocol has no error flag, so the text says it.
      return message.results.map((result) => ({ role: "tool" as const, tool_call_id: wireCallId(result.id), content: result.isError ? `Error: ${result.text}` : result.text }));
  }
}

function assistantOf(message: Extract<ModelMessage, { role: "assistant" }>): OpenAI.ChatCompletionMessageParam[] {
  if (message.calls.length === 0) return message.text.trim() === "" ? [] : [{ role: "assistant", content: message.text }];
  return [{
    role: "assistant", content: message.text === "" ? null : message.text,
    tool_calls: message.calls.map((call) => ({ id: wireCallId(call.id), type: "function" as const, function: { name: call.name, arguments: objectText(call.args) } })),
  }];
}

/** vLLM and the templates of llama.cpp parse the history's arguments and refuse the request where they are no object. */
function objectText(args: string): string {
  const value = argumentObject(args);
  return Object.hasOwn(value, "unparsed_arguments") || args === "" ? stringifyLossless(value) : args;
}
