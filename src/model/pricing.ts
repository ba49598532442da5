/**
 * Owns: what tokens cost, and the upper bound that a budget reserves (I11). Prices are data: configuration overrides
 * them, and a model that is in no table costs `null` (unknown), never a guess.
 *
 * USD per million tokens. Anthropic: platform.claude.com/docs/en/about-claude/pricing and the model overviews, standard
 * tier, 5-minute cache writes, as published in November 2026 (Sonnet 5.5 cache reads as cut on 2026-10-07; Haiku 5.5 has
 * two bands by prompt length). OpenAI: developers.openai.com/api/docs/pricing, second-hand (adk-model 0.6, openai-cost
 * 0.1), 2026. Check them before you bill anybody; override with `models.prices`.
 */
import type { Usage } from "../contracts/journal.js";
import type { ModelRequest } from "./model.js";

interface Rates { readonly input: number; readonly output: number; readonly cacheRead: number; readonly cacheWrite: number }
export interface Price extends Rates {
  /** Other rates, on every token of a request whose prompt (cache reads and writes included) is longer than this. */
  readonly longPrompt?: Rates & { readonly overTokens: number };
}
/** Keyed by model name, or by `provider:model` where two servers charge differently. */
export type PriceTable = Readonly<Record<string, Price>>;

const rates = (input: number, output: number, cacheRead: number, cacheWrite = input * 1.25): Rates => ({ input, output, cacheRead, cacheWrite });
/** OpenAI charges nothing extra for writing its cache. */
const openai = (input: number, output: number, cacheRead: number): Rates => rates(input, output, cacheRead, input);

const PRICES: PriceTable = {
  "claude-fable-5-1": rates(10, 50, 0.25), "claude-mythos-5-1": rates(10, 50, 0.25),
  "claude-fable-5": rates(10, 50, 1), "claude-mythos-5": rates(10, 50, 1),
  "claude-opus-5-5": rates(4, 20, 0.2), "claude-opus-5": rates(5, 25, 0.5),
  "claude-opus-4-8": rates(5, 25, 0.5), "claude-opus-4-7": rates(5, 25, 0.5), "claude-opus-4-6": rates(5, 25, 0.5), "claude-opus-4-5": rates(5, 25, 0.5),
  "claude-opus-4-1": rates(15, 75, 1.5),
  "claude-sonnet-5-5": rates(2, 10, 0.1), "claude-sonnet-5": rates(2, 10, 0.2),
  "claude-sonnet-4-6": rates(3, 15, 0.3), "claude-sonnet-4-5": rates(3, 15, 0.3),
  "claude-haiku-5-5": { ...rates(0.1, 0.5, 0.01), longPrompt: { ...rates(0.5, 2.5, 0.05), overTokens: 100_000 } },
  "claude-haiku-4-5": rates(1, 5, 0.1), "claude-3-5-haiku": rates(0.8, 4, 0.08),
  "gpt-5.4": openai(2.5, 15, 0.25), "gpt-5.4-mini": openai(0.75, 4.5, 0.075),
  "gpt-5": openai(1.25, 10, 0.125), "gpt-5-mini": openai(0.25, 2, 0.025), "gpt-5-nano": openai(0.05, 0.4, 0.005),
  "gpt-4.1": openai(2, 8, 0.5), "gpt-4.1-mini": openai(0.4, 1.6, 0.1), "gpt-4o": openai(2.5, 10, 1.25), "gpt-4o-mini": openai(0.15, 0.6, 0.075),
};

/** Price of a model, or null. Overrides win; a dated or `-latest` name has the price of its family name. */
export function priceOf(provider: string, model: string, overrides: PriceTable = {}): Price | null {
  const family = model.replace(/-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$/, "");
  for (const table of [overrides, PRICES]) {
    for (const key of [`${provider}:${model}`, model, `${provider}:${family}`, family]) {
      const price = Object.hasOwn(table, key) ? table[key] : undefined;
      if (price !== undefined) return price;
    }
  }
  return null;
}

/** Cost of what a provider reported. `inputTokens` never includes cache reads and writes. */
export function costUsd(usage: Usage, price: Price | null): number | null {
  if (price === null) return null;
  const promptTokens = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
  const band = price.longPrompt !== undefined && promptTokens > price.longPrompt.overTokens ? price.longPrompt : price;
  return (usage.inputTokens * band.input + usage.outputTokens * band.output + usage.cacheReadTokens * band.cacheRead + usage.cacheWriteTokens * band.cacheWrite) / 1_000_000;
}

export type Reservable = Pick<ModelRequest, "model" | "messages" | "maxOutputTokens" | "instructions"> & Partial<Pick<ModelRequest, "tools">>;

/** Generous guess of a prompt's tokens: one for each three bytes of UTF-8, and what the provider wraps around messages and tools. */
export function promptTokensBound(request: Reservable): number {
  const bytes = (text: string): number => Buffer.byteLength(text);
  let total = bytes(request.instructions);
  for (const tool of request.tools ?? []) total += bytes(tool.name) + bytes(tool.description) + bytes(JSON.stringify(tool.inputSchema)) + 100;
  for (const message of request.messages) {
    total += 30;
    if (message.role === "tool_results") for (const result of message.results) total += bytes(result.text) + bytes(result.id) + 60;
    else total += bytes(message.text);
    if (message.role === "assistant") for (const call of message.calls) total += bytes(call.args) + bytes(call.name) + bytes(call.id) + 60;
    if (message.role === "assistant") total += bytes(message.carry ?? "");
  }
  return Math.ceil(total / 3) + ((request.tools?.length ?? 0) > 0 ? 700 : 0);
}

/** The dearest that one call can come to: the whole prompt written to the cache, the whole output used. 0 without a price. */
export function reserveUsd(request: Reservable, price: Price | null): number {
  if (price === null) return 0;
  const promptTokens = promptTokensBound(request);
  const bands: readonly Rates[] = price.longPrompt === undefined ? [price] : [price, price.longPrompt];
  const dearest = (of: (band: Rates) => number): number => Math.max(...bands.map(of));
  return (promptTokens * dearest((band) => Math.max(band.input, band.cacheWrite)) + request.maxOutputTokens * dearest((band) => band.output)) / 1_000_000;
}
