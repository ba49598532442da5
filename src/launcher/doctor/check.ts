/** Owns: the shape of one finding of the doctor, and measuring it. */
import { LauncherError, messageOf } from "../errors.js";

export type CheckStatus = "ok" | "warn" | "fail";

/** One finding. `fix` is empty when there is nothing to do. */
export interface Check {
  readonly name: string;
  readonly status: CheckStatus;
  readonly detail: string;
  readonly fix: string;
  readonly ms: number;
}

/** What a check finds; its time is measured around it. */
export type Finding = Omit<Check, "name" | "ms">;

export interface CheckTask {
  readonly name: string;
  readonly run: () => Promise<Finding> | Finding;
}

/** Nothing to do. */
export function ok(detail: string): Finding {
  return { status: "ok", detail, fix: "" };
}

/** Works, but not well. */
export function warn(detail: string, fix: string): Finding {
  return { status: "warn", detail, fix };
}

/** Does not work. */
export function fail(detail: string, fix: string): Finding {
  return { status: "fail", detail, fix };
}

/** Runs one check; whatever it throws is a finding too. */
export async function measure(task: CheckTask): Promise<Check> {
  const started = performance.now();
  const finding = await Promise.resolve()
    .then(task.run)
    .catch((error: unknown) => (error instanceof LauncherError ? fail(error.message, error.hint) : fail(messageOf(error), "This check itself failed: please report it with this text.")));
  return { name: task.name, ...finding, ms: Math.round(performance.now() - started) };
}
