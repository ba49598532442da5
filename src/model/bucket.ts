/**
 * Owns: the arithmetic of two token buckets (requests and model tokens per minute) over one small JSON document, so that
 * any store with compare-and-swap can hold it for all hosts. Pure.
 * B1 a bucket starts full and never holds more than one minute's worth.
 * B2 a need larger than the bucket is taken from a full one: it waits, but not for ever.
 * B3 a bucket may go below zero when a call used more than was taken; the next ones wait until it is paid back.
 * B4 a clock that goes backwards (another host's) refills nothing and takes nothing away.
 */
export interface RateLimits { readonly requestsPerMinute?: number; readonly tokensPerMinute?: number }
export interface RateNeed { readonly requests: number; readonly tokens: number }
/** Levels left at `atMs`. An unlimited side stays 0 and is not looked at. */
export interface BucketDocument { readonly requests: number; readonly tokens: number; readonly atMs: number }
/** `tokens`: how many were really taken (B2). */
export type TakeResult = { readonly ok: true; readonly tokens: number } | { readonly ok: false; readonly retryAfterMs: number };

const MINUTE_MS = 60_000;

/** Takes both or neither. The document is to be stored where `ok`; where not, storing it changes nothing. */
export function takeFromBucket(document: BucketDocument | undefined, need: RateNeed, limits: RateLimits, atMs: number): { readonly document: BucketDocument; readonly result: TakeResult } {
  const now = refill(document, limits, atMs);
  const waits = [
    waitMs(now.requests, need.requests, limits.requestsPerMinute),
    waitMs(now.tokens, need.tokens, limits.tokensPerMinute),
  ];
  const retryAfterMs = Math.max(...waits);
  if (retryAfterMs > 0) return { document: now, result: { ok: false, retryAfterMs } };
  const requests = Math.min(need.requests, limits.requestsPerMinute ?? 0);
  const tokens = Math.min(need.tokens, limits.tokensPerMinute ?? 0);
  return { document: { requests: now.requests - requests, tokens: now.tokens - tokens, atMs: now.atMs }, result: { ok: true, tokens } };
}

/** Gives back `unusedTokens` of what was taken; negative where more was used. */
export function settleBucket(document: BucketDocument, unusedTokens: number, limits: RateLimits): BucketDocument {
  if (limits.tokensPerMinute === undefined) return document;
  return { ...document, tokens: Math.min(limits.tokensPerMinute, document.tokens + unusedTokens) };
}

function refill(document: BucketDocument | undefined, limits: RateLimits, atMs: number): BucketDocument {
  const { requestsPerMinute = 0, tokensPerMinute = 0 } = limits;
  if (document === undefined) return { requests: requestsPerMinute, tokens: tokensPerMinute, atMs };
  const minutes = Math.max(0, atMs - document.atMs) / MINUTE_MS;
  return {
    requests: Math.min(requestsPerMinute, document.requests + minutes * requestsPerMinute),
    tokens: Math.min(tokensPerMinute, document.tokens + minutes * tokensPerMinute),
    atMs: Math.max(atMs, document.atMs),
  };
}

function waitMs(level: number, need: number, perMinute: number | undefined): number {
  if (perMinute === undefined) return 0;
  const missing = Math.min(need, perMinute) - level;
  // A hair of tolerance: refilling in floating point must not ask for another millisecond for ever.
  return missing <= 1e-6 ? 0 : Math.ceil((missing / perMinute) * MINUTE_MS);
}
