/** Owns: the inbox's documents as stored (persisted contract: add fields as optional) and their keys. */
import { z } from "zod";
import { sha256Hex } from "../../contracts/ids.js";

/** One promised event. `bucket` is the index document that lists it. */
export const RowDocument = z.object({
  key: z.string(), envelopeText: z.string(), acceptedAtMs: z.number(), publishedAtMs: z.number(), attempts: z.number(),
  bucket: z.number(), digest: z.string(), answer: z.string(),
});
export type RowDocument = z.infer<typeof RowDocument>;

/** Part of the index: row key → when its next publication is due. */
export const BucketDocument = z.object({ rows: z.record(z.string(), z.number()) });
export type BucketDocument = z.infer<typeof BucketDocument>;

/** What was answered to an idempotency key. `expiresAtMs` counts; the store's TTL only cleans up. */
export const IdentityDocument = z.object({ digest: z.string(), answer: z.string(), expiresAtMs: z.number() });

/** What became of an event that no session took. Kept for a while, then the session's ledger alone knows it. */
export const DeadDocument = z.object({ code: z.string(), deadLetterId: z.string() });

export const deadKeyOf = (key: string): string => `inbox-dead:${key}`;
export const rowKeyOf = (key: string): string => `inbox:${key}`;
export const bucketKeyOf = (bucket: number): string => `inbox-bucket:${String(bucket)}`;
export const identityKeyOf = (key: string): string => `inbox-idem:${key}`;

/** Home bucket of a row. */
export function homeBucketOf(key: string, buckets: number): number {
  return Number.parseInt(sha256Hex(key).slice(0, 8), 16) % buckets;
}

/** A stored text as its document; undefined where it is not one (a bug or a hand's work: never overwritten). */
export function readDocument<T>(schema: z.ZodType<T>, text: string): T | undefined {
  try {
    const parsed = schema.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}
