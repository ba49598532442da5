/** Owns: the routes of approvals. Showing one asks the session for its newest version; deciding answers with the session's verdict. */
import { randomUUID } from "node:crypto";
import type { Express, Request } from "express";
import { z } from "zod";
import { DecisionRequest, type ApprovalListItem, type DecisionAnswer } from "../../contracts/api.js";
import { PROBLEMS, Problem, type ProblemCode } from "../../contracts/problems.js";
import type { Authenticated } from "../../platform/apikeys.js";
import { errorFields } from "../../platform/log.js";
import { carryDecision, checkRequest, decisionIdOf, requireApprover, type Decision, type Via } from "../decide.js";
import { findApproval, listApprovals } from "../read-model/approvals.js";
import { callerWith, PAGE_QUERY, pageRequest, pathId, readBody, readQuery, requireRight } from "./access.js";
import { signedInCaller } from "./caller.js";
import { audited, type ApiContext } from "./context.js";

const APPROVAL_QUERY = { ...PAGE_QUERY, state: z.enum(["open", "decided", "expired", "withdrawn", "all"]).default("open"), session: z.string().max(200).optional() };

export function approvalRoutes(app: Express, context: ApiContext): void {
  const { db, deps } = context;

  app.get("/v1/approvals", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    const query = readQuery(req, APPROVAL_QUERY);
    res.json(await listApprovals(db, { ...pageRequest(query), tenant: caller.tenant, state: query.state, sessionId: query.session }));
  });

  app.get("/v1/approvals/:id", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    res.json(await freshest(context, await approvalOf(context, caller, pathId(req))));
  });

  app.post("/v1/approvals/:id/decisions", async (req, res) => {
    // Whoever may look may try; what the attempt came to is in the audit, refusals included (I10).
    const caller = callerWith(deps.authenticator, req, "read");
    const answer = await decide(context, req, caller);
    if (answer.verdict === "not_known_yet") {
      res.status(202).setHeader("location", `/v1/approvals/${encodeURIComponent(answer.approvalId)}`).json(answer);
      return;
    }
    if (isRefusal(answer.verdict)) throw refusalOf(answer.verdict, answer);
    res.json(answer);
  });
}

async function decide(context: ApiContext, req: Request, caller: Authenticated): Promise<DecisionAnswer> {
  const approvalId = pathId(req);
  const request = readBody(req, DecisionRequest);
  const clickId = request.decisionId ?? randomUUID();
  const detail = { kind: request.kind, version: request.version, argsDigest: request.argsDigest, clickId, via: viaOf(req), ...(request.args === undefined ? {} : { args: request.args }) };
  return audited(context, req, { caller, action: `approval.${request.kind}`, target: approvalId, reason: request.text ?? "", detail }, async () => {
    requireRight(caller, "decide");
    requireApprover(caller);
    const item = await approvalOf(context, caller, approvalId);
    const decision: Decision = { pending: item.pending, request: checkRequest(request), caller, via: viaOf(req) };
    const answer = await carryDecision(context.deps, context.config, decision, decisionIdOf(decision, clickId));
    return { outcome: answer.verdict, result: answer };
  });
}

async function approvalOf({ db }: ApiContext, caller: Authenticated, approvalId: string): Promise<ApprovalListItem> {
  const item = await findApproval(db, caller.tenant, approvalId);
  if (item === undefined) throw new Problem("approval_not_found", `there is no approval ${approvalId} in tenant ${caller.tenant}`, { hint: "docket approval list" });
  return item;
}

/** With the session's own record (signatures so far), where it answers and still asks the same. */
async function freshest({ deps }: ApiContext, item: ApprovalListItem): Promise<ApprovalListItem> {
  if (item.state !== "open") return item;
  try {
    const view = await deps.sessions.readSession(item.pending.actorId);
    const record = view?.approvals.find((one) => one.approvalId === item.pending.record.approvalId);
    return record?.version === item.pending.record.version ? { ...item, pending: { ...item.pending, record } } : item;
  } catch (error) {
    deps.logger.debug({ approvalId: item.pending.record.approvalId, ...errorFields(error) }, "showing an approval from the read model");
    return item;
  }
}

function isRefusal(verdict: string): verdict is ProblemCode {
  return Object.hasOwn(PROBLEMS, verdict) && verdict !== "duplicate";
}

function refusalOf(code: ProblemCode, answer: DecisionAnswer): Problem {
  return new Problem(code, `the session refused the decision on ${answer.approvalId}: ${PROBLEMS[code].title.toLowerCase()}`, { hint: `docket approval show ${answer.approvalId}` });
}

/** Only for the audit; it gives no right. */
function viaOf(req: Request): Via {
  if (signedInCaller(req) !== undefined) return "web";
  return /^docket-cli\//.test(req.header("user-agent") ?? "") ? "cli" : "api";
}
