/** Owns: the console's gauges: what its lists say of the whole installation, read when somebody looks. All tenants together. */
import { sql } from "kysely";
import { SESSION_STATUSES } from "../contracts/journal.js";
import { DeadLetterKind } from "../contracts/messages.js";
import type { Clock } from "../platform/clock.js";
import { watch } from "../platform/telemetry/metrics.js";
import type { Projector } from "./intake/projector.js";
import type { ReadModel } from "./read-model/database.js";
import { letterCounts } from "./read-model/letter-groups.js";
import { projectionOf } from "./read-model/overview.js";

const EXPIRING_MS = 3_600_000;
/** A lag that nothing has followed for so long is that of what came late once: the lists have caught up. */
const LAG_COUNTS_MS = 60_000;
const total = sql<number>`count(*)`;

/** `overdueMs`: how long past its due time a session counts. */
export function watchConsole(db: ReadModel, { projector, clock, overdueMs }: { readonly projector: Pick<Projector, "lagMs" | "tookAtMs" | "heldSinceMs">; readonly clock: Clock; readonly overdueMs: number }): void {
  const projection = () => projectionOf(db, clock.nowMs() - overdueMs);
  const openApprovals = () => db.selectFrom("approvals").select(total.as("n")).where("pending", "is not", null).whereRef("closed_pos", "<=", "opened_pos");
  const lagMs = (): number => {
    const heldSinceMs = projector.heldSinceMs();
    if (heldSinceMs !== undefined) return Math.max(0, clock.nowMs() - heldSinceMs);
    return clock.nowMs() - (projector.tookAtMs() ?? 0) > LAG_COUNTS_MS ? 0 : (projector.lagMs() ?? 0);
  };
  watch("docket.projector.lag.seconds", () => [{ value: lagMs() / 1000 }]);
  watch("docket.projector.entries.missing", async () => [{ value: (await projection()).entriesMissing }]);
  watch("docket.sessions.overdue", async () => [{ value: (await projection()).overdue }]);
  watch("docket.sessions", async () => {
    const counts = new Map((await db.selectFrom("sessions").select(["status", total.as("n")]).groupBy("status").execute()).map(({ status, n }) => [status, n]));
    return SESSION_STATUSES.map((status) => ({ value: counts.get(status) ?? 0, labels: { status } }));
  });
  watch("docket.approvals.waiting", async () => [{ value: (await openApprovals().executeTakeFirstOrThrow()).n }]);
  watch("docket.approvals.expiring", async () => [{ value: (await openApprovals().where("sort_at", "<", clock.nowMs() + EXPIRING_MS).executeTakeFirstOrThrow()).n }]);
  watch("docket.dead.letters.open", async () => {
    const counts = new Map<string, number>();
    for (const { kind, state, count } of await letterCounts(db)) if (state === "dead") counts.set(kind, (counts.get(kind) ?? 0) + count);
    return DeadLetterKind.options.map((kind) => ({ value: counts.get(kind) ?? 0, labels: { kind } }));
  });
}
