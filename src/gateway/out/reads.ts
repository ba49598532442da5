/** Owns: GET /v1/sessions/:id and /v1/sessions/:id/events/:key: what a caller may read of its own tenant, through the actor. */
import { Router, type Request } from "express";
import type { EventOutcome } from "../../contracts/api.js";
import { actorIdOf } from "../../contracts/ids.js";
import { Problem } from "../../contracts/problems.js";
import { errorFields, type Logger } from "../../platform/log.js";
import { inboxKeyOf, readSessionId } from "../in/accept.js";
import { callerOf, scoped } from "../in/caller.js";
import type { Inbox, Sessions } from "../ports.js";

/** Agent of a session that exists; undefined where it does not, or where nobody answers in time. */
export type AgentOf = (tenant: string, sessionId: string) => Promise<string | undefined>;

const AGENT_MEMORY = 10_000;

export interface ReadDeps { readonly sessions: Sessions; readonly inbox: Pick<Inbox, "find"> }

export function readRoutes(deps: ReadDeps): Router {
  const { sessions } = deps;
  const router = Router({ caseSensitive: true });
  const read = scoped("sessions:read");
  router.get("/v1/sessions/:id", read, async (req: Request<{ id: string }>, res) => {
    const sessionId = readSessionId(req.params.id);
    const view = await sessions.readSession(actorIdOf(callerOf(res).tenant, sessionId));
    if (view === undefined) throw sessionNotFound(sessionId);
    res.set("cache-control", "no-store").json(view);
  });
  router.get("/v1/sessions/:id/events/:key", read, async (req: Request<{ id: string; key: string }>, res) => {
    const sessionId = readSessionId(req.params.id);
    if (!/^[0-9a-f]{32}$/.test(req.params.key)) throw new Problem("validation_failed", "the event key is not usable", { hint: "eventKey of the 202: 32 hex digits" });
    res.set("cache-control", "no-store").json(await outcomeOf(deps, actorIdOf(callerOf(res).tenant, sessionId), req.params.key));
  });
  return router;
}

/**
 * How an accepted event ended, or where it is (I1). The session's word comes first; of what it does not know, or where it
 * does not answer, the inbox knows whether it still waits or is dead. Throws Problem `actor_unavailable`.
 */
async function outcomeOf({ sessions, inbox }: ReadDeps, actorId: string, key: string): Promise<EventOutcome> {
  const runId = inboxKeyOf(actorId, key);
  let failure: Problem | undefined;
  try {
    const outcome = await sessions.readOutcome(actorId, key);
    if (outcome.state !== "unknown") return outcome;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    failure = error;
  }
  const found = await inbox.find(runId);
  if (found === "waiting") return { state: "accepted", runId };
  if (found !== undefined) return { state: "ended", runId, outcome: "dead_lettered", ...found };
  if (failure !== undefined) throw failure;
  return { state: "unknown" };
}

export function sessionNotFound(sessionId: string): Problem {
  return new Problem("session_not_found", `there is no session ${JSON.stringify(sessionId)} in this tenant`, { hint: "it appears once its first event has been taken; ?wait=1 on the stream waits for it" });
}

/**
 * Remembers agents (a session never changes its own). Accepting must not depend on the actor: when it does not
 * answer within a second, the router decides alone.
 */
export function createAgentOf(sessions: Sessions, logger: Logger): AgentOf {
  const known = new Map<string, string>();
  return async (tenant, sessionId) => {
    const actorId = actorIdOf(tenant, readSessionId(sessionId));
    const remembered = known.get(actorId);
    if (remembered !== undefined) return remembered;
    const view = await within(1_000, sessions.readSession(actorId).catch((error: unknown) => {
      logger.warn({ actorId, ...errorFields(error) }, "the session's agent could not be read; the router decides");
      return undefined;
    }));
    if (view === undefined) return undefined;
    if (known.size >= AGENT_MEMORY) known.clear();
    known.set(actorId, view.summary.agent);
    return view.summary.agent;
  };
}

/** The work's result, or undefined where it takes longer. */
export function within<T>(timeoutMs: number, work: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => { resolve(undefined); }, timeoutMs);
    work.then(resolve, reject).finally(() => { clearTimeout(timer); });
  });
}
