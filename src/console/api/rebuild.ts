/**
 * Owns: the route that has the read model made anew from the journals. What is folded from them is dropped, and each journal is read again by
 * the projector, which goes on where it was after a restart. Sessions that this database has never heard of can be named.
 */
import type { Express } from "express";
import { z } from "zod";
import { SessionId } from "../../contracts/ids.js";
import { projectionOf } from "../read-model/overview.js";
import { forgetHistory } from "../read-model/schema.js";
import { putHeads } from "../read-model/heads.js";
import { putSummaries } from "../read-model/sessions.js";
import { callerWith, readBody } from "./access.js";
import { audited, type ApiContext } from "./context.js";
import { actorOf } from "./sessions.js";

/** With `sessions` these alone are taken in; without, everything is read again. */
const RebuildBody = z.strictObject({ reason: z.string().min(1).max(2_000), sessions: z.array(SessionId).min(1).max(1_000).optional() });

export function rebuildRoutes(app: Express, context: ApiContext): void {
  const { db, deps, config } = context;

  app.post("/v1/read-model/rebuild", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "administer");
    const { reason, sessions } = readBody(req, RebuildBody);
    const missing: string[] = [];
    await audited(context, req, { caller, action: "read-model.rebuild", target: sessions === undefined ? "everything" : `${String(sessions.length)} sessions`, reason, detail: sessions === undefined ? {} : { sessions } }, async () => {
      if (sessions === undefined) await db.transaction().execute((trx) => forgetHistory(trx));
      for (const sessionId of sessions ?? []) {
        const summary = (await deps.sessions.readSession(actorOf(caller, sessionId)))?.summary;
        if (summary === undefined) { missing.push(sessionId); continue; }
        await putSummaries(db, [summary]);
        await putHeads(db, [{ actor_id: summary.actorId, head_rev: 0, max_rev: summary.rev }]);
      }
      return { outcome: "begun", result: undefined };
    });
    res.status(202).json({ missing, projection: await projectionOf(db, deps.clock.nowMs() - config.nudge.overdueMs) });
  });
}
