/**
 * Owns: the routes around a decision: whose turn an approval is, when to look again, and ending an allowance. None of them decides; all
 * are carried to the session, which records them, and answer with its word.
 */
import { randomUUID } from "node:crypto";
import type { Express, Request, Response } from "express";
import { z } from "zod";
import { AssignRequest, MAX_SNOOZE_MS, SnoozeRequest } from "../../contracts/api.js";
import { ALLOWANCE_REVOKE, APPROVAL_TEND, type AllowanceRevoke, type ApprovalTend } from "../../contracts/decisions.js";
import { sha256Hex } from "../../contracts/ids.js";
import { PROBLEMS, Problem, type ProblemCode } from "../../contracts/problems.js";
import type { Authenticated } from "../../platform/apikeys.js";
import { envelopeFor } from "../envelopes.js";
import { carryEvent } from "../message.js";
import { callerWith, pathId, readBody, rightsOf } from "./access.js";
import { approvalOf, assigneeOf } from "./approvals.js";
import { audited, type ApiContext } from "./context.js";
import { viewOf } from "./sessions.js";

const DAY_MS = 86_400_000;
const RevokeRequest = z.strictObject({ reason: z.string().max(2000).default("") });

interface Order {
  readonly action: string; readonly target: string; readonly reason: string; readonly detail: Readonly<Record<string, unknown>>;
  readonly type: string; readonly data: ApprovalTend | AllowanceRevoke;
  /** Finds the session. Throws Problem where the caller may not see it. */
  readonly to: () => Promise<{ readonly actorId: string; readonly sessionId: string }>;
}

export function tendingRoutes(app: Express, context: ApiContext): void {
  const { deps } = context;
  const approval = (caller: Authenticated, id: string): Order["to"] => async () => (await approvalOf(context, caller, id)).pending;

  app.post("/v1/approvals/:id/assign", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    const { to: word, reason } = readBody(req, AssignRequest);
    const to = word === null ? null : assigneeOf(word, caller);
    const approvalId = pathId(req);
    await carry(context, req, res, { caller, order: { action: "approval.assign", target: approvalId, reason, detail: { to }, type: APPROVAL_TEND, data: { approvalId, assignTo: to, reason }, to: approval(caller, approvalId) } });
  });

  app.post("/v1/approvals/:id/snooze", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    const { untilMs, reason } = readBody(req, SnoozeRequest);
    const nowMs = deps.clock.nowMs();
    if (untilMs !== null && (untilMs <= nowMs || untilMs > nowMs + MAX_SNOOZE_MS)) throw new Problem("validation_failed", `untilMs is ${String(untilMs)}; expected a time from now on, ${String(MAX_SNOOZE_MS / DAY_MS)} days at most`, { errors: [{ path: "untilMs", message: "expected the near future" }] });
    const approvalId = pathId(req);
    await carry(context, req, res, { caller, order: { action: "approval.snooze", target: approvalId, reason, detail: { untilMs }, type: APPROVAL_TEND, data: { approvalId, snoozeUntilMs: untilMs, reason }, to: approval(caller, approvalId) } });
  });

  app.post("/v1/sessions/:id/allowances/:allowance/revoke", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    const { reason } = readBody(req, RevokeRequest);
    const sessionId = pathId(req);
    const { allowance } = req.params;
    await carry(context, req, res, { caller, order: { action: "allowance.revoke", target: allowance, reason, detail: { sessionId }, type: ALLOWANCE_REVOKE, data: { allowanceId: allowance, reason }, to: async () => (await viewOf(context, caller, sessionId)).summary } });
  });
}

/** The same click (`Idempotency-Key`) is one request. 200 with the session's word, 202 while it has not said it. */
async function carry(context: ApiContext, req: Request, res: Response, { caller, order }: { readonly caller: Authenticated; readonly order: Order }): Promise<void> {
  const { deps, config } = context;
  const { action, target, reason, detail, type, data } = order;
  const click = req.header("idempotency-key")?.slice(0, 300) ?? randomUUID();
  const id = `tend_${sha256Hex(JSON.stringify([caller.tenant, caller.principal.id, action, target, click, data])).slice(0, 32)}`;
  const outcome = await audited(context, req, { caller, action, target, reason, detail: { ...detail, eventId: id } }, async () => {
    if (!rightsOf(caller).some((right) => right === "operate" || right === "decide")) throw new Problem("forbidden", `${caller.principal.id} may neither operate nor decide`);
    const { actorId, sessionId } = await order.to();
    const nowMs = deps.clock.nowMs();
    const found = await carryEvent(deps, config, actorId, envelopeFor({ id, type, tenant: caller.tenant, sessionId, data, atMs: nowMs, by: caller.principal }));
    const verdict = found === undefined ? "not_known_yet" : found.code ?? "accepted";
    if (isRefusal(verdict)) throw new Problem(verdict, `the session refused it: ${PROBLEMS[verdict].title.toLowerCase()}`);
    return { outcome: verdict, result: verdict };
  });
  res.status(outcome === "not_known_yet" ? 202 : 200).json({ target, eventId: id, verdict: outcome });
}

function isRefusal(verdict: string): verdict is ProblemCode { return Object.hasOwn(PROBLEMS, verdict) && verdict !== "duplicate" && verdict !== "not_known_yet"; }
