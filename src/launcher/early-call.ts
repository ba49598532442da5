/**
 * Owns: seeing that a sidecar died of a call that came too early. Where a sidecar comes back under its old address, others still call
 * actors there; a call that arrives before its actors are up ends it with a nil pointer (Dapr 1.14, `(*api).CallActor`). It is
 * started again, as an orchestrator does with any container.
 */
const PANIC = "invalid memory address or nil pointer dereference";
const CULPRIT = /\(\*api\)\.CallActor(Reminder)?\(/;
/** A panic's text with its one stack. */
const LINES = 80;
/** More deaths than this within a minute have another cause. */
const MAX_DEATHS = 20;

/** Gives the function that is told of a sidecar's last lines when it died; true where it should be started again. */
export function earlyCalls(nowMs: () => number = Date.now): (lastLines: readonly string[]) => boolean {
  let deaths: number[] = [];
  return (lastLines) => {
    const lines = lastLines.slice(-LINES);
    if (!lines.some((line) => line.includes(PANIC)) || !lines.some((line) => CULPRIT.test(line))) return false;
    deaths = [...deaths.filter((atMs) => nowMs() - atMs < 60_000), nowMs()];
    return deaths.length <= MAX_DEATHS;
  };
}
