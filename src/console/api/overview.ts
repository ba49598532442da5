/** Owns: counts for the navigation, and the System page's facts. Each part is asked on its own, so that what is down hides nothing that is up. */
import type { Express } from "express";
import { overviewOf, projectionOf } from "../read-model/overview.js";
import type { Part } from "../ports.js";
import { callerWith, isAdmin } from "./access.js";
import type { ApiContext } from "./context.js";

const PART_MS = 3_000;

interface PartState { readonly name: string; readonly about: string; readonly ok: boolean; readonly detail: string; readonly tookMs: number }

export function overviewRoutes(app: Express, { db, deps, config }: ApiContext): void {
  const startedAtMs = deps.clock.nowMs();

  app.get("/v1/overview", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    res.json(await overviewOf(db, caller.tenant, isAdmin(caller)));
  });

  app.get("/v1/system", async (req, res) => {
    callerWith(deps.authenticator, req, "read");
    const nowMs = deps.clock.nowMs();
    const readModel: Part = { name: "read model", about: "SQLite file behind all lists, dead letters and the audit", check: async () => { await projectionOf(db, nowMs); return "answers"; } };
    const parts = await Promise.all([readModel, ...deps.parts].map(stateOf));
    const projection = await projectionOf(db, nowMs - config.nudge.overdueMs).catch(() => null);
    res.json({
      nowMs, startedAtMs, node: process.version, parts, projection,
      installed: { agents: deps.installed.agents.length, tools: deps.installed.tools.length, policy: deps.installed.policy.version, rules: deps.installed.policy.rules.length },
    });
  });
}

async function stateOf(part: Part): Promise<PartState> {
  const { name, about } = part;
  const started = performance.now();
  const took = (): number => Math.round(performance.now() - started);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => { timer = setTimeout(() => { reject(new Error(`did not answer within ${String(PART_MS)} ms`)); }, PART_MS); });
  try {
    return { name, about, ok: true, detail: await Promise.race([part.check(), late]), tookMs: took() };
  } catch (error) {
    return { name, about, ok: false, detail: error instanceof Error ? error.message : String(error), tookMs: took() };
  } finally {
    clearTimeout(timer);
  }
}
