/** Owns: the options of `npm run bench`. */
import { Command, InvalidArgumentError, Option } from "commander";

export const MODES = ["turns", "activation", "approvals", "idle"] as const;
export type Mode = (typeof MODES)[number];
export const BROKERS = ["nats", "rabbitmq"] as const;
export type BrokerName = (typeof BROKERS)[number];

export interface BenchOptions {
  readonly mode: Mode;
  readonly broker: BrokerName;
  readonly sessions: readonly number[];
  readonly delay: readonly number[];
  readonly seconds: number;
  readonly warmup: number;
  readonly hosts: number;
  readonly lengths: readonly number[];
  readonly repeat: number;
  readonly count: number;
  readonly syscalls: boolean;
  readonly profile: string | undefined;
  readonly json: string | undefined;
  readonly keep: boolean;
}

/** Reads the command line; prints help or a mistake and ends the process where that is all there is to do. */
export function readOptions(argv: readonly string[]): BenchOptions {
  const command = new Command("npm run bench --")
    .description("Measures Docket on this machine: the real stack, PostgreSQL with fsync and a durable broker, all guarantees on.\nWhat each figure means: bench/README.md. Afterwards the sessions of the run are checked; a problem makes the exit code 1.")
    .argument("[mode]", `what to measure: ${MODES.join(", ")}`, modeOf, "turns")
    .addOption(new Option("--broker <name>", "durable broker").choices(BROKERS).default("nats"))
    .option("--sessions <list>", "turns: sessions that work at once, one level each", numbers, [1, 16, 128])
    .option("--delay <list>", "turns: milliseconds that the model takes, each with every level", numbers, [0])
    .option("--seconds <n>", "turns: length of a measurement", number, 10)
    .option("--warmup <n>", "turns: seconds of the same load before it", number, 5)
    .option("--hosts <n>", "session hosts", number, 1)
    .option("--lengths <list>", "activation: events in the session that is taken up", numbers, [10, 100, 1000, 10_000])
    .option("--repeat <n>", "activation: sessions of each length", number, 20)
    .option("--count <n>", "approvals: parked sessions (default 500); idle: parked sessions (default 100000)", number, 0)
    .option("--syscalls", "turns: count fsyncs of the broker with perf (needs root)", false)
    .option("--profile <dir>", "turns: write CPU profiles of the apps, and of daprd where perf is there, into this folder")
    .option("--json <file>", "write the result as JSON")
    .option("--keep", "leave the data folder and its logs", false)
    .helpOption("-h, --help", "show this");
  command.parse([...argv], { from: "user" });
  const [mode = "turns"] = command.processedArgs as Mode[];
  return { ...command.opts<Omit<BenchOptions, "mode">>(), mode };
}

function modeOf(text: string): Mode {
  const mode = MODES.find((known) => known === text);
  if (mode === undefined) throw new InvalidArgumentError(`Known modes: ${MODES.join(", ")}.`);
  return mode;
}

function number(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0) throw new InvalidArgumentError("Expected a whole number.");
  return value;
}

function numbers(text: string): number[] { return text.split(",").map(number); }
