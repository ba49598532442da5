/** Owns: what the log is told of a commit: whose lines come from now on, and how a run ended. */
import { logsAbout } from "../../platform/log-context.js";
import type { Logger } from "../../platform/log.js";
import type { TurnOutcome } from "./turn.js";

export function logCommit(logger: Logger, { before, after, entry }: TurnOutcome): void {
  if (entry === undefined || after.status === "NEW") return;
  const { actorId, tenant, sessionId } = after;
  const run = "run" in after ? after.run : "run" in before ? before.run : undefined;
  if (run !== undefined) logsAbout([actorId, run.runId], { tenant, sessionId, runId: run.runId });
  for (const event of entry.events) {
    if (event.type !== "RunEnded") continue;
    const ms = run?.runId === event.runId ? entry.atMs - run.startedAtMs : undefined;
    logger.info({ actorId, sessionId, runId: event.runId, outcome: event.outcome, code: event.code, ms }, "a run ended");
  }
}
