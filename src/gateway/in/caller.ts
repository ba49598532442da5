/** Owns: who calls, what the caller may do, and the Idempotency-Key. */
import type { ErrorRequestHandler, Request, RequestHandler, Response } from "express";
import { v7 as uuidv7 } from "uuid";
import { sha256Hex } from "../../contracts/ids.js";
import { Problem } from "../../contracts/problems.js";
import type { Refusal } from "../../contracts/reports.js";
import { requireScope, type ApiKeys, type Authenticated } from "../../platform/apikeys.js";
import { asProblem, requestIdOf } from "../../platform/http.js";
import type { Logger } from "../../platform/log.js";

const callers = new WeakMap<Response, Authenticated>();

/** Checks the API key before anything of the body is read. Refusals run through `limit`: guessing is slow, a good key never meets it. */
export function authenticated(keys: Pick<ApiKeys, "authenticate">, limit: RequestHandler): RequestHandler {
  return (req, res, next) => {
    let caller: Authenticated;
    try {
      caller = keys.authenticate(req.header("authorization"));
    } catch (error) {
      void limit(req, res, () => { next(error); });
      return;
    }
    callers.set(res, caller);
    next();
  };
}

/** Lets a request pass only with the scope. */
export function scoped(scope: string): RequestHandler {
  return (_req, res, next) => {
    requireScope(callerOf(res), scope);
    next();
  };
}

/** What concerns rights: it goes to the console's audit, reads too. */
const RIGHTS: ReadonlySet<number> = new Set([401, 403, 429]);

/**
 * Writes down who was refused what: a refused request changes nothing, and leaves no row in a journal. Taken events have theirs there. What is refused for want
 * of rights is told to the console, which has it in the audit.
 */
export function noteRefusals(logger: Logger, tell: (refused: Omit<Refusal, "refusalId" | "atMs" | "count">) => void): ErrorRequestHandler {
  return (error: unknown, req, res, next) => {
    const requestId = requestIdOf(res);
    const { code, status } = asProblem(error, requestId);
    const caller = callers.get(res);
    const [path, ip] = [req.path.slice(0, 300), req.ip ?? ""];
    if (req.method !== "GET" && req.method !== "HEAD") logger.warn({ requestId, code, method: req.method, path, ip, tenant: caller?.tenant, principal: caller?.principal.id, keyId: caller?.keyId }, "refused");
    if (RIGHTS.has(status)) tell({ code, method: req.method.slice(0, 20), path, ip: ip.slice(0, 100), requestId, ...(caller === undefined ? {} : { tenant: caller.tenant, principalId: caller.principal.id, keyId: caller.keyId }) });
    next(error);
  };
}

/** The authenticated caller of this request. */
export function callerOf(res: Response): Authenticated {
  const caller = callers.get(res);
  if (caller === undefined) throw new Problem("unauthenticated", "the request carries no API key");
  return caller;
}

/** The caller as one word for limits. */
export function callerKey(res: Response): string {
  const { tenant, principal } = callerOf(res);
  return `${tenant}\n${principal.id}`;
}

/** Every principal has its own event source, so that nobody's Idempotency-Key meets another's (A2). */
export function sourceOf(caller: Authenticated): string {
  const { id } = caller.principal;
  return `${sourcePrefix(caller.tenant)}${/^(?!h-)[A-Za-z0-9._@-]+$/.test(id) ? id : `h-${sha256Hex(id)}`}`;
}

/** Sources of a tenant's principals; an event from outside may not borrow another's. */
export function sourcePrefix(tenant: string): string { return `urn:docket:principal:${tenant}:`; }

/** The Idempotency-Key, in its plain or its quoted form (RFC draft). Throws Problem `bad_request`. */
export function idempotencyKeyOf(req: Request): string | undefined {
  const header = req.header("idempotency-key");
  if (header === undefined) return undefined;
  const key = /^"(.*)"$/.exec(header)?.[1] ?? header;
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) throw new Problem("bad_request", "the Idempotency-Key is not usable", { hint: "1 to 255 visible ASCII characters, without spaces" });
  return key;
}

/** A new event id, ordered by time. */
export function newEventId(): string { return uuidv7(); }
