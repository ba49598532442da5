/**
 * Owns: the neutral request as Anthropic's Messages API takes it. Invariants:
 * A1 a byte-stable prefix: tools, then instructions, then messages, nothing of the moment in them, so that the cache hits.
 * A2 four cache breakpoints at most: last tool, instructions, the end of the last two user-side messages. The last is where
 *    this call's cache is written, the one before it is where the previous call wrote its own.
 * A3 arguments keep their digits: the body is serialised losslessly, `input` holds numbers as they were written.
 * A4 every tool_use is followed by its tool_result in the next message, results before any text.
 */
import type Anthropic from "@anthropic-ai/sdk";
import { z } from "zod";
import type { ModelMessage, ModelRequest } from "./model.js";
import { argumentObject, wireCallId } from "./transcript.js";

type Body = Anthropic.MessageCreateParamsStreaming;
type Block = Anthropic.ContentBlockParam;

const EPHEMERAL = { type: "ephemeral" } as const;

/** A thinking block as it came, and before how many text and tool_use blocks of its answer it stood. */
export const CarriedBlock = z.object({ before: z.number().int(), block: z.union([
  z.object({ type: z.literal("thinking"), thinking: z.string(), signature: z.string() }),
  z.object({ type: z.literal("redacted_thinking"), data: z.string() }),
]) });
export type CarriedBlock = z.infer<typeof CarriedBlock>;

export interface RequestOptions { readonly thinking: "off" | "model_default" }

/** Builds the body; serialise it with `stringifyLossless` (A3). */
export function anthropicBody(request: ModelRequest, options: RequestOptions): Body {
  const thinking = options.thinking === "off" ? thinkingOff(request.model) : undefined;
  return {
    model: request.model,
    max_tokens: request.maxOutputTokens,
    stream: true,
    ...(thinking === undefined ? {} : { thinking }),
    ...(request.tools.length === 0 ? {} : { tools: toolsOf(request) }),
    ...(request.instructions.trim() === "" ? {} : { system: [{ type: "text", text: request.instructions, cache_control: EPHEMERAL }] }),
    messages: withBreakpoints(messagesOf(request.messages)),
  };
}

/**
 * The setting that stops a model from thinking before it answers, where it has one. The 5.x models think by default, the
 * 4.x ones do not, and Opus 5.5, Fable and Mythos always do (they refuse every such setting).
 */
function thinkingOff(model: string): Anthropic.ThinkingConfigParam | undefined {
  if (/^claude-sonnet-5-5(-\d{8})?$/.test(model)) return { type: "between_tools" };
  if (/^claude-(opus-5|sonnet-5|haiku-5-5)(-\d{8})?$/.test(model)) return { type: "disabled" };
  return undefined;
}

function toolsOf(request: ModelRequest): Anthropic.Tool[] {
  return request.tools.map((tool, index) => ({
    name: tool.name, description: tool.description, input_schema: { ...tool.inputSchema, type: "object" as const },
    ...(index === request.tools.length - 1 ? { cache_control: EPHEMERAL } : {}),
  }));
}

interface Message { readonly role: "user" | "assistant"; readonly content: Block[] }

/** Adjacent messages of one side become one, as the API would do itself. */
function messagesOf(messages: readonly ModelMessage[]): Message[] {
  const out: Message[] = [];
  for (const message of messages) {
    const role = message.role === "assistant" ? "assistant" : "user";
    const blocks = blocksOf(message);
    const last = out.at(-1);
    if (blocks.length === 0) continue;
    if (last?.role === role) last.content.push(...blocks);
    else out.push({ role, content: blocks });
  }
  return out;
}

function blocksOf(message: ModelMessage): Block[] {
  switch (message.role) {
    case "user":
      return [{ type: "text", text: message.text.trim() === "" ? "(empty message)" : message.text }];
    case "assistant":
      return assistantBlocks(message);
    case "tool_results":
      return message.results.map((result) => ({
        type: "tool_result" as const, tool_use_id: wireCallId(result.id), content: result.text, ...(result.isError ? { is_error: true } : {}),
      }));
  }
}

function assistantBlocks(message: Extract<ModelMessage, { role: "assistant" }>): Block[] {
  const spoken: Block[] = [
    ...(message.text.trim() === "" ? [] : [{ type: "text" as const, text: message.text }]),
    ...message.calls.map((call) => ({ type: "tool_use" as const, id: wireCallId(call.id), name: call.name, input: argumentObject(call.args) })),
  ];
  const carried = carriedBlocks(message.carry);
  const out: Block[] = [];
  for (let index = 0; index <= spoken.length; index += 1) {
    const next = spoken[index];
    for (const { before, block } of carried) if (before === index || (next === undefined && before > index)) out.push(block);
    if (next !== undefined) out.push(next);
  }
  // A thought with nothing said after it is no message the API takes.
  return spoken.length === 0 ? [] : out;
}

function carriedBlocks(carry: string | undefined): CarriedBlock[] {
  if (carry === undefined) return [];
  try {
    return z.object({ anthropic: z.array(CarriedBlock) }).parse(JSON.parse(carry)).anthropic;
  } catch {
    return []; // another provider's, or a broken one: the API takes the message without it
  }
}

function withBreakpoints(messages: Message[]): Message[] {
  let left = 2;
  for (const message of messages.toReversed()) {
    if (message.role !== "user" || left === 0) continue;
    const block = message.content.at(-1);
    if (block === undefined || (block.type !== "text" && block.type !== "tool_result")) continue;
    block.cache_control = EPHEMERAL;
    left -= 1;
  }
  return messages;
}

