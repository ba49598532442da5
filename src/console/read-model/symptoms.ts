/** Owns: what the lists say of trouble: calls that no worker takes, approvals that ran out, sessions by version. */
import { sql } from "kysely";
import type { ReadModel } from "./database.js";

/** Tool calls that were sent out and that no worker has claimed. */
export interface Unclaimed { readonly tool: string; readonly calls: number; readonly oldestAtMs: number }
export interface Symptoms { readonly unclaimed: readonly Unclaimed[]; readonly expired: number; readonly latestExpiredAtMs: number | null }

/** `tenant`: whose. Calls are looked for in sessions that run one. */
export async function symptomsOf(db: ReadModel, tenant: string, since: { readonly dispatchedBeforeMs: number; readonly expiredAfterMs: number }): Promise<Symptoms> {
  const unclaimed = await db.selectFrom("sessions").innerJoin("tool_calls", "tool_calls.actor_id", "sessions.actor_id").where("sessions.tenant", "=", tenant).where("sessions.status", "=", "EXECUTING_TOOL")
    .where("tool_calls.dispatched_at", "<", since.dispatchedBeforeMs).where("tool_calls.claimed_at", "is", null).where("tool_calls.ended_at", "is", null).groupBy("tool_calls.tool")
    .select((eb) => ["tool_calls.tool as tool", eb.fn.countAll<number>().as("calls"), eb.fn.min("tool_calls.dispatched_at").as("oldest")]).orderBy("calls", "desc").limit(20).execute();
  const expired = await db.selectFrom("approvals").where("tenant", "=", tenant).where("closed_as", "=", "expired").whereRef("closed_pos", ">", "opened_pos").where("closed_at", ">", since.expiredAfterMs)
    .select((eb) => [eb.fn.countAll<number>().as("n"), eb.fn.max("closed_at").as("latest")]).executeTakeFirstOrThrow();
  return { unclaimed: unclaimed.map(({ tool, calls, oldest }) => ({ tool: tool ?? "", calls, oldestAtMs: oldest ?? 0 })), expired: expired.n, latestExpiredAtMs: expired.latest };
}

export interface LiveVersion { readonly agent: string; readonly version: string; readonly sessions: number; readonly busy: number }

/** Which versions sessions run that are neither closed nor deleted. `busy`: those with a run. */
export async function liveVersions(db: ReadModel, tenant: string): Promise<LiveVersion[]> {
  return db.selectFrom("sessions").where("tenant", "=", tenant).where("status", "not in", ["CLOSED", "DELETED"]).groupBy(["agent", "agent_version"]).orderBy("agent").orderBy("agent_version").limit(500)
    .select((eb) => ["agent", "agent_version as version", eb.fn.countAll<number>().as("sessions"), sql<number>`count(*) filter (where status != 'IDLE')`.as("busy")]).execute();
}
