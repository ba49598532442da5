/** Owns: the routes of dead letters and the audit list. */
import type { Express } from "express";
import { z } from "zod";
import type { DeadLetterItem } from "../../contracts/api.js";
import { DeadLetterKind } from "../../contracts/messages.js";
import { Problem } from "../../contracts/problems.js";
import type { Authenticated } from "../../platform/apikeys.js";
import { listAudit } from "../read-model/audit.js";
import { claimRedrive, findDeadLetter, listDeadLetters, settleRedrive } from "../read-model/dead-letters.js";
import { planRedrive, type RedrivePlan } from "../redrive.js";
import { callerWith, isAdmin, PAGE_QUERY, pageRequest, pathId, readBody, readQuery, requireRight } from "./access.js";
import { audited, type ApiContext } from "./context.js";

const LETTER_QUERY = { ...PAGE_QUERY, state: z.enum(["dead", "redriven", "discarded"]).optional(), kind: DeadLetterKind.optional(), session: z.string().max(200).optional() };

/** `redrive`: the number that the caller means, so that a repeated request is the same redrive. `payload`: the edited event. */
const RedriveBody = z.strictObject({
  reason: z.string().min(1).max(2000), dryRun: z.boolean().default(false), payload: z.string().max(512 * 1024).optional(), redrive: z.number().int().min(1).optional(),
});

export function deadLetterRoutes(app: Express, context: ApiContext): void {
  const { db, deps } = context;

  app.get("/v1/dead-letters", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    const query = readQuery(req, LETTER_QUERY);
    res.json(await listDeadLetters(db, { ...pageRequest(query), tenant: caller.tenant, orphans: isAdmin(caller), state: query.state, kind: query.kind, sessionId: query.session }));
  });

  app.get("/v1/dead-letters/:id", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    res.json(await letterOf(context, caller, pathId(req)));
  });

  app.post("/v1/dead-letters/:id/redrive", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "operate");
    const body = readBody(req, RedriveBody);
    if (body.payload !== undefined) requireRight(caller, "decide");
    const item = await letterOf(context, caller, pathId(req));
    const plan = planRedrive(item, body, caller, deps.clock.nowMs());
    const shown = { deadLetterId: item.letter.deadLetterId, redrive: plan.redrive, action: plan.action, ...(plan.action === "send" ? { sessionId: plan.sessionId, eventId: plan.command.id } : {}) };
    if (body.dryRun) {
      res.json({ ...shown, dryRun: true });
      return;
    }
    const detail = { redrive: plan.redrive, edited: body.payload !== undefined };
    await audited(context, req, { caller, action: "dead-letter.redrive", target: item.letter.deadLetterId, reason: body.reason, detail }, async () => {
      await carryOut(context, item, plan);
      return { outcome: "redriven", result: undefined };
    });
    res.status(202).json({ ...shown, dryRun: false });
  });

  app.get("/v1/audit", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "audit");
    res.json(await listAudit(db, caller.tenant, pageRequest(readQuery(req, PAGE_QUERY))));
  });
}

/** Claims the number first: two people at once make one redrive. A number that was claimed before is sent again, same id. */
async function carryOut({ db, deps, intake }: ApiContext, item: DeadLetterItem, plan: RedrivePlan): Promise<void> {
  const id = item.letter.deadLetterId;
  if (plan.redrive > item.redriveCount && !(await claimRedrive(db, id, plan.redrive))) {
    throw new Problem("version_mismatch", `dead letter ${id} was redriven by somebody else just now`, { hint: `docket dlq show ${id}` });
  }
  if (plan.action === "send") await deps.tasks.publish(plan.command);
  else {
    const status = plan.kind === "journal" ? await intake.handleJournal(plan.text) : await intake.handleApprovalPending(plan.text);
    if (status !== "SUCCESS") throw new Problem("store_unavailable", `the read model did not take dead letter ${id}; try again`);
  }
  await settleRedrive(db, id, deps.clock.nowMs());
}

async function letterOf({ db }: ApiContext, caller: Authenticated, id: string): Promise<DeadLetterItem> {
  const item = await findDeadLetter(db, caller.tenant, isAdmin(caller), id);
  if (item === undefined) throw new Problem("dead_letter_not_found", `there is no dead letter ${id} in tenant ${caller.tenant}`, { hint: "docket dlq list" });
  return item;
}
