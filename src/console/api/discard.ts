/**
 * Owns: discarding dead letters, one or many by filter: they stay readable until retention takes them, and no longer ask for attention. Each
 * has its own rows in the audit, and what somebody else has settled meanwhile stays as it is.
 */
import type { Express, Request } from "express";
import { z } from "zod";
import { BulkDiscardRequest, type BulkDiscardAnswer, type DeadLetterItem } from "../../contracts/api.js";
import { Problem } from "../../contracts/problems.js";
import type { Authenticated } from "../../platform/apikeys.js";
import { discardDeadLetter } from "../read-model/dead-letters.js";
import { countLetters, lettersAfter, placeCursor } from "../read-model/letter-groups.js";
import { readCursor } from "../read-model/page.js";
import { callerWith, isAdmin, pathId, readBody } from "./access.js";
import { audited, changesNothing, type ApiContext } from "./context.js";
import { letterOf } from "./dead-letters.js";

const DiscardBody = z.strictObject({ reason: z.string().min(1).max(2000) });

export function discardRoutes(app: Express, context: ApiContext): void {
  const { deps } = context;

  app.post("/v1/dead-letters/discard", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "operate");
    const request = readBody(req, BulkDiscardRequest);
    if (!request.all && Object.keys(request.filter).length === 0) throw new Problem("bad_request", "a bulk discard without a filter means every dead letter", { hint: "give a filter, or say \"all\": true" });
    if (!request.dryRun && request.reason.trim() === "") throw new Problem("validation_failed", "discarding needs a reason; it is in the audit", { errors: [{ path: "reason", message: "is required here" }] });
    res.json(await discardMany(context, req, { caller, request }));
  });

  app.post("/v1/dead-letters/:id/discard", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "operate");
    const { reason } = readBody(req, DiscardBody);
    const id = pathId(req);
    await discardOne(context, req, { caller, item: await letterOf(context, caller, id), reason, together: false });
    res.json({ deadLetterId: id, state: "discarded" });
  });
}

/** One page. A failure ends it with its problem; what was discarded before stays so, and the same request goes on behind it. */
async function discardMany(context: ApiContext, req: Request, { caller, request }: { caller: Authenticated; request: z.output<typeof BulkDiscardRequest> }): Promise<BulkDiscardAnswer> {
  const scope = { tenant: caller.tenant, orphans: isAdmin(caller) };
  const filter = { ...request.filter, state: "dead" };
  const matched = await countLetters(context.db, scope, filter);
  const page = await lettersAfter(context.db, scope, filter, { after: readCursor(request.cursor)?.[0] ?? 0, limit: request.limit });
  if (request.dryRun) changesNothing(req);
  let discarded = 0;
  for (const { item } of page) {
    if (request.dryRun || await discardOne(context, req, { caller, item, reason: request.reason, together: true })) discarded += 1;
  }
  const last = page.at(-1);
  return { dryRun: request.dryRun, matched, discarded, ...(last === undefined || page.length < request.limit ? {} : { nextCursor: placeCursor(last.place) }) };
}

/** False: somebody else has settled it meanwhile, where that is no fault (`together`). */
async function discardOne(context: ApiContext, req: Request, { caller, item, reason, together }: { caller: Authenticated; item: DeadLetterItem; reason: string; together: boolean }): Promise<boolean> {
  const id = item.letter.deadLetterId;
  return audited(context, req, { caller, action: "dead-letter.discard", target: id, reason, detail: together ? { together, fingerprint: item.fingerprint } : {} }, async () => {
    const done = await discardDeadLetter(context.db, id, context.deps.clock.nowMs());
    if (!done && !together) throw new Problem("version_mismatch", `dead letter ${id} was ${item.state === "dead" ? "settled by somebody else just now" : item.state}`, { hint: `docket dlq show ${id}` });
    return { outcome: done ? "discarded" : "version_mismatch", result: done };
  });
}
