/** Owns: the route of costs. */
import type { Express } from "express";
import { z } from "zod";
import { costsOf } from "../read-model/costs.js";
import { dayOf } from "../read-model/history.js";
import { callerWith, readQuery } from "./access.js";
import type { ApiContext } from "./context.js";

const DAY_MS = 86_400_000;
const COST_QUERY = { days: z.coerce.number().int().min(1).max(400).default(30) };

export function costRoutes(app: Express, { db, deps }: ApiContext): void {
  app.get("/v1/costs", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    const { days } = readQuery(req, COST_QUERY);
    const fromMs = dayOf(deps.clock.nowMs()) - (days - 1) * DAY_MS;
    res.json({ fromMs, ...await costsOf(db, caller.tenant, fromMs) });
  });
}
