/**
 * Owns: the System page's facts and the diagnosis. Each part is asked on its own, so that what is down hides nothing that is up; what other apps are like
 * is what they have reported last.
 */
import type { Express } from "express";
import { diagnose, type Diagnosis, type Facts } from "../diagnose.js";
import type { Part } from "../ports.js";
import { isSilent, listReports, type KnownReport } from "../read-model/app-reports.js";
import { behindOf, projectionOf } from "../read-model/overview.js";
import { liveVersions, symptomsOf } from "../read-model/symptoms.js";
import { callerWith } from "./access.js";
import type { ApiContext } from "./context.js";

const PART_MS = 3_000;
/** A worker claims within milliseconds. */
const CLAIM_MS = 20_000;
const DAY_MS = 86_400_000;

interface PartState { readonly name: string; readonly about: string; readonly ok: boolean; readonly detail: string; readonly tookMs: number }

export function systemRoutes(app: Express, { db, deps, config, projector }: ApiContext): void {
  const startedAtMs = deps.clock.nowMs();
  const { agents, tools, policy } = deps.installed;

  const known = (nowMs: number): Promise<readonly KnownReport[]> => listReports(db, nowMs).catch(() => []);
  const overdueBeforeMs = (nowMs: number): number => nowMs - config.nudge.overdueMs;

  const diagnosed = async (tenant: string, { nowMs, ...facts }: Pick<Facts, "nowMs" | "reports" | "sidecarFault" | "projection">): Promise<Diagnosis[]> => {
    const symptoms = await symptomsOf(db, tenant, { dispatchedBeforeMs: nowMs - CLAIM_MS, expiredAfterMs: nowMs - DAY_MS }).catch(() => undefined);
    return diagnose({ ...facts, nowMs, symptoms, upMs: nowMs - startedAtMs });
  };

  app.get("/v1/diagnosis", async (req, res) => {
    const { tenant } = callerWith(deps.authenticator, req, "read");
    const sidecar = deps.parts.find(({ name }) => name === "sidecar");
    const state = sidecar === undefined ? undefined : await stateOf(sidecar);
    const nowMs = deps.clock.nowMs();
    const projection = await behindOf(db, overdueBeforeMs(nowMs)).catch(() => undefined);
    res.json({ items: await diagnosed(tenant, { nowMs, projection, reports: await known(nowMs), sidecarFault: faultOf(state) }) });
  });

  app.get("/v1/system", async (req, res) => {
    const { tenant } = callerWith(deps.authenticator, req, "read");
    const nowMs = deps.clock.nowMs();
    const readModel: Part = { name: "read model", about: "database behind all lists, dead letters and the audit", check: async () => { await projectionOf(db, nowMs); return "answers"; } };
    const parts = await Promise.all([readModel, ...deps.parts].map(stateOf));
    const reports = await known(nowMs);
    const projection = await projectionOf(db, overdueBeforeMs(nowMs)).catch(() => undefined);
    const sidecar = parts.find(({ name }) => name === "sidecar");
    res.json({
      nowMs, startedAtMs, node: process.version, parts, projection: projection === undefined ? null : { ...projection, lagMs: projector.lagMs() ?? null },
      installed: { agents: agents.length, tools: tools.length, policy: policy.version, rules: policy.rules.length },
      apps: reports.map((one) => ({ ...one.report, receivedAtMs: one.receivedAtMs, silent: isSilent(one, nowMs) })),
      diagnosis: await diagnosed(tenant, { nowMs: deps.clock.nowMs(), projection, reports, sidecarFault: faultOf(sidecar) }),
    });
  });

  app.get("/v1/agents/running", async (req, res) => {
    const { tenant } = callerWith(deps.authenticator, req, "read");
    const nowMs = deps.clock.nowMs();
    const awake = (await known(nowMs)).filter((one) => !isSilent(one, nowMs)).map(({ report }) => report);
    res.json({
      live: await liveVersions(db, tenant),
      hosts: awake.filter(({ app: name }) => name === "sessions").map(({ instance, agents: offered = [], policy: its, actors = 0 }) => ({ instance, agents: offered.map(({ name, version }) => ({ name, version })), policy: its ?? null, actors })),
      workers: awake.filter(({ app: name }) => name === "tools").map(({ instance, tools: offered = [] }) => ({ instance, tools: offered })),
    });
  });
}

function faultOf(state: PartState | undefined): string | undefined { return state?.ok === false ? state.detail : undefined; }

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
