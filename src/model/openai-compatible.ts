/**
 * Owns: servers that speak OpenAI's chat completions: NVIDIA NIM, vLLM, Ollama, llama.cpp, OpenAI itself. They differ in
 * what they leave out, so nothing is taken for granted: usage, call ids, call indexes and finish reasons may be missing.
 * Usage that was not reported is zero with cost `null`, never an estimate.
 */
import OpenAI, { APIError } from "openai";
import { modelErrorOf, type ProviderFailure } from "./failure.js";
import type { Model, ModelAnswer, ModelRequest } from "./model.js";
import { ChatReading } from "./openai-reading.js";
import { chatBody } from "./openai-request.js";
import { priceOf, reserveUsd, type PriceTable, type Reservable } from "./pricing.js";
import { IDLE_TIMEOUT_MS, openWire } from "./wire.js";

export interface OpenAiCompatibleOptions {
  /** Up to and with `/v1`, e.g. `http://127.0.0.1:11434/v1`. */
  readonly baseUrl: string;
  /** Servers of one's own often have none. */
  readonly apiKey?: string;
  /** The name before the colon in `provider:model`. */
  readonly provider?: string;
  readonly prices?: PriceTable;
  readonly idleTimeoutMs?: number;
  /** Default: `max_completion_tokens` for api.openai.com, whose newer models refuse the other, else `max_tokens`. */
  readonly maxTokensField?: "max_tokens" | "max_completion_tokens";
}

/** A provider over one base URL. */
export class OpenAiCompatibleModel implements Model {
  readonly provider: string;
  readonly #options: OpenAiCompatibleOptions;
  readonly #client: OpenAI;

  constructor(options: OpenAiCompatibleOptions) {
    this.provider = options.provider ?? "openai";
    this.#options = options;
    // Everything explicit: the SDK would otherwise read the environment. Its logger prints stream bytes, so it is off.
    this.#client = new OpenAI({ apiKey: options.apiKey ?? "none", baseURL: options.baseUrl, organization: null, project: null, maxRetries: 0, logLevel: "off" });
  }

  reserveUsd(request: Reservable): number {
    return reserveUsd(request, priceOf(this.provider, request.model, this.#options.prices));
  }

  async answer(request: ModelRequest): Promise<ModelAnswer> {
    const reading = new ChatReading(request);
    const wire = openWire(request.signal, this.#options.idleTimeoutMs ?? IDLE_TIMEOUT_MS);
    try {
      request.signal.throwIfAborted();
      const stream = await this.#client.withOptions({ fetch: wire.fetch }).chat.completions.create(chatBody(request, this.#maxTokensField()), { signal: wire.signal });
      for await (const chunk of stream) reading.take(chunk);
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

  #maxTokensField(): "max_tokens" | "max_completion_tokens" {
    return this.#options.maxTokensField ?? (URL.canParse(this.#options.baseUrl) && new URL(this.#options.baseUrl).hostname === "api.openai.com" ? "max_completion_tokens" : "max_tokens");
  }
}

function failureOf(error: unknown): ProviderFailure | undefined {
  if (!(error instanceof APIError)) return undefined;
  const httpStatus: unknown = error.status;
  const headers: unknown = error.headers;
  const body: unknown = error.error;
  const code: unknown = error.code;
  // vLLM puts the HTTP status into `code` when a running stream fails.
  const status = [httpStatus, code].find((value): value is number => typeof value === "number" && value >= 300 && value < 600);
  if (status === undefined && body === undefined) return undefined;
  return {
    status, type: error.type, code: typeof code === "string" ? code : undefined,
    message: error.message, headers: headers instanceof Headers ? headers : undefined,
  };
}
