/**
 * Owns: that no request which could change something goes without a row in the audit. Routes write their own rows (`audited`); what is
 * refused before a route gets that far, and what a route forgot, gets its row here.
 *
 * - Refused requests without credentials are cheap to send: each address has some rows a minute, the rest is counted in one row.
 */
import type { ErrorRequestHandler, Request, RequestHandler } from "express";
import { asProblem, requestIdOf } from "../../platform/http.js";
import { errorFields } from "../../platform/log.js";
import { addAudit } from "../read-model/audit.js";
import { knownCaller } from "./caller.js";
import { isNoted, type ApiContext } from "./context.js";

export interface AuditGuard {
  /** Before the routes. */
  readonly before: RequestHandler;
  /** After the routes, before problems are rendered. */
  readonly refused: ErrorRequestHandler;
  /** Writes down what was only counted. */
  flush(): Promise<void>;
}

interface Counted { sinceMs: number; rows: number; more: number }

const MINUTE_MS = 60_000;
const MOST_ADDRESSES = 10_000;

export function createAuditGuard({ db, deps, config }: ApiContext): AuditGuard {
  const addresses = new Map<string, Counted>();

  const note = async (req: Request, outcome: string, detail: Readonly<Record<string, unknown>>): Promise<void> => {
    const caller = knownCaller(req);
    try {
      if (caller === undefined && !(await mayWrite(req.ip ?? ""))) return;
      await addAudit(db, {
        atMs: deps.clock.nowMs(), tenant: caller?.tenant ?? "", principalId: caller?.principal.id ?? "", keyId: caller?.keyId ?? "",
        action: `${req.method} ${patternOf(req)}`, target: caller === undefined ? "" : req.path.slice(0, 300), outcome, reason: "", detail, ip: req.ip ?? "",
      });
    } catch (error) {
      deps.logger.error({ ...errorFields(error), method: req.method, path: req.path.slice(0, 300), outcome }, "a request could not be written into the audit");
    }
  };

  const mayWrite = async (address: string): Promise<boolean> => {
    const nowMs = deps.clock.nowMs();
    const found = addresses.get(address);
    if (found !== undefined && nowMs - found.sinceMs < MINUTE_MS) {
      found.rows += 1;
      if (found.rows <= config.audit.refusalsPerMinute) return true;
      found.more += 1;
      return false;
    }
    if (found !== undefined) await writeCount(address, found);
    if (addresses.size >= MOST_ADDRESSES) addresses.delete(addresses.keys().next().value ?? "");
    addresses.set(address, { sinceMs: nowMs, rows: 1, more: 0 });
    return true;
  };

  const writeCount = async (address: string, { more, sinceMs }: Counted): Promise<void> => {
    addresses.delete(address);
    if (more === 0) return;
    await addAudit(db, { atMs: deps.clock.nowMs(), tenant: "", principalId: "", keyId: "", action: "refusals.counted", target: "", outcome: "refused", reason: "more refused requests than get a row each", detail: { count: more, sinceMs }, ip: address });
  };

  return {
    before: (req, res, next) => {
      if (!isRead(req)) {
        res.once("finish", () => { if (res.statusCode < 400 && !isNoted(req)) void note(req, "done", { status: res.statusCode }); });
      }
      next();
    },
    refused: (error: unknown, req, res, next) => {
      const problem = asProblem(error, requestIdOf(res));
      const nowhere = problem.code === "not_found" && req.route === undefined;
      if (isRead(req) || isNoted(req) || nowhere) { next(error); return; }
      void note(req, problem.code, { status: problem.status, requestId: requestIdOf(res) }).then(() => { next(error); });
    },
    async flush() {
      const nowMs = deps.clock.nowMs();
      for (const [address, counted] of [...addresses]) if (nowMs - counted.sinceMs >= MINUTE_MS) await writeCount(address, counted);
    },
  };
}

function isRead(req: Request): boolean { return req.method === "GET" || req.method === "HEAD" || req.method === "OPTIONS"; }

/** The route, or for a request that was refused before one was found its path without ids: those may be another tenant's. */
function patternOf(req: Request): string {
  const route = req.route as { path?: unknown } | undefined;
  if (typeof route?.path === "string") return route.path;
  return req.path.split("/").slice(0, 6).map((part, index) => (index === 3 || !/^[a-z0-9-]{0,30}$/.test(part) ? "*" : part)).join("/");
}
