/** Owns: the routes that show what is installed: agents, tools, policy. "Try it" runs the very code that judges calls in a session. */
import type { Express } from "express";
import { z } from "zod";
import { Principal } from "../../contracts/cloudevent.js";
import { Problem } from "../../contracts/problems.js";
import { didYouMean } from "../../contracts/suggest.js";
import { judge, mayAllowSession } from "../../session/core/policy/judge.js";
import { lintPolicy } from "../../session/core/policy/lint.js";
import { sealArguments } from "../../session/core/seal.js";
import { ruleHitsOf } from "../read-model/costs.js";
import { dayOf } from "../read-model/history.js";
import { callerWith, readBody } from "./access.js";
import { changesNothing, type ApiContext } from "./context.js";

/** `args`: JSON text, so that digits are kept. */
const TryBody = z.strictObject({
  tool: z.string().min(1).max(100), args: z.string().max(64 * 1024), agent: z.string().max(64).default(""), session: z.string().max(200).default("try"),
  principal: Principal.partial().default({}), spentUsd: z.number().min(0).default(0), budgetUsd: z.number().min(0).default(1),
});

/** Hits of rules are counted for the last 30 days. */
const HITS_MS = 29 * 86_400_000;

export function installedRoutes(app: Express, { db, deps }: ApiContext): void {
  const { agents, tools, policy } = deps.installed;

  app.get("/v1/agents", (req, res) => {
    callerWith(deps.authenticator, req, "read");
    res.json({ agents, tools });
  });

  app.get("/v1/policy", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    const hits = await ruleHitsOf(db, caller.tenant, dayOf(deps.clock.nowMs()) - HITS_MS);
    res.json({ hits, version: policy.version, rules: policy.rules.map(({ rule, file, line }) => ({ ...rule, file, line })), warnings: lintPolicy(policy, tools) });
  });

  // Changes nothing, so it leaves no row in the audit.
  app.post("/v1/policy/try", (req, res) => {
    changesNothing(req);
    const caller = callerWith(deps.authenticator, req, "read");
    const body = readBody(req, TryBody);
    const manifest = tools.find((tool) => tool.name === body.tool);
    if (manifest === undefined) throw new Problem("not_found", `no tool is named ${body.tool}${didYouMean(body.tool, tools.map((tool) => tool.name))}`, { hint: "GET /v1/agents lists the tools" });
    const sealed = sealArguments(manifest, body.args);
    if (!sealed.ok) throw new Problem("arguments_invalid", sealed.message);
    const principal = { id: body.principal.id ?? caller.principal.id, class: body.principal.class ?? "person", roles: body.principal.roles ?? [] };
    const verdict = judge(policy, manifest, { toolName: manifest.name, argsText: sealed.text, session: { id: body.session, tenant: caller.tenant, agent: body.agent }, principal, budget: { spentUsd: body.spentUsd, budgetUsd: body.budgetUsd } });
    const allowSession = verdict.verdict === "ask" && mayAllowSession(verdict);
    res.json({ ...verdict, allowSession, args: sealed.text, argsDigest: sealed.digest });
  });
}
