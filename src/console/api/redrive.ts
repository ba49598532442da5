/**
 * Owns: the routes of redrives: one letter, and many by filter. The same redrive asked for twice is one: a letter's number is
 * claimed first, and a bulk redrive takes letters that are dead only. Every letter has its own rows in the audit.
 */
import type { Express, Request } from "express";
import { z } from "zod";
import { BulkRedriveRequest, type BulkRedriveAnswer, type DeadLetterItem } from "../../contracts/api.js";
import { serializeEnvelope } from "../../contracts/cloudevent.js";
import { Problem } from "../../contracts/problems.js";
import type { Authenticated } from "../../platform/apikeys.js";
import { eventOfRun } from "../event-of-run.js";
import { claimRedrive, settleRedrive } from "../read-model/dead-letters.js";
import { countLetters, lettersAfter, placeCursor } from "../read-model/letter-groups.js";
import { dropRedrive, putRedrive } from "../read-model/redrives.js";
import { heldEvent, planRedrive, type RedrivePlan, type RedriveRequest } from "../redrive.js";
import { readCursor } from "../read-model/page.js";
import { callerWith, isAdmin, pathId, readBody, requireRight } from "./access.js";
import { audited, type ApiContext } from "./context.js";
import { letterOf } from "./dead-letters.js";

/** `redrive`: the number that the caller means, so that a repeated request is the same redrive. `payload`: the edited event. */
const RedriveBody = z.strictObject({
  reason: z.string().min(1).max(2000), dryRun: z.boolean().default(false), payload: z.string().max(512 * 1024).optional(), redrive: z.number().int().min(1).optional(),
});

export function redriveRoutes(app: Express, context: ApiContext): void {
  const { deps } = context;

  app.post("/v1/dead-letters/redrive", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "operate");
    const request = readBody(req, BulkRedriveRequest);
    if (!request.all && Object.keys(request.filter).length === 0) throw new Problem("bad_request", "a bulk redrive without a filter means every dead letter", { hint: "give a filter, or say \"all\": true" });
    res.status(request.dryRun ? 200 : 202).json(await redriveMany(context, req, { caller, request }));
  });

  app.post("/v1/dead-letters/:id/redrive", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "operate");
    const body = readBody(req, RedriveBody);
    if (body.payload !== undefined) requireRight(caller, "decide");
    const item = await letterOf(context, caller, pathId(req));
    const plan = await planFor(context, item, body, caller);
    const shown = { deadLetterId: item.letter.deadLetterId, redrive: plan.redrive, action: plan.action, ...(plan.action === "send" ? { sessionId: plan.sessionId, eventId: plan.command.id } : {}) };
    if (!body.dryRun) await redriveOne(context, req, { caller, item, plan, request: body });
    res.status(body.dryRun ? 200 : 202).json({ ...shown, dryRun: body.dryRun });
  });
}

/** One page. A failure of the way ends it with that problem; what was redriven before stays so, and the same request goes on behind it. */
async function redriveMany(context: ApiContext, req: Request, about: { caller: Authenticated; request: z.output<typeof BulkRedriveRequest> }): Promise<BulkRedriveAnswer> {
  const { caller, request } = about;
  const scope = { tenant: caller.tenant, orphans: isAdmin(caller) };
  const filter = { ...request.filter, state: "dead" };
  const matched = await countLetters(context.db, scope, filter);
  const page = await lettersAfter(context.db, scope, filter, { after: readCursor(request.cursor)?.[0] ?? 0, limit: request.limit });
  const byKind: Record<string, number> = {};
  const skipped: BulkRedriveAnswer["skipped"] = [];
  for (const { item } of page) {
    try {
      const plan = await planFor(context, item, { reason: request.reason }, caller);
      if (!request.dryRun) await redriveOne(context, req, { caller, item, plan, request });
      byKind[item.letter.kind] = (byKind[item.letter.kind] ?? 0) + 1;
    } catch (error) {
      if (!(error instanceof Problem) || error.retryable) throw error;
      skipped.push({ deadLetterId: item.letter.deadLetterId, code: error.code, message: error.message });
    }
  }
  const last = page.at(-1);
  return {
    dryRun: request.dryRun, matched, redriven: page.length - skipped.length, byKind, skipped,
    ...(last === undefined || page.length < request.limit ? {} : { nextCursor: placeCursor(last.place) }),
  };
}

async function planFor({ deps }: ApiContext, item: DeadLetterItem, request: RedriveRequest, caller: Authenticated): Promise<RedrivePlan> {
  const { kind, runId, actorId, sessionId, tenant } = item.letter;
  const elsewhere = kind === "tool_request" && request.payload === undefined && heldEvent(item.letter) === undefined;
  const event = elsewhere && runId !== undefined && actorId !== undefined && sessionId !== undefined && tenant !== undefined ? await eventOfRun(deps.sessions, { tenant, sessionId, actorId, runId }) : undefined;
  return planRedrive(item, { ...request, event }, caller, deps.clock.nowMs());
}

interface Redrive { readonly caller: Authenticated; readonly item: DeadLetterItem; readonly plan: RedrivePlan; readonly request: Pick<RedriveRequest, "reason" | "payload"> }

async function redriveOne(context: ApiContext, req: Request, { caller, item, plan, request }: Redrive): Promise<void> {
  const detail = { redrive: plan.redrive, edited: request.payload !== undefined, fingerprint: item.fingerprint };
  await audited(context, req, { caller, action: "dead-letter.redrive", target: item.letter.deadLetterId, reason: request.reason, detail }, async () => {
    await carryOut(context, item, plan);
    return { outcome: "redriven", result: undefined };
  });
}

/** Claims the number first: two people at once make one redrive. A number that was claimed before is sent again, same id. */
async function carryOut({ db, deps, config, intake }: ApiContext, item: DeadLetterItem, plan: RedrivePlan): Promise<void> {
  const id = item.letter.deadLetterId;
  if (plan.redrive > item.redriveCount && !(await claimRedrive(db, id, plan.redrive))) {
    throw new Problem("version_mismatch", `dead letter ${id} was redriven by somebody else just now`, { hint: `docket dlq show ${id}` });
  }
  if (plan.action === "send") await send({ db, deps, config }, id, plan);
  else {
    const status = plan.kind === "journal" ? await intake.handleJournal(plan.text) : await intake.handleApprovalPending(plan.text);
    if (status !== "SUCCESS") throw new Problem("store_unavailable", `the read model did not take dead letter ${id}; try again`);
  }
  await settleRedrive(db, id, deps.clock.nowMs());
}

/** The row comes first: a crash before the publish, or a sidecar that loses it, is mended by the sweeper. What the broker refuses is not sent later behind the caller's back. */
async function send({ db, deps, config }: Pick<ApiContext, "db" | "deps" | "config">, deadLetterId: string, plan: RedrivePlan & { action: "send" }): Promise<void> {
  const { command, arrived } = plan;
  const row = { command_id: command.id, dead_letter_id: deadLetterId, actor_id: arrived.actorId, event_key: arrived.eventKey, command: serializeEnvelope(command), attempts: 1, due_at: deps.clock.nowMs() + config.redrive.confirmMs };
  await putRedrive(db, row);
  try {
    await deps.tasks.publish(command);
  } catch (error) {
    await dropRedrive(db, command.id);
    throw error;
  }
}
