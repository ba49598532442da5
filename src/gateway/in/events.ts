/**
 * Owns: POST /v1/prompts, /v1/sessions/:id/events and /v1/events. Turns what was sent into `Incoming` and answers 202, or
 * for a batch one result per event.
 */
import { Router, type Request, type RequestHandler, type Response } from "express";
import { PromptRequest, type Accepted } from "../../contracts/api.js";
import type { Envelope } from "../../contracts/cloudevent.js";
import { sha256Hex } from "../../contracts/ids.js";
import { PROMPT_RECEIVED } from "../../contracts/messages.js";
import { Problem } from "../../contracts/problems.js";
import type { Authenticated } from "../../platform/apikeys.js";
import { asProblem, bodyText, requestIdOf } from "../../platform/http.js";
import type { AgentOf } from "../out/reads.js";
import { acceptEvent, type AcceptDeps, type Incoming } from "./accept.js";
import { readBody } from "./body.js";
import { callerOf, idempotencyKeyOf, newEventId, scoped, sourceOf, sourcePrefix } from "./caller.js";
import { eventModeOf, readBatch, readBinary, readStructured } from "./cloudevents.js";

export interface EventRouteDeps {
  readonly accept: AcceptDeps;
  /** Agent of a session that exists: what is addressed to the session goes to its agent, named or not. */
  readonly agentOf: AgentOf;
}

/** One line of a batch's answer. */
type BatchItem = { readonly index: number; readonly status: number } & ({ readonly accepted: Accepted } | { readonly problem: object });

/** Routes that take events. `body` reads the raw body; it runs after the caller was let in. */
export function eventRoutes(deps: EventRouteDeps, body: RequestHandler): Router {
  const router = Router({ caseSensitive: true });
  const write = scoped("prompts:write");
  router.post("/v1/prompts", write, body, async (req, res) => { send(res, await acceptPrompt(deps, req, callerOf(res))); });
  router.post("/v1/events", write, body, async (req, res) => { await takeEvents(deps, req, res); });
  router.post("/v1/sessions/:id/events", write, body, async (req: Request<{ id: string }>, res) => {
    if (eventModeOf(req.headers) === "none") send(res, await acceptPrompt(deps, req, callerOf(res), req.params.id));
    else await takeEvents(deps, req, res, req.params.id);
  });
  return router;
}

/** The 202: where to look, and that nothing has been worked on yet. */
export function send(res: Response, accepted: Accepted): void {
  res.status(202).location(accepted.links.outcome ?? accepted.links.session).json(accepted);
}

async function acceptPrompt(deps: EventRouteDeps, req: Request, caller: Authenticated, pathSession?: string): Promise<Accepted> {
  const prompt = readBody(req, PromptRequest);
  if (pathSession !== undefined && prompt.sessionId !== undefined && prompt.sessionId !== pathSession) throw twoSessions(prompt.sessionId, pathSession);
  const key = idempotencyKeyOf(req);
  const source = sourceOf(caller);
  const id = key ?? newEventId();
  const named = pathSession ?? prompt.sessionId;
  // A new session's id follows from the key, so that a retry meets the same session.
  const sessionId = named ?? `s-${sha256Hex(`${caller.tenant}\n${source}\n${id}`).slice(0, 24)}`;
  const agent = prompt.agent !== undefined || named === undefined ? undefined : await deps.agentOf(caller.tenant, named);
  const incoming: Incoming = {
    source, id, type: PROMPT_RECEIVED,
    data: JSON.stringify({ text: prompt.text, ...(prompt.attributes === undefined ? {} : { attributes: prompt.attributes }) }),
    ...optional("agent", prompt.agent),
    ...(prompt.mode === undefined ? {} : { busymode: prompt.mode }),
    ...(prompt.expiresAt === undefined ? {} : { expirytime: prompt.expiresAt }),
    ...(key === undefined ? {} : { idempotencykey: key }),
    ...optional("traceparent", req.header("traceparent")),
  };
  return acceptEvent(deps.accept, caller, incoming, { sessionId, agent });
}

async function takeEvents(deps: EventRouteDeps, req: Request, res: Response, pathSession?: string): Promise<void> {
  const mode = eventModeOf(req.headers);
  const text = bodyText(req);
  const caller = callerOf(res);
  const one = async (envelope: Envelope): Promise<Accepted> => {
    const incoming = incomingOf(req, caller, envelope, pathSession);
    if (pathSession === undefined) return acceptEvent(deps.accept, caller, incoming);
    const agent = incoming.agent === undefined ? await deps.agentOf(caller.tenant, pathSession) : undefined;
    return acceptEvent(deps.accept, caller, incoming, { sessionId: pathSession, agent });
  };
  switch (mode) {
    case "structured": send(res, await one(readStructured(text))); return;
    case "binary": send(res, await one(readBinary(req.headers, text))); return;
    case "batched": {
      if (req.header("idempotency-key") !== undefined) throw new Problem("bad_request", "a batch takes no Idempotency-Key", { hint: "each event's source and id are its key" });
      const items = await takeBatch(readBatch(text, deps.accept.config.batchLimit), one, requestIdOf(res));
      res.status(items.every((item) => item.status === 202) ? 202 : 207).json(items);
      return;
    }
    case "none": throw new Problem("not_a_cloudevent", "the request carries no CloudEvent", { hint: "send application/cloudevents+json, application/cloudevents-batch+json, or ce- headers; prompts go to /v1/prompts" });
  }
}

/** One after the other, so that events of one session keep their order (I3). */
async function takeBatch(reads: (() => Envelope)[], accept: (envelope: Envelope) => Promise<Accepted>, requestId: string): Promise<BatchItem[]> {
  const items: BatchItem[] = [];
  for (const [index, read] of reads.entries()) {
    try {
      items.push({ index, status: 202, accepted: await accept(read()) });
    } catch (error) {
      const problem = asProblem(error, requestId);
      items.push({ index, status: problem.status, problem: problem.toDocument() });
    }
  }
  return items;
}

function incomingOf(req: Request, caller: Authenticated, envelope: Envelope, pathSession: string | undefined): Incoming {
  const { source, id, type, data, subject, agent, busymode, time, expirytime, causationid, datacontenttype, dataschema } = envelope;
  if (pathSession !== undefined && subject !== undefined && subject !== pathSession) throw twoSessions(subject, pathSession);
  if (source.startsWith("urn:docket:") && source !== sourceOf(caller)) {
    throw new Problem("forbidden", `the source ${source.slice(0, 200)} belongs to another principal`, { hint: `use a source of your own, outside ${sourcePrefix(caller.tenant)}` });
  }
  const key = idempotencyKeyOf(req);
  return {
    source, id: key ?? id, type, data,
    ...optional("subject", subject), ...optional("agent", agent), ...optional("busymode", busymode), ...optional("time", time), ...optional("expirytime", expirytime),
    ...optional("causationid", causationid), ...optional("datacontenttype", datacontenttype), ...optional("dataschema", dataschema),
    ...optional("traceparent", envelope.traceparent ?? req.header("traceparent")),
    ...optional("idempotencykey", key ?? envelope.idempotencykey),
  };
}

function optional<K extends string>(name: K, value: string | undefined): { readonly [P in K]?: string } {
  return value === undefined ? {} : { [name]: value } as { [P in K]: string };
}

function twoSessions(inBody: string, inPath: string): Problem {
  return new Problem("validation_failed", `the body names session ${JSON.stringify(inBody.slice(0, 200))}, the path ${JSON.stringify(inPath.slice(0, 200))}`, { hint: "leave it out of the body, or make both the same" });
}
