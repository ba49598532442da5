/** Owns: discarding a dead letter: it stays readable until retention takes it, and no longer asks for attention. */
import type { Express } from "express";
import { z } from "zod";
import { Problem } from "../../contracts/problems.js";
import { discardDeadLetter } from "../read-model/dead-letters.js";
import { callerWith, pathId, readBody } from "./access.js";
import { audited, type ApiContext } from "./context.js";
import { letterOf } from "./dead-letters.js";

const DiscardBody = z.strictObject({ reason: z.string().min(1).max(2000) });

export function discardRoutes(app: Express, context: ApiContext): void {
  const { db, deps } = context;

  app.post("/v1/dead-letters/:id/discard", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "operate");
    const { reason } = readBody(req, DiscardBody);
    const id = pathId(req);
    const item = await letterOf(context, caller, id);
    await audited(context, req, { caller, action: "dead-letter.discard", target: id, reason, detail: {} }, async () => {
      if (!(await discardDeadLetter(db, id, deps.clock.nowMs()))) throw new Problem("version_mismatch", `dead letter ${id} was ${item.state === "dead" ? "settled by somebody else just now" : item.state}`, { hint: `docket dlq show ${id}` });
      return { outcome: "discarded", result: undefined };
    });
    res.json({ deadLetterId: id, state: "discarded" });
  });
}
