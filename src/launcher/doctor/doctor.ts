/** Owns: what `docket doctor` looks at, in the order a newcomer meets the problems. The command around it is in src/cli. */
import { join, resolve } from "node:path";
import type { ProfileName } from "../profiles.js";
import { measure, type Check } from "./check.js";
import { configurationChecks } from "./configuration.js";
import { machineChecks } from "./machine.js";
import { runningChecks } from "./running.js";

export type { Check, CheckStatus } from "./check.js";

export interface DoctorOptions {
  /** The checkout; default the current folder. */
  readonly root?: string;
  readonly dataDir?: string;
  readonly profile?: ProfileName;
  readonly runFile?: string;
  /** Called as each check ends, for a live display. */
  readonly onCheck?: (check: Check) => void;
}

/** Runs every check, one after another; never throws. */
export async function runDoctor(options: DoctorOptions = {}): Promise<Check[]> {
  const root = resolve(options.root ?? process.cwd());
  const dataDir = resolve(root, options.dataDir ?? process.env["DOCKET_DATA_DIR"] ?? ".docket");
  const profile = options.profile ?? "embedded";
  const runFile = options.runFile ?? join(root, "dapr.yaml");
  const tasks = [...machineChecks(root, dataDir, profile), ...configurationChecks(root, profile, runFile), ...runningChecks(dataDir, runFile)];
  const checks: Check[] = [];
  for (const task of tasks) {
    const check = await measure(task);
    options.onCheck?.(check);
    checks.push(check);
  }
  return checks;
}
