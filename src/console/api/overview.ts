/** Owns: counts for the navigation. */
import type { Express } from "express";
import { overviewOf } from "../read-model/overview.js";
import { callerWith, isAdmin } from "./access.js";
import type { ApiContext } from "./context.js";

export function overviewRoutes(app: Express, { db, deps }: ApiContext): void {
  app.get("/v1/overview", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    res.json(await overviewOf(db, caller.tenant, isAdmin(caller)));
  });
}
