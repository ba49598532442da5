/** Owns: the routes that show dead letters. */
import type { Express } from "express";
import { z } from "zod";
import type { DeadLetterItem } from "../../contracts/api.js";
import { DeadLetterKind } from "../../contracts/messages.js";
import { Problem } from "../../contracts/problems.js";
import type { Authenticated } from "../../platform/apikeys.js";
import { findDeadLetter, listDeadLetters } from "../read-model/dead-letters.js";
import { groupsOf } from "../read-model/letter-groups.js";
import { callerWith, isAdmin, PAGE_QUERY, pageRequest, pathId, readQuery } from "./access.js";
import type { ApiContext } from "./context.js";

const FILTER_QUERY = {
  state: z.enum(["dead", "redriven", "discarded"]).optional(), kind: DeadLetterKind.optional(), session: z.string().max(200).optional(),
  reason: z.string().max(200).optional(), fingerprint: z.string().max(40).optional(),
};
const GROUP_QUERY = { ...FILTER_QUERY, sinceMs: z.coerce.number().int().min(0).optional(), untilMs: z.coerce.number().int().min(0).optional() };

export function deadLetterRoutes(app: Express, context: ApiContext): void {
  const { db, deps } = context;

  app.get("/v1/dead-letters", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    const query = readQuery(req, { ...PAGE_QUERY, ...FILTER_QUERY });
    res.json(await listDeadLetters(db, { ...query, ...pageRequest(query), tenant: caller.tenant, orphans: isAdmin(caller), sessionId: query.session }));
  });

  app.get("/v1/dead-letters/groups", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    res.json({ items: await groupsOf(db, { tenant: caller.tenant, orphans: isAdmin(caller) }, readQuery(req, GROUP_QUERY)) });
  });

  app.get("/v1/dead-letters/:id", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    res.json(await letterOf(context, caller, pathId(req)));
  });
}

/** One letter that the caller may see. Throws Problem `dead_letter_not_found`. */
export async function letterOf({ db }: ApiContext, caller: Authenticated, id: string): Promise<DeadLetterItem> {
  const item = await findDeadLetter(db, caller.tenant, isAdmin(caller), id);
  if (item === undefined) throw new Problem("dead_letter_not_found", `there is no dead letter ${id} in tenant ${caller.tenant}`, { hint: "docket dlq list" });
  return item;
}
