/** Owns: the routes of sessions. Lists come from the read model; one session comes from its actor, with the read model as fallback. */
import { randomUUID } from "node:crypto";
import type { Express, Request, Response } from "express";
import { z } from "zod";
import type { SessionView } from "../../contracts/api.js";
import { actorIdOf, eventKeyOf, SessionId } from "../../contracts/ids.js";
import { SESSION_STATUSES, SessionStatus } from "../../contracts/journal.js";
import { SESSION_CANCEL, SESSION_CLOSE, SESSION_DELETE, SESSION_RELEASE, SessionCancel, SessionOrder } from "../../contracts/messages.js";
import { Problem } from "../../contracts/problems.js";
import { sessionCommand } from "../../contracts/shell-word.js";
import type { Authenticated } from "../../platform/apikeys.js";
import { CONSOLE_SOURCE, envelopeFor } from "../envelopes.js";
import { openRecords } from "../read-model/approvals.js";
import { findSummary, listSessions } from "../read-model/sessions.js";
import { callerWith, PAGE_QUERY, pageRequest, pathId, readBody, readQuery, type Right } from "./access.js";
import { audited, type ApiContext } from "./context.js";

const SESSION_QUERY = { ...PAGE_QUERY, status: z.string().optional(), agent: z.string().max(64).optional(), quarantined: z.enum(["true"]).optional(), q: z.string().max(200).optional() };
const JOURNAL_QUERY = { after: z.coerce.number().int().min(0).default(0), limit: z.coerce.number().int().min(1).max(500).default(100) };

export function sessionRoutes(app: Express, context: ApiContext): void {
  const { db, deps } = context;

  app.get("/v1/sessions", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    const query = readQuery(req, SESSION_QUERY);
    res.json(await listSessions(db, { ...pageRequest(query), tenant: caller.tenant, statuses: statusesOf(query.status), agent: query.agent, text: query.q, quarantined: query.quarantined === "true" }));
  });

  app.get("/v1/sessions/:id", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    res.json(await viewOf(context, caller, pathId(req)));
  });

  app.get("/v1/sessions/:id/journal", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    const query = readQuery(req, JOURNAL_QUERY);
    const page = await deps.sessions.readJournal(actorOf(caller, pathId(req)), query.after, query.limit);
    if (page === undefined) throw notThere(pathId(req), caller);
    res.json(page);
  });

  app.post("/v1/sessions/:id/cancel", async (req, res) => {
    const body = readBody(req, SessionCancel);
    await order(context, { req, res, right: "operate", action: "session.cancel", type: SESSION_CANCEL, data: body });
  });

  app.post("/v1/sessions/:id/close", async (req, res) => {
    await order(context, { req, res, right: "operate", action: "session.close", type: SESSION_CLOSE, data: readBody(req, SessionOrder) });
  });

  app.post("/v1/sessions/:id/delete", async (req, res) => {
    const body = readBody(req, SessionOrder);
    await order(context, { req, res, right: "administer", action: "session.delete", type: SESSION_DELETE, data: body, check: ({ summary }, sessionId) => {
      if (!["IDLE", "CLOSED"].includes(summary.status) || summary.mailboxLength > 0) throw new Problem("session_busy", `session ${sessionId} is ${summary.status}, and only a session at rest is deleted`, { hint: sessionCommand("close", sessionId) });
      if (summary.quarantine !== undefined) throw new Problem("session_quarantined", `session ${sessionId} is quarantined: ${summary.quarantine.message}`, { hint: sessionCommand("close", sessionId) });
    } });
  });

  /** Goes on with what is stored: whoever does that has looked at it, hence administrators only. */
  app.post("/v1/sessions/:id/release", async (req, res) => {
    const body = readBody(req, SessionOrder);
    await order(context, { req, res, right: "administer", action: "session.release", type: SESSION_RELEASE, data: body, check: (view, sessionId) => {
      if (view.summary.quarantine === undefined) throw new Problem("bad_request", `session ${sessionId} is not quarantined; there is nothing to release`);
    } });
  });
}

interface Order {
  readonly req: Request; readonly res: Response; readonly right: Right; readonly action: string; readonly type: string;
  readonly data: { readonly reason: string; readonly runId?: string | undefined };
  /** Throws Problem where the session is not in a state for it, as far as can be seen from here. */
  readonly check?: (view: SessionView, sessionId: string) => void;
}

/** Publishes an operator's command to a session, audited. What came of it shows in the session. */
async function order(context: ApiContext, { req, res, right, action, type, data, check }: Order): Promise<void> {
  const { deps } = context;
  const caller = callerWith(deps.authenticator, req, right);
  const sessionId = pathId(req);
  const view = await knownView(context, actorOf(caller, sessionId));
  if (view === undefined) throw notThere(sessionId, caller);
  check?.(view, sessionId);
  const eventId = req.header("idempotency-key")?.slice(0, 300) ?? randomUUID();
  const eventKey = eventKeyOf(CONSOLE_SOURCE, eventId);
  await audited(context, req, { caller, action, target: sessionId, reason: data.reason, detail: { runId: data.runId ?? null, eventId } }, async () => {
    await deps.tasks.publish(envelopeFor({ id: eventId, type, tenant: caller.tenant, sessionId, data, atMs: deps.clock.nowMs(), by: caller.principal }));
    return { outcome: "published", result: undefined };
  });
  res.status(202).json({ sessionId, eventId, eventSource: CONSOLE_SOURCE, eventKey, links: { session: `/v1/sessions/${encodeURIComponent(sessionId)}` } });
}

/** Throws Problem `session_not_found`. */
export async function viewOf(context: ApiContext, caller: Authenticated, sessionId: string): Promise<SessionView & { stale: boolean }> {
  const view = await knownView(context, actorOf(caller, sessionId));
  if (view === undefined) throw notThere(sessionId, caller);
  return view;
}

/** The session's own word, or where it does not answer what is known here, marked `stale`. */
async function knownView({ db, deps }: ApiContext, actorId: string): Promise<(SessionView & { stale: boolean }) | undefined> {
  try {
    const view = await deps.sessions.readSession(actorId);
    return view === undefined || view.summary.status === "DELETED" ? undefined : { ...view, stale: false };
  } catch (error) {
    const summary = await findSummary(db, actorId);
    if (summary === undefined) throw error;
    return { summary, approvals: await openRecords(db, actorId), recentRuns: [], unknownCalls: [], stale: true };
  }
}

export function actorOf(caller: Authenticated, sessionId: string): string {
  if (!SessionId.safeParse(sessionId).success) throw new Problem("bad_request", "the session id has control characters or more than 200 characters");
  return actorIdOf(caller.tenant, sessionId);
}

export function notThere(sessionId: string, caller: Authenticated): Problem {
  return new Problem("session_not_found", `there is no session ${sessionId} in tenant ${caller.tenant}`, { hint: "docket session list" });
}

function statusesOf(text: string | undefined): string[] | undefined {
  if (text === undefined) return undefined;
  const words = text.split(",");
  const wrong = words.find((word) => !SessionStatus.safeParse(word).success);
  if (wrong !== undefined) throw new Problem("validation_failed", `status: got ${JSON.stringify(wrong)}, expected some of ${SESSION_STATUSES.join(", ")}`, { errors: [{ path: "status", message: `unknown status ${wrong}` }] });
  return words;
}
