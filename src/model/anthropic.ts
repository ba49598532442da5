/**
 * Owns: Anthropic's Messages API, streamed. One HTTP request per answer: the SDK's own retries are off, the session
 * retries (its waits are durable). Tool arguments are kept as the text that was streamed; usage and stop reason are the
 * provider's.
 */
import Anthropic, { APIError } from "@anthropic-ai/sdk";
import type { Stream } from "@anthropic-ai/sdk/streaming";
import type { Usage } from "../contracts/journal.js";
import { stringifyLossless } from "../contracts/json.js";
import { anthropicBody, type CarriedBlock } from "./anthropic-request.js";
import { modelErrorOf, type ProviderFailure } from "./failure.js";
import type { Model, ModelAnswer, ModelRequest } from "./model.js";
import { costUsd, priceOf, reserveUsd, type PriceTable, type Reservable } from "./pricing.js";
import { DeltaSink } from "./transcript.js";
import { IDLE_TIMEOUT_MS, openWire } from "./wire.js";

export interface AnthropicOptions {
  readonly apiKey: string;
  readonly baseUrl?: string;
  readonly prices?: PriceTable;
  readonly idleTimeoutMs?: number;
  /** `off` (default): no thinking before the answer, on models that let it be turned off. */
  readonly thinking?: "off" | "model_default";
}

const BASE_URL = "https://api.anthropic.com";

/** The provider `anthropic`. */
export class AnthropicModel implements Model {
  readonly provider = "anthropic";
  readonly #options: AnthropicOptions;
  readonly #client: Anthropic;

  constructor(options: AnthropicOptions) {
    this.#options = options;
    // Everything explicit: the SDK would otherwise read the environment. Its logger prints stream bytes, so it is off.
    this.#client = new Anthropic({ apiKey: options.apiKey, baseURL: options.baseUrl ?? BASE_URL, maxRetries: 0, logLevel: "off" });
  }

