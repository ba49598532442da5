/**
 * Owns: seeing that a scheduler has to be started again though it runs (Dapr 1.14). One that stood still for longer than its lease in
 * etcd (a suspended laptop, a frozen container) ends its cron and stays up, healthy by its own word, and refuses every reminder until it
 * is restarted (dapr/dapr#8932): it says so. One that has locked itself up takes reminders and fires none: session hosts say so (canary.ts).
 */
import { SCHEDULER_SILENT } from "../contracts/operations.js";

const REFUSAL = "cron is closed";
const SILENCE = `"code":"${SCHEDULER_SILENT}"`;
/** A new one needs up to 25 s until it takes reminders; what its predecessor still says in between does not count. */
const PATIENCE_MS = 60_000;

/** Gives the function that hears the lines of scheduler and session hosts; it calls `revive` for one that says so, at most once in a while. */
export function deafScheduler(revive: () => void, nowMs: () => number = Date.now): (line: string) => void {
  let revivedAtMs = -Infinity;
  return (line) => {
    if (!(line.includes(REFUSAL) || line.includes(SILENCE)) || nowMs() - revivedAtMs < PATIENCE_MS) return;
    revivedAtMs = nowMs();
    revive();
  };
}
