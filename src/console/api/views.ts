/** Owns: saved views: a name for an address of the pages, each person's own. The address is the view; nothing else is kept. */
import type { Express } from "express";
import { z } from "zod";
import { Problem } from "../../contracts/problems.js";
import { listViews, removeView, saveView } from "../read-model/views.js";
import { callerWith, pathId, readBody } from "./access.js";
import { audited, type ApiContext } from "./context.js";

const MAX_VIEWS = 50;
/** Only an address of the pages: never one that leads elsewhere. */
const ViewBody = z.strictObject({ name: z.string().trim().min(1).max(60), address: z.string().max(1_000).regex(/^\/(sessions|approvals|dead-letters)(\?[^\s#]*)?$/, "expected an address of a list, as /sessions?status=IDLE") });

export function viewRoutes(app: Express, context: ApiContext): void {
  const { db, deps } = context;

  app.get("/v1/views", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    res.json({ items: await listViews(db, caller.tenant, caller.principal.id) });
  });

  app.post("/v1/views", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    const view = readBody(req, ViewBody);
    await audited(context, req, { caller, action: "view.save", target: view.name, reason: "", detail: { address: view.address } }, async () => {
      const known = await listViews(db, caller.tenant, caller.principal.id);
      if (known.length >= MAX_VIEWS && !known.some((one) => one.name === view.name)) throw new Problem("bad_request", `${caller.principal.id} has ${String(MAX_VIEWS)} saved views, and no more are kept`, { hint: "remove one first" });
      await saveView(db, { tenant: caller.tenant, principalId: caller.principal.id, atMs: deps.clock.nowMs() }, view);
      return { outcome: "saved", result: undefined };
    });
    res.status(201).json(view);
  });

  app.delete("/v1/views/:id", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    const name = pathId(req);
    await audited(context, req, { caller, action: "view.remove", target: name, reason: "", detail: {} }, async () => {
      await removeView(db, caller.tenant, caller.principal.id, name);
      return { outcome: "removed", result: undefined };
    });
    res.status(204).end();
  });
}