  reserveUsd(request: Reservable): number {
    return reserveUsd(request, priceOf(this.provider, request.model, this.#options.prices));
  }

  async answer(request: ModelRequest): Promise<ModelAnswer> {
    const reading = new Reading(request);
    const wire = openWire(request.signal, this.#options.idleTimeoutMs ?? IDLE_TIMEOUT_MS);
    try {
      request.signal.throwIfAborted();
      const body = stringifyLossless(anthropicBody(request, { thinking: this.#options.thinking ?? "off" }));
      const stream = await this.#client.withOptions({ fetch: wire.fetch }).post<Stream<Anthropic.RawMessageStreamEvent>>("/v1/messages",
        { body, headers: { "content-type": "application/json" }, stream: true, signal: wire.signal });
      for await (const event of stream) reading.take(event);
      return reading.answer(priceOf(this.provider, request.model, this.#options.prices));
    } catch (error) {
      throw modelErrorOf(error, failureOf(error), {
        provider: this.provider, model: request.model, signal: request.signal, stalledMs: wire.stalledMs(),
        partialText: reading.said.text, usage: reading.usage, apiKey: this.#options.apiKey,
      });
    } finally {
      wire.close();
    }
  }
}

function failureOf(error: unknown): ProviderFailure | undefined {
  if (!(error instanceof APIError) || (error.status === undefined && error.type === null)) return undefined;
  const status: unknown = error.status;
  const headers: unknown = error.headers;
  return {
    status: typeof status === "number" ? status : undefined, type: error.type ?? undefined, code: error.errorCode ?? undefined,
    message: error.apiMessage ?? error.message, headers: headers instanceof Headers ? headers : undefined,
  };
}

interface OpenCall { readonly id: string; readonly name: string; args: string; readonly startInput: unknown }

/** What has been read of one stream. */
class Reading {
  readonly said: DeltaSink;
  usage: Usage | undefined;
  readonly #calls = new Map<number, OpenCall>();
  readonly #thoughts = new Map<number, CarriedBlock>();
  #blocks = 0;
  #model: string;
  #stop: Anthropic.StopReason | null = null;
  #ended = false;

  constructor(request: ModelRequest) {
    this.said = new DeltaSink(request.onDelta);
    this.#model = request.model;
  }

  take(event: Anthropic.RawMessageStreamEvent): void {
    switch (event.type) {
      case "message_start":
        this.#model = event.message.model;
        this.#count(event.message.usage);
        return;
      case "content_block_start":
        this.#open(event.index, event.content_block);
        return;
      case "content_block_delta":
        this.#extend(event.index, event.delta);
        return;
      case "content_block_stop":
        return;
      case "message_delta":
        this.#stop = event.delta.stop_reason;
        this.#count(event.usage);
        return;
      case "message_stop":
        this.#ended = true;
    }
  }

  answer(price: ReturnType<typeof priceOf>): ModelAnswer {
    // The SDK ends the loop without an error when it was aborted, and when the server closed in good order too early.
    if (!this.#ended || this.usage === undefined) throw new Error("the stream ended before the answer did");
    const carried = [...this.#thoughts.values()];
    return {
      model: this.#model, text: this.said.text, usage: this.usage, costUsd: costUsd(this.usage, price),
      calls: [...this.#calls.values()].map(({ id, name, args, startInput }) => ({ id, name, args: args === "" ? JSON.stringify(startInput ?? {}) : args })),
      stop: stopOf(this.#stop, this.#calls.size),
      ...(carried.length === 0 ? {} : { carry: JSON.stringify({ anthropic: carried }) }),
    };
  }

  #open(index: number, block: Anthropic.ContentBlock): void {
    if (block.type === "text") {
      this.#blocks = Math.max(this.#blocks, 1);
      this.said.push(block.text);
    } else if (block.type === "tool_use") {
      this.#blocks += 1;
      this.#calls.set(index, { id: block.id, name: block.name, args: "", startInput: block.input });
    } else if (block.type === "thinking") {
      this.#thoughts.set(index, { before: this.#blocks, block: { type: "thinking", thinking: block.thinking, signature: block.signature } });
    } else if (block.type === "redacted_thinking") {
      this.#thoughts.set(index, { before: this.#blocks, block: { type: "redacted_thinking", data: block.data } });
    }
  }

  #extend(index: number, delta: Anthropic.RawContentBlockDelta): void {
    const call = this.#calls.get(index);
    const thought = this.#thoughts.get(index)?.block;
    if (delta.type === "text_delta") this.said.push(delta.text);
    else if (delta.type === "input_json_delta" && call !== undefined) call.args += delta.partial_json;
    else if (delta.type === "thinking_delta" && thought?.type === "thinking") thought.thinking += delta.thinking;
    else if (delta.type === "signature_delta" && thought?.type === "thinking") thought.signature += delta.signature;
  }

  /** Counts are cumulative; a field that an event leaves out keeps its last value. Older servers leave out more than the types say. */
  #count(reported: Partial<Pick<Anthropic.MessageDeltaUsage, "input_tokens" | "output_tokens" | "cache_read_input_tokens" | "cache_creation_input_tokens">>): void {
    const last = this.usage ?? { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
    this.usage = {
      inputTokens: reported.input_tokens ?? last.inputTokens, outputTokens: reported.output_tokens ?? last.outputTokens,
      cacheReadTokens: reported.cache_read_input_tokens ?? last.cacheReadTokens,
      cacheWriteTokens: reported.cache_creation_input_tokens ?? last.cacheWriteTokens,
    };
  }
}

function stopOf(reason: Anthropic.StopReason | null, calls: number): ModelAnswer["stop"] {
  switch (reason) {
    case "max_tokens":
    case "model_context_window_exceeded":
      return "max_tokens";
    case "refusal":
      return "refusal";
    case "tool_use":
      return "tool_use";
    case "end_turn":
    case "stop_sequence":
    case "pause_turn":
    case null:
      return calls > 0 ? "tool_use" : "end";
  }
  // A reason that this SDK does not know yet.
  return calls > 0 ? "tool_use" : "end";
}

