/** Owns: the options of `npm run bench`. Help ends the process with 0, a mistake with 2. */
import { Command, InvalidArgumentError, Option } from "commander";

export const MODES = ["turns", "scale", "activation", "approvals", "idle"] as const;
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
  readonly load: number;
  readonly lengths: readonly number[];
  readonly repeat: number;
  /** Undefined: as many as the mode has by default. */
  readonly count?: number;
  readonly syscalls: boolean;
  readonly profile: string | undefined;
  readonly json: string | undefined;
  readonly keep: boolean;
}

export interface ConsoleBenchOptions { readonly sessions: number; readonly modelCalls: number; readonly database: "sqlite" | "postgres"; readonly browser: boolean }

const WRONG_OPTION = 2;

/** Reads the command line; prints help or a mistake and ends the process where that is all there is to do. */
export function readOptions(argv: readonly string[]): BenchOptions {
  const command = commandNamed("npm run bench --")
    .description("Measures Docket on this machine: the real stack, PostgreSQL with fsync and a durable broker, all guarantees on.\nWhat each figure means: bench/README.md. Afterwards the sessions of the run are checked; a problem makes the exit code 1.")
    .argument("[mode]", `what to measure: ${MODES.join(", ")}, console`, modeOf, "turns")
    .addOption(new Option("--broker <name>", "durable broker").choices(BROKERS).default("nats"))
    .option("--sessions <list>", "turns: sessions that work at once, one level each", listOf(1), [1, 16, 128])
    .option("--delay <list>", "turns: milliseconds that the model takes, each with every level", listOf(0), [0])
    .option("--seconds <n>", "turns, scale: length of a measurement", atLeast(1), 10)
    .option("--warmup <n>", "turns, scale: seconds of the same load before it", atLeast(0), 5)
    .option("--hosts <n>", "session hosts; scale goes from 1 to 3 and back", atLeast(1), 1)
    .option("--load <n>", "scale: sessions that work at once", atLeast(1), 48)
    .option("--lengths <list>", "activation: events in the session that is taken up", listOf(1), [10, 100, 1000, 10_000])
    .option("--repeat <n>", "activation: sessions of each length", atLeast(1), 20)
    .option("--count <n>", "approvals: parked sessions (default 500); idle: parked sessions (default 100000)", atLeast(1))
    .option("--syscalls", "turns: count fsyncs of the broker with perf (needs root)", false)
    .option("--profile <dir>", "turns: write CPU profiles of the apps, and of daprd where perf is there, into this folder")
    .option("--json <file>", "write the result as JSON")
    .option("--keep", "leave the data folder and its logs", false)
    .helpOption("-h, --help", "show this");
  command.addHelpText("after", "\nOne mode has options of its own: npm run bench -- console --help (the console's lists over a large read model)");
  command.parse([...argv], { from: "user" });
  const [mode = "turns"] = command.processedArgs as Mode[];
  return { ...command.opts<Omit<BenchOptions, "mode">>(), mode };
}

/** The same for what comes after `console`. */
export function readConsoleOptions(argv: readonly string[]): ConsoleBenchOptions {
  const command = commandNamed("npm run bench -- console")
    .description("Fills a read model through the projector and measures each list over HTTP and the first rows in Chromium. Slower than promised makes the exit code 1.")
    .option("--sessions <n>", "sessions in the read model", atLeast(1), 100_000)
    .option("--model-calls <n>", "model calls of each", atLeast(1), 6)
    .addOption(new Option("--database <name>", "where the read model is").choices(["sqlite", "postgres"]).default("sqlite"))
    .option("--no-browser", "leave Chromium out")
    .helpOption("-h, --help", "show this");
  return command.parse([...argv], { from: "user" }).opts<ConsoleBenchOptions>();
}

function commandNamed(name: string): Command {
  return new Command(name).allowExcessArguments(false).exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : WRONG_OPTION));
}

function modeOf(text: string): Mode {
  const mode = MODES.find((known) => known === text);
  if (mode === undefined) throw new InvalidArgumentError(`Known modes: ${MODES.join(", ")}, console (as the first word).`);
  return mode;
}

function atLeast(least: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === "" || !Number.isInteger(value) || value < least) throw new InvalidArgumentError(`Expected a whole number from ${String(least)} on.`);
    return value;
  };
}

function listOf(least: number): (text: string) => number[] { return (text) => text.split(",").map(atLeast(least)); }
