/** Owns: the routes of approvals. Showing one asks the session for its newest version; deciding answers with the session's verdict. */
import { randomUUID } from "node:crypto";
import type { Express, Request } from "express";
import { z } from "zod";
import { DecisionRequest, type ApprovalListItem, type DecisionAnswer } from "../../contracts/api.js";
import { PROBLEMS, Problem, type ProblemCode } from "../../contracts/problems.js";
import type { Authenticated } from "../../platform/apikeys.js";
import { errorFields } from "../../platform/log.js";
import { sealArguments, type ArgumentFault } from "../../session/core/seal.js";
import { carryDecision, checkRequest, decisionIdOf, requireApprover, type Decision, type Via } from "../decide.js";
import { findApproval, historyOf, listApprovals } from "../read-model/approvals.js";
import { callerWith, PAGE_QUERY, pageRequest, pathId, readBody, readQuery, requireRight } from "./access.js";
import { signedInCaller } from "./caller.js";
import { audited, type ApiContext } from "./context.js";

const APPROVAL_QUERY = { ...PAGE_QUERY, state: z.enum(["open", "decided", "expired", "withdrawn", "all"]).default("open"), session: z.string().max(200).optional(),
  /** `me`, `nobody`, or a person's id. */
  assigned: z.string().min(1).max(200).optional(), snoozed: z.enum(["show", "hide"]).default("show") };

export function approvalRoutes(app: Express, context: ApiContext): void {
  const { db, deps } = context;

  app.get("/v1/approvals", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    const query = readQuery(req, APPROVAL_QUERY);
    res.json(await listApprovals(db, { ...pageRequest(query), tenant: caller.tenant, state: query.state, sessionId: query.session, assignedTo: query.assigned === undefined ? undefined : assigneeOf(query.assigned, caller), awakeAtMs: query.snoozed === "hide" ? deps.clock.nowMs() : undefined }));
  });

  app.get("/v1/approvals/:id", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    const item = await freshest(context, await approvalOf(context, caller, pathId(req)));
    res.json({ ...item, history: await historyOf(db, item.pending.record.approvalId) });
  });

  app.post("/v1/approvals/:id/decisions", async (req, res) => {
    // Whoever may look may try; what the attempt came to is in the audit, refusals included (I10).
    const caller = callerWith(deps.authenticator, req, "read");
    const request = readBody(req, DecisionRequest);
    const approvalId = pathId(req);
    const answer = await decideAs(context, req, { caller, approvalId, request, clickId: request.decisionId ?? randomUUID(), via: viaOf(req) });
    if (answer.verdict === "not_known_yet") {
      res.status(202).setHeader("location", `/v1/approvals/${encodeURIComponent(answer.approvalId)}`).json(answer);
      return;
    }
    if (isRefusal(answer.verdict)) throw refusalOf(answer.verdict, answer, answer.verdict === "arguments_invalid" ? await faultsIn(context, caller, approvalId, request) : []);
    res.json(answer);
  });
}

/** Where new arguments do not fit, by the tool's schema as it is installed here. The session has refused them already; this only says where to look. */
async function faultsIn(context: ApiContext, caller: Authenticated, approvalId: string, { args }: DecisionRequest): Promise<readonly ArgumentFault[]> {
  const { pending: { record } } = await approvalOf(context, caller, approvalId);
  const manifest = context.deps.installed.tools.find((tool) => tool.name === record.tool);
  if (manifest === undefined || args === undefined) return [];
  const sealed = sealArguments(manifest, args);
  return sealed.ok ? [] : sealed.faults;
}

export interface Click {
  readonly caller: Authenticated; readonly approvalId: string; readonly request: DecisionRequest; readonly clickId: string; readonly via: Via;
  /** For the audit: by what the click came. */
  readonly detail?: Readonly<Record<string, unknown>>;
}

/** The one way to a decision, wherever the click came from: rights, role and tenant here, everything again in the session; two rows in the audit. */
export async function decideAs(context: ApiContext, req: Request, { caller, approvalId, request, clickId, via, detail: more = {} }: Click): Promise<DecisionAnswer> {
  const detail = { kind: request.kind, version: request.version, argsDigest: request.argsDigest, clickId, via, ...more, ...(request.args === undefined ? {} : { args: request.args }), ...(request.remember === undefined ? {} : { remember: request.remember }) };
  return audited(context, req, { caller, action: `approval.${request.kind}`, target: approvalId, reason: request.text ?? "", detail }, async () => {
    requireRight(caller, "decide");
    requireApprover(caller);
    const item = await approvalOf(context, caller, approvalId);
    const decision: Decision = { pending: item.pending, request: checkRequest(request), caller, via };
    const answer = await carryDecision(context.deps, context.config, decision, decisionIdOf(decision, clickId));
    return { outcome: answer.verdict, result: answer };
  });
}

/** Whom a list's filter, or whoever assigns, means: `me` is the caller and `nobody` is nobody, in both; null: nobody. */
export function assigneeOf(word: string, caller: Authenticated): string | null {
  return word === "me" ? caller.principal.id : word === "nobody" ? null : word;
}

export async function approvalOf({ db }: ApiContext, caller: Authenticated, approvalId: string): Promise<ApprovalListItem> {
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

export function isRefusal(verdict: string): verdict is ProblemCode {
  return Object.hasOwn(PROBLEMS, verdict) && verdict !== "duplicate";
}

/** The session's own words, where it gave any (a session of an older version gave none). `faults`: places in the arguments that do not fit. */
export function refusalOf(code: ProblemCode, answer: DecisionAnswer, faults: readonly ArgumentFault[] = []): Problem {
  return new Problem(code, `the session refused the decision on ${answer.approvalId}: ${answer.message ?? PROBLEMS[code].title.toLowerCase()}`, { hint: `docket approval show ${answer.approvalId}`, ...(faults.length === 0 ? {} : { errors: [...faults] }) });
}

/** Where a decision was made, for the audit; it gives no right. */
export function viaOf(req: Request): Via {
  if (signedInCaller(req) !== undefined) return "web";
  return /^docket-cli\//.test(req.header("user-agent") ?? "") ? "cli" : "api";
}
