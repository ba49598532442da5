/** Owns: the command line of `npm run chaos`. */
import { parseArgs } from "node:util";
import { didYouMean } from "../../src/contracts/suggest.js";

export const PROFILES = ["embedded", "production"] as const;
export type ChaosProfile = (typeof PROFILES)[number];

export interface ChaosOptions {
  readonly minutes: number;
  /** So many rounds, whatever the minutes. */
  readonly rounds: number | undefined;
  /** Strike only while so many of the round's events are sent and not ended; bursts are as big as that needs. */
  readonly inFlight: number | undefined;
  readonly seed: number;
  readonly profile: ChaosProfile;
  readonly only: readonly string[];
  readonly show: "run" | "plan" | "list" | "help";
  /** File for the JSON report. */
  readonly report: string | undefined;
  readonly keep: boolean;
}

export const HELP = `npm run chaos -- [options]    Breaks a running Docket in every way it knows and checks that nothing is lost, doubled or out of order.

  --minutes <n>      how long faults go on (default 20; starting, coming to rest and checking come on top)
  --rounds <n>       so many faults, instead of minutes
  --in-flight <n>    strike only while at least n events are in flight: sent and not ended (1 to 200)
  --seed <n>         the whole plan follows from it: faults, their order, their moments, the work (default: a new one, printed)
  --profile <name>   embedded: NATS JetStream and SQLite (default); production: PostgreSQL and RabbitMQ, servers of its own
  --only <faults>    only these, comma-separated; a beginning is enough: kill, freeze:worker, boundary:host
  --list             the faults, one a line
  --plan             what this seed would do
  --report <file>    also write the result as JSON
  --keep             leave the data folder (stores, logs) for inspection; after a breach it is left anyway
  --help

Exit code: 0 all invariants held and every fault met work; 1 a breach; 2 a wrong option; 130 interrupted.`;

export class OptionError extends Error {}

/** Throws OptionError. `faults` are the known names. */
export function parseOptions(args: readonly string[], faults: readonly string[]): ChaosOptions {
  const values = read(args);
  const profile = PROFILES.find((name) => name === (values.profile ?? "embedded"));
  if (profile === undefined) throw new OptionError(`--profile is "${values.profile ?? ""}", expected ${PROFILES.join(" or ")}`);
  const only = (values.only ?? "").split(",").map((name) => name.trim()).filter((name) => name !== "");
  for (const name of only) {
    if (!faults.some((fault) => fault.startsWith(name))) throw new OptionError(`--only names "${name}", and no fault begins so${didYouMean(name, faults)}; npm run chaos -- --list`);
  }
  return {
    minutes: numberOf("--minutes", values.minutes ?? "20", 0.1, 24 * 60),
    seed: Math.floor(numberOf("--seed", values.seed ?? String(Date.now() % 1_000_000), 0, 2 ** 31)),
    rounds: values.rounds === undefined ? undefined : Math.floor(numberOf("--rounds", values.rounds, 1, 10_000)),
    inFlight: values["in-flight"] === undefined ? undefined : Math.floor(numberOf("--in-flight", values["in-flight"], 1, 200)),
    profile, only, report: values.report, keep: values.keep ?? false,
    show: values.help === true ? "help" : values.list === true ? "list" : values.plan === true ? "plan" : "run",
  };
}

function read(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        minutes: { type: "string" }, rounds: { type: "string" }, "in-flight": { type: "string" }, seed: { type: "string" }, profile: { type: "string" }, only: { type: "string" }, report: { type: "string" },
        list: { type: "boolean" }, plan: { type: "boolean" }, keep: { type: "boolean" }, help: { type: "boolean", short: "h" },
      },
    }).values;
  } catch (error) {
    throw new OptionError(`${error instanceof Error ? error.message : String(error)}; npm run chaos -- --help lists the options`);
  }
}

function numberOf(flag: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (text.trim() === "" || !(value >= least && value <= most)) throw new OptionError(`${flag} is "${text}", expected a number from ${String(least)} to ${String(most)}`);
  return value;
}
