/**
 * Owns: approvals that are alike: what was decided on the same tool before, and deciding several at once. Many at once are approved or rejected only
 * where they are the same tool, asked for by the same rule, and of less than high risk; each is a decision of its own, signed,
 * judged by its session and audited.
 */
import type { Express, Request } from "express";
import { z } from "zod";
import type { ApprovalListItem, DecisionAnswer, DecisionRequest } from "../../contracts/api.js";
import { PROBLEMS, Problem } from "../../contracts/problems.js";
import type { Authenticated } from "../../platform/apikeys.js";
import { carryDecision, checkRequest, decisionIdOf, requireApprover, type Decision } from "../decide.js";
import { findApproval, similarDecisions } from "../read-model/approvals.js";
import { callerWith, pathId, readBody, requireRight } from "./access.js";
import { viaOf } from "./approvals.js";
import { audited, type ApiContext } from "./context.js";

const MAX_AT_ONCE = 50;
const AT_A_TIME = 5;
const SHOWN = 5;

/** `clickId`: repetitions of the same click carry the same. `version` and `argsDigest` say what was seen of each. */
const BulkBody = z.strictObject({
  kind: z.enum(["approve", "reject"]), text: z.string().trim().max(20_000).optional(), clickId: z.string().min(8).max(100),
  approvals: z.array(z.strictObject({ approvalId: z.string().min(1).max(200), version: z.number().int(), argsDigest: z.string() })).min(1).max(MAX_AT_ONCE),
});
type Bulk = z.output<typeof BulkBody>;

export function alikeRoutes(app: Express, context: ApiContext): void {
  const { db, deps } = context;

  app.get("/v1/approvals/:id/similar", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    const item = await oneOf(context, caller, pathId(req));
    const { tool } = item.pending.record;
    res.json({ items: tool === undefined ? [] : await similarDecisions(db, caller.tenant, { tool, except: item.pending.record.approvalId, limit: SHOWN }) });
  });

  app.post("/v1/approvals/decisions", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    const bulk = readBody(req, BulkBody);
    if (bulk.kind === "reject" && (bulk.text ?? "") === "") throw new Problem("validation_failed", "rejecting needs a reason for the model", { errors: [{ path: "text", message: "is required here" }] });
    // Whoever may look may try; the attempt as a whole is in the audit, and so is each decision (I10).
    const answers = await audited(context, req, { caller, action: "approval.together", target: `${String(bulk.approvals.length)} approvals`, reason: bulk.text ?? "", detail: { kind: bulk.kind, approvals: bulk.approvals, clickId: bulk.clickId } },
      async () => ({ outcome: "decided", result: await decideAll(context, req, caller, bulk) }));
    res.json({ items: answers });
  });
}

async function decideAll(context: ApiContext, req: Request, caller: Authenticated, bulk: Bulk): Promise<DecisionAnswer[]> {
  requireRight(caller, "decide");
  requireApprover(caller);
  const items: ApprovalListItem[] = [];
  for (const { approvalId } of bulk.approvals) items.push(await oneOf(context, caller, approvalId));
  requireAlike(items);
  const queue = items.map((item, index) => ({ item, index }));
  const answers: DecisionAnswer[] = [];
  await Promise.all(Array.from({ length: AT_A_TIME }, async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) answers[next.index] = await decideOne(context, req, { caller, bulk, item: next.item, index: next.index });
  }));
  return answers;
}

/** Throws Problem `decision_not_allowed` unless all are the same kind of call, and none is of high risk. */
function requireAlike(items: readonly ApprovalListItem[]): void {
  const [first] = items;
  const ids = new Set(items.map((item) => item.pending.record.approvalId));
  if (ids.size !== items.length) throw new Problem("bad_request", "an approval is named twice");
  for (const { pending: { record } } of items) {
    const why = record.kind !== "tool_call" ? "is an escalation" : record.risk === "high" ? "is of high risk"
      : record.tool !== first?.pending.record.tool ? `is for ${record.tool ?? "another tool"}, not ${first?.pending.record.tool ?? ""}`
      : record.rule !== first?.pending.record.rule ? `was asked for by rule ${record.rule}, not ${first?.pending.record.rule ?? ""}` : undefined;
    if (why !== undefined) throw new Problem("decision_not_allowed", `approval ${record.approvalId} ${why}: decided together is only what is the same tool, the same rule and below high risk; nothing was decided`, { hint: "decide it by itself" });
  }
}

async function decideOne(context: ApiContext, req: Request, { caller, bulk, item, index }: { caller: Authenticated; bulk: Bulk; item: ApprovalListItem; index: number }): Promise<DecisionAnswer> {
  const { approvalId } = item.pending.record;
  const { version, argsDigest } = bulk.approvals[index] ?? item.pending.record;
  const via = viaOf(req);
  const request: DecisionRequest = { kind: bulk.kind, version, argsDigest, ...(bulk.text === undefined || bulk.text === "" ? {} : { text: bulk.text }) };
  const decision: Decision = { pending: item.pending, request: checkRequest(request), caller, via };
  const decisionId = decisionIdOf(decision, bulk.clickId);
  try {
    return await audited(context, req, { caller, action: `approval.${bulk.kind}`, target: approvalId, reason: bulk.text ?? "", detail: { kind: bulk.kind, version, argsDigest, clickId: bulk.clickId, via, together: bulk.approvals.length } }, async () => {
      const answer = await carryDecision(context.deps, context.config, decision, decisionId);
      return { outcome: answer.verdict, result: Object.hasOwn(PROBLEMS, answer.verdict) ? { ...answer, message: answer.message ?? PROBLEMS[answer.verdict as keyof typeof PROBLEMS].title } : answer };
    });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { approvalId, decisionId, verdict: error.code, message: error.message };
  }
}

async function oneOf({ db }: ApiContext, caller: Authenticated, approvalId: string): Promise<ApprovalListItem> {
  const item = await findApproval(db, caller.tenant, approvalId);
  if (item === undefined) throw new Problem("approval_not_found", `there is no approval ${approvalId} in tenant ${caller.tenant}`, { hint: "docket approval list" });
  return item;
}
