/**
 * Owns: request and token limits per provider key, shared by all hosts through a ledger. A call that finds the ledger
 * empty fails at once as `not_sent` with `retryAfterMs`: the session's durable wait is the queue, nothing sleeps here.
 */
import { sha256Hex } from "../contracts/ids.js";
import type { RateNeed, TakeResult } from "./bucket.js";
import { ModelError, type Model, type ModelAnswer, type ModelRequest } from "./model.js";
import { promptTokensBound, type Reservable } from "./pricing.js";

/** Port: levels per provider key, the same for every host. An adapter is built with the limits of each key and uses bucket.ts. */
export interface RateLedger {
  take(key: string, need: RateNeed, atMs: number): Promise<TakeResult>;
  /** Gives back `unusedTokens` of what was taken; negative where more was used. */
  settle(key: string, unusedTokens: number): Promise<void>;
}

/** Name of a provider key in the ledger. It tells keys apart without telling the key. */
export function rateKeyOf(provider: string, apiKey: string | undefined): string {
  return `${provider}-${sha256Hex(apiKey ?? "").slice(0, 16)}`;
}

export interface LimitedModelOptions {
  readonly ledger: RateLedger;
  readonly key: string;
  readonly now?: () => number;
  /** Told when giving tokens back failed; the answer is kept. */
  readonly onWarning?: (message: string) => void;
}

/** How soon to come back when the ledger itself does not answer. */
const LEDGER_RETRY_MS = 2_000;

/** A model that asks the ledger first. */
export class LimitedModel implements Model {
  readonly provider: string;
  readonly #inner: Model;
  readonly #options: LimitedModelOptions;

  constructor(inner: Model, options: LimitedModelOptions) {
    this.provider = inner.provider;
    this.#inner = inner;
    this.#options = options;
  }

  reserveUsd(request: Reservable): number {
    return this.#inner.reserveUsd(request);
  }

  async answer(request: ModelRequest): Promise<ModelAnswer> {
    const taken = await this.#take(request);
    try {
      const answer = await this.#inner.answer(request);
      // Without a report (costUsd null and no tokens) the estimate stands.
      const used = rateTokens(answer.usage);
      await this.#settle(used === 0 ? 0 : taken - used);
      return answer;
    } catch (error) {
      await this.#settle(unusedAfter(error, taken));
      throw error;
    }
  }

  /** Tokens really taken. */
  async #take(request: ModelRequest): Promise<number> {
    if (request.signal.aborted) throw new ModelError("aborted", `the call to ${this.provider}:${request.model} was aborted`);
    const tokens = promptTokensBound(request) + request.maxOutputTokens;
    let result: TakeResult;
    try {
      result = await this.#options.ledger.take(this.#options.key, { requests: 1, tokens }, (this.#options.now ?? Date.now)());
    } catch (cause) {
      throw new ModelError("not_sent", `the rate ledger does not answer for ${this.#options.key}: ${String(cause)}`, { retryAfterMs: LEDGER_RETRY_MS, cause });
    }
    if (!result.ok) {
      throw new ModelError("not_sent", `the rate limit of ${this.#options.key} is used up; room in ${result.retryAfterMs} ms`, { retryAfterMs: result.retryAfterMs, limited: true });
    }
    return result.tokens;
  }

  async #settle(unusedTokens: number): Promise<void> {
    if (unusedTokens === 0) return;
    try {
      await this.#options.ledger.settle(this.#options.key, unusedTokens);
    } catch (error) {
      this.#options.onWarning?.(`the rate ledger did not take back ${unusedTokens} tokens of ${this.#options.key}: ${String(error)}`);
    }
  }
}

/** What counts against a token limit: cache reads do not. */
function rateTokens(usage: ModelAnswer["usage"]): number {
  return usage.inputTokens + usage.cacheWriteTokens + usage.outputTokens;
}

/** A call that was refused before it said anything used nothing; one that broke off without a report keeps its estimate. */
function unusedAfter(error: unknown, taken: number): number {
  if (!(error instanceof ModelError)) return 0;
  if (error.usage !== undefined) return taken - rateTokens(error.usage);
  return error.partialText === "" ? taken : 0;
}
