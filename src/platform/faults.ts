/**
 * Owns: places where a test may end this process, as `kill -9` would, between two steps that must both happen (docs/chaos.md).
 *
 * Inert unless DOCKET_FAULT_FILE names a file: without it `faultPoint` is an empty function. With it, the file says which point
 * is armed, `after-commit:3`: the third time it is passed the file is emptied and the process kills itself. Never set it outside tests.
 */
import { readFileSync, writeFileSync } from "node:fs";

/** Every point, and who passes it. */
export const FAULT_POINTS = {
  "after-inbox-row": "gateway: the inbox row is written, the event is not published",
  "before-commit": "session host: the turn is decided, nothing is written",
  "after-commit": "session host: the turn is written, nothing is published",
  "before-ack": "any app: the delivery is handled, the broker does not know yet",
  "after-claim": "worker: the claim is stored, the tool has not started",
  "after-effect": "worker: the tool has returned, its result is not stored",
  "after-result": "worker: the result is stored, nothing is published",
  "before-decision": "console: the decision is audited and signed, not published",
} as const;
export type FaultPoint = keyof typeof FAULT_POINTS;

/** Gives the function that a process calls at each point. `end` must not return. */
export function faultPointsOf(file: string | undefined, end: () => void): (point: FaultPoint) => void {
  if (file === undefined || file === "") return () => undefined;
  let armed = "";
  let left = 0;
  return (point) => {
    const text = readArmed(file);
    if (text !== armed) {
      armed = text;
      left = Number(/:(\d+)$/.exec(text)?.[1] ?? 1);
    }
    if (armed === "" || armed.replace(/:\d+$/, "") !== point) return;
    left -= 1;
    if (left > 0) return;
    // Emptied first: the process that is started next must not die of the same fault.
    writeFileSync(file, "");
    end();
  };
}

/** Ends this process here, if that was asked for. */
export const faultPoint = faultPointsOf(process.env["DOCKET_FAULT_FILE"], () => { process.kill(process.pid, "SIGKILL"); });

function readArmed(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return "";
  }
}
