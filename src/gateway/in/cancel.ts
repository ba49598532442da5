/** Owns: POST /v1/sessions/:id/cancel: the command goes the way of every event, through inbox and channel. */
import { Router, type Request, type RequestHandler } from "express";
import { actorIdOf } from "../../contracts/ids.js";
import { SESSION_CANCEL, SessionCancel } from "../../contracts/messages.js";
import { Problem } from "../../contracts/problems.js";
import { sessionNotFound, within } from "../out/reads.js";
import type { Sessions } from "../ports.js";
import { acceptFor, readSessionId, type AcceptDeps } from "./accept.js";
import { readBody } from "./body.js";
import { callerOf, idempotencyKeyOf, newEventId, scoped, sourceOf } from "./caller.js";
import { send } from "./events.js";

/** The 202's `eventKey` is what GET /v1/sessions/:id/events/:key takes. */
export function cancelRoutes(deps: { readonly accept: AcceptDeps; readonly sessions: Sessions }, body: RequestHandler): Router {
  const router = Router({ caseSensitive: true });
  router.post("/v1/sessions/:id/cancel", scoped("sessions:cancel"), body, async (req: Request<{ id: string }>, res) => {
    const caller = callerOf(res);
    const sessionId = readSessionId(req.params.id);
    const data = JSON.stringify(readBody(req, SessionCancel));
    const agent = await agentOfOpenSession(deps.sessions, caller.tenant, sessionId);
    const key = idempotencyKeyOf(req);
    const incoming = { source: sourceOf(caller), id: key ?? newEventId(), type: SESSION_CANCEL, subject: sessionId, data, ...(key === undefined ? {} : { idempotencykey: key }) };
    send(res, await acceptFor(deps.accept, caller, incoming, { sessionId, ...(agent === undefined ? {} : { agent }) }));
  });
  return router;
}

/** 404 for what is known not to exist; where the actor does not answer, the cancel is taken all the same. */
async function agentOfOpenSession(sessions: Sessions, tenant: string, sessionId: string): Promise<string | undefined> {
  try {
    const answer = await within(2_000, sessions.readSession(actorIdOf(tenant, sessionId)).then((view) => ({ view })));
    if (answer === undefined) return undefined;
    if (answer.view === undefined) throw sessionNotFound(sessionId);
    return answer.view.summary.agent;
  } catch (error) {
    if (error instanceof Problem && error.retryable) return undefined;
    throw error;
  }
}
