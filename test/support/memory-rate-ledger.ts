/** Owns: a rate ledger in memory, with the arithmetic that the shared one uses. */
import { settleBucket, takeFromBucket, type BucketDocument, type RateLimits, type RateNeed, type TakeResult } from "../../src/model/bucket.js";
import type { RateLedger } from "../../src/model/limits.js";

export class MemoryRateLedger implements RateLedger {
  readonly documents = new Map<string, BucketDocument>();
  readonly #limits: RateLimits;

  constructor(limits: RateLimits) {
    this.#limits = limits;
  }

  async take(key: string, need: RateNeed, atMs: number): Promise<TakeResult> {
    const { document, result } = takeFromBucket(this.documents.get(key), need, this.#limits, atMs);
    if (result.ok) this.documents.set(key, document);
    return result;
  }

  async settle(key: string, unusedTokens: number): Promise<void> {
    const document = this.documents.get(key);
    if (document !== undefined) this.documents.set(key, settleBucket(document, unusedTokens, this.#limits));
  }
}
