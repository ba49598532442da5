/** Owns: what an operator can set at the edge, with its defaults. src/main fills it from file, environment and flags. */
import { z } from "zod";
import { MAX_EVENT_BYTES } from "../contracts/cloudevent.js";
import { Tenant } from "../contracts/ids.js";

const ms = (fallback: number, what: string) => z.number().int().positive().default(fallback).describe(what);
const count = ms;

const Webhook = z.object({
  secrets: z.array(z.string().min(8)).min(1).describe("Signing secrets; several while one is being rotated"),
  tenant: Tenant.default("default").describe("Tenant that deliveries signed with these secrets belong to"),
});
const Webhooks = z.union([Webhook.transform((one) => [one]), z.array(Webhook)]).optional();
/** One sender's secrets and the tenant they stand for. */
export type WebhookSecrets = z.infer<typeof Webhook>;

export const GatewayConfig = z.object({
  bodyLimitBytes: count(MAX_EVENT_BYTES, "Largest request body"),
  batchLimit: count(100, "Most events in one batched request"),
  expiryMs: ms(7 * 24 * 3_600_000, "Expiry that an event gets when it brings none: also the longest that its run may wait for a person"),
  idempotencyMs: ms(24 * 3_600_000, "How long the answer to an event id or Idempotency-Key is remembered"),
  publishWaitMs: ms(2_000, "How long an accepted request waits for its publish before it answers 202 all the same"),
  trustProxyHops: z.number().int().min(0).default(0).describe("Proxies in front whose X-Forwarded-For is believed"),
  webhooks: z.object({
    github: Webhooks.describe("GitHub webhook secrets"),
    stripe: Webhooks.describe("Stripe webhook secrets"),
    toleranceMs: ms(300_000, "Replay window of signed timestamps, either way"),
  }).prefault({}),
  sweep: z.object({
    everyMs: ms(2_000, "Pause between sweeps of the inbox"),
    receiptWaitMs: ms(10_000, "An event without receipt for this long is published again"),
    backoffCapMs: ms(60_000, "Longest pause between publications of one event"),
    batch: count(50, "Most events that one sweep publishes"),
    giveUpAfterMs: ms(3_600_000, "An event without receipt for this long after its expiry is dead-lettered"),
  }).prefault({}),
  rateLimit: z.object({
    windowMs: ms(60_000, "Window of the rate limits"),
    perPrincipal: count(600, "Requests per window and principal"),
    perAddress: count(1_200, "Webhook deliveries, and refused credentials, per window and client address"),
  }).prefault({}),
  stream: z.object({
    heartbeatMs: ms(15_000, "Pause between heartbeat comments"),
    pollMs: ms(2_000, "Pause between reads of the journal when no hint came; grows while nothing happens"),
    pollCapMs: ms(15_000, "Longest pause between reads"),
    waitMs: ms(10_000, "How long ?wait=1 waits for a session to appear"),
    pageSize: count(100, "Journal entries per read"),
    perPrincipal: count(20, "Open streams per principal"),
    total: count(5_000, "Open streams of this process"),
    bufferBytes: count(1_048_576, "Unsent bytes at which deltas are left out and a stalled reader's time runs"),
    stallMs: ms(30_000, "A reader that takes nothing for this long is cut; it resumes with Last-Event-ID"),
  }).prefault({}),
});
export type GatewayConfig = z.infer<typeof GatewayConfig>;
