/**
 * Owns: the session actor's methods, as an allow-list. Methods that change state need the key that only session
 * hosts hold (DESIGN 7.4): Dapr's access control does not cover actors. Every answer is an object that echoes the
 * caller's token (DESIGN 7.10).
 */
import { timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { Problem } from "../../contracts/problems.js";
import { SESSION_CHANNELS, type Deliveries } from "./deliveries.js";
import type { SessionService } from "./service.js";

type Method = (actorId: string, body: unknown) => Promise<object>;
type Methods = Record<string, Method> & { readonly deliver: Method };

const Deliver = z.object({ key: z.string(), channel: z.enum(SESSION_CHANNELS), text: z.string(), tenant: z.string(), sessionId: z.string() });
const OutcomeOf = z.object({ key: z.string() });
const DecisionOf = z.object({ decisionId: z.string() });
const Page = z.object({ afterRev: z.number().int().min(0).default(0), limit: z.number().int().min(1).max(1000).default(100) });

export function actorMethods(service: SessionService, deliveries: Deliveries, actorKey: string): Methods {
  const expected = Buffer.from(actorKey);
  const authorised = (key: string): boolean => {
    const given = Buffer.from(key);
    return given.length === expected.length && timingSafeEqual(given, expected);
  };
  return {
    ping: (_actorId, body) => Promise.resolve({ ok: true, ...tokenOf(body) }),
    deliver: (actorId, body) => answering(body, async () => {
      const { key, channel, text, tenant, sessionId } = Deliver.parse(body);
      if (!authorised(key)) throw new Problem("forbidden", "deliver needs the session hosts' key");
      return { delivered: await deliveries.handle({ actorId, tenant, sessionId }, channel, text) };
    }),
    readSession: (actorId, body) => answering(body, async () => ({ view: await service.reads.session(actorId) ?? null })),
    readJournal: (actorId, body) => answering(body, async () => {
      const { afterRev, limit } = Page.parse(body);
      return { page: await service.reads.journal(actorId, afterRev, limit) ?? null };
    }),
    readOutcome: (actorId, body) => answering(body, async () => ({ outcome: await service.reads.outcome(actorId, OutcomeOf.parse(body).key) })),
    readDecision: (actorId, body) => answering(body, async () => ({ outcome: await service.reads.decision(actorId, DecisionOf.parse(body).decisionId) })),
  };
}

/** Failures are values here: what an actor throws reaches its caller as `500 {}` (DESIGN 7.3). */
async function answering(body: unknown, run: () => Promise<object>): Promise<object> {
  try {
    return { ok: true, ...tokenOf(body), ...await run() };
  } catch (error) {
    const code = error instanceof Problem ? error.code : error instanceof z.ZodError ? "validation_failed" : "internal";
    const retryable = error instanceof Problem ? error.retryable : !(error instanceof z.ZodError);
    return { ok: false, ...tokenOf(body), code, retryable, message: error instanceof Error ? error.message : String(error) };
  }
}

function tokenOf(body: unknown): { token?: string } {
  const token = (body as { token?: unknown } | null | undefined)?.token;
  return typeof token === "string" ? { token } : {};
}
