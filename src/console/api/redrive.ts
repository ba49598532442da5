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
import type { ReadModel } from "../read-model/database.js";
import { AS_IT_WAS, contentOf, dropRedrive, noteMade, putRedrive, usedOtherwise } from "../read-model/redrives.js";
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
    if (body.dryRun) await refuseOther(context.db, { item, plan, request: body });
    else await redriveOne(context, req, { caller, item, plan, request: body });
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
      if (request.dryRun) await refuseOther(context.db, { item, plan, request });
      else await redriveOne(context, req, { caller, item, plan, request });
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
    await carryOut(context, { caller, item, plan, request });
    return { outcome: "redriven", result: undefined };
  });
}

/** Claims the number first: two people at once make one redrive. A number that was claimed before is sent again, same id and same content. */
async function carryOut(context: ApiContext, redrive: Redrive): Promise<void> {
  const { db, deps, intake } = context;
  const { item, plan } = redrive;
  const id = item.letter.deadLetterId;
  const isFirst = await takeNumber(context, redrive);
  if (plan.action === "send") await send(context, plan, isFirst);
  else {
    const status = plan.kind === "journal" ? await intake.handleJournal(plan.text) : await intake.handleApprovalPending(plan.text);
    if (status !== "SUCCESS") throw new Problem("store_unavailable", `the read model did not take dead letter ${id}; try again`);
  }
  await settleRedrive(db, id, deps.clock.nowMs());
}

/**
 * In one transaction the number, what it stands for, and the command's row: a crash before the publish, or a sidecar that loses it, is mended by the sweeper.
 * False where the row of an earlier one is still there.
 */
async function takeNumber({ db, deps, config }: Pick<ApiContext, "db" | "deps" | "config">, { caller, item, plan, request }: Redrive): Promise<boolean> {
  const id = item.letter.deadLetterId;
  const nowMs = deps.clock.nowMs();
  return await db.transaction().execute(async (trx) => {
    await refuseOther(trx, { item, plan, request });
    // Where somebody else took it since the letter was read, it was for the very same: then this is a repetition.
    if (plan.redrive > item.redriveCount) await claimRedrive(trx, id, plan.redrive);
    await noteMade(trx, { dead_letter_id: id, redrive: plan.redrive, content: contentOf(request.payload), principal_id: caller.principal.id, at: nowMs });
    if (plan.action !== "send") return true;
    const { command, arrived } = plan;
    return await putRedrive(trx, { command_id: command.id, dead_letter_id: id, actor_id: arrived.actorId, event_key: arrived.eventKey, command: serializeEnvelope(command), attempts: 1, due_at: nowMs + config.redrive.confirmMs });
  });
}

/** The session takes a number once: another content under the same one would be answered with success and do nothing. */
async function refuseOther(db: ReadModel, { item: { letter, redriveCount }, plan, request }: Pick<Redrive, "item" | "plan" | "request">): Promise<void> {
  const id = letter.deadLetterId;
  const used = await usedOtherwise(db, { id, redrive: plan.redrive, content: contentOf(request.payload) });
  if (used === undefined) return;
  const { made } = used;
  const sent = made === undefined ? "was made before" : `was made by ${made.principal_id} at ${new Date(made.at).toISOString()}, ${made.content === AS_IT_WAS ? "with the payload of the letter" : "with an edited payload"}`;
  const asked = request.payload === undefined ? "the payload of the letter" : made === undefined || made.content === AS_IT_WAS ? "an edited payload" : "another edited payload";
  const next = Math.max(redriveCount, plan.redrive) + 1;
  throw new Problem("already_redriven", `redrive ${String(plan.redrive)} of dead letter ${id} ${sent}; ${asked} under the same number would have no effect, and nothing was sent`,
    { hint: `if it is wanted besides, send it as redrive ${String(next)} (docket dlq redrive ${id} --redrive ${String(next)}); docket dlq show ${id} shows the letter` });
}

/** What the broker refuses is not sent later behind the caller's back; an earlier one, which it took, is watched on. */
async function send({ db, deps }: Pick<ApiContext, "db" | "deps">, { command }: RedrivePlan & { action: "send" }, isFirst: boolean): Promise<void> {
  try {
    await deps.tasks.publish(command);
  } catch (error) {
    if (isFirst) await dropRedrive(db, command.id);
    throw error;
  }
}
