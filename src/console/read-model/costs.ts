/** Owns: what models cost, by day, agent, model and session; and how often each rule decided. */
import type { ReadModel, SessionRow } from "./database.js";

const TOP_SESSIONS = 20;

export interface CostSum { readonly calls: number; readonly unpriced: number; readonly inputTokens: number; readonly outputTokens: number; readonly usd: number }
export interface Costs {
  readonly days: readonly (CostSum & { readonly day: number })[];
  readonly agents: readonly (CostSum & { readonly agent: string })[];
  readonly models: readonly (CostSum & { readonly model: string })[];
  /** The most expensive ones there are, over their whole life. */
  readonly sessions: readonly { readonly sessionId: string; readonly agent: string; readonly usd: number; readonly updatedAtMs: number }[];
}

/** `fromMs`: the first millisecond of a day. */
export async function costsOf(db: ReadModel, tenant: string, fromMs: number): Promise<Costs> {
  const by = async <K extends "day" | "agent" | "model">(column: K) => {
    const rows = await db.selectFrom("cost_days").where("tenant", "=", tenant).where("day", ">=", fromMs).groupBy(column)
      .select((eb) => [column, ...(["calls", "unpriced", "input_tokens", "output_tokens", "usd"] as const).map((name) => eb.fn.sum<number>(name).as(name))]).execute();
    return rows as unknown as ({ readonly [N in K]: N extends "day" ? number : string } & { calls: number; unpriced: number; input_tokens: number; output_tokens: number; usd: number })[];
  };
  const sum = (row: { calls: number; unpriced: number; input_tokens: number; output_tokens: number; usd: number }): CostSum => ({ calls: row.calls, unpriced: row.unpriced, inputTokens: row.input_tokens, outputTokens: row.output_tokens, usd: row.usd });
  const [days, agents, models] = [await by("day"), await by("agent"), await by("model")];
  const sessions = await db.selectFrom("sessions").select(["session_id", "agent", "cost_usd", "updated_at"]).where("tenant", "=", tenant).where("cost_usd", ">", 0).where("status", "!=", "DELETED").orderBy("cost_usd", "desc").limit(TOP_SESSIONS).execute();
  const dearest = <T extends CostSum>(rows: readonly T[]): T[] => [...rows].sort((a, b) => b.usd - a.usd || b.inputTokens - a.inputTokens);
  return {
    days: days.map((row) => ({ day: row.day, ...sum(row) })).sort((a, b) => a.day - b.day),
    agents: dearest(agents.map((row) => ({ agent: row.agent, ...sum(row) }))), models: dearest(models.map((row) => ({ model: row.model, ...sum(row) }))),
    sessions: sessions.map((row: Pick<SessionRow, "session_id" | "agent" | "cost_usd" | "updated_at">) => ({ sessionId: row.session_id, agent: row.agent, usd: row.cost_usd, updatedAtMs: row.updated_at })),
  };
}

export interface RuleHits { readonly rule: string; readonly verdict: string; readonly hits: number; readonly lastDay: number }

/** Calls that a rule decided, since a day. */
export async function ruleHitsOf(db: ReadModel, tenant: string, fromMs: number): Promise<RuleHits[]> {
  return db.selectFrom("rule_days").where("tenant", "=", tenant).where("day", ">=", fromMs).groupBy(["rule", "verdict"])
    .select((eb) => ["rule", "verdict", eb.fn.sum<number>("hits").as("hits"), eb.fn.max("day").as("lastDay")]).orderBy("rule").orderBy("verdict").execute();
}
