/** Owns: `npm run chaos` as a program: options, interruption, verdict, exit code. */
import { writeFileSync } from "node:fs";
import { CATALOG } from "./catalog.js";
import { HELP, OptionError, parseOptions, type ChaosOptions } from "./options.js";
import { faultsOf, planOf, type ChaosPlan } from "./plan.js";
import { render, reportOf } from "./report.js";
import { runPlan, type ChaosResult } from "./run.js";
import { missingServers } from "./servers.js";
import { World } from "./world.js";

const INTERRUPTED = 130;

const say = (line: string): void => { process.stdout.write(`${line}\n`); };

/** Resolves with the exit code. `prepare` builds what is missing, once the options are known to make sense and a run is wanted. */
export async function main(args: readonly string[], prepare: () => void): Promise<number> {
  let options: ChaosOptions;
  try {
    options = parseOptions(args, CATALOG.map((fault) => fault.name));
  } catch (error) {
    if (!(error instanceof OptionError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 2;
  }
  if (options.show === "help") { say(HELP); return 0; }
  if (options.show === "list") { for (const fault of CATALOG) say(`${fault.name}${fault.profile === undefined ? "" : `   (--profile ${fault.profile})`}`); return 0; }
  if (faultsOf(options.profile, options.only).length === 0) { process.stderr.write(`none of the faults of --only exists with --profile ${options.profile}\n`); return 2; }
  say(`chaos: seed ${String(options.seed)}, ${lengthOf(options)}, profile ${options.profile}`);
  const plan = planOf(options);
  if (options.show === "plan") { showPlan(plan); return 0; }
  const missing = options.profile === "production" ? missingServers() : undefined;
  if (missing !== undefined) { process.stderr.write(`--profile production: ${missing}\n`); return 2; }
  prepare();
  return run(options, plan);
}

async function run(options: ChaosOptions, planned: ChaosPlan): Promise<number> {
  const interrupt = new AbortController();
  const interrupted = new Promise<undefined>((resolve) => { interrupt.signal.addEventListener("abort", () => { resolve(undefined); }, { once: true }); });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => { say("stopping"); interrupt.abort(new Error(`ended by ${signal}`)); });
  const needs = (action: string): boolean => planned.rounds.some((round) => round.fault.action.do === action);
  let world: World;
  try {
    world = await World.start({ profile: options.profile, keep: options.keep, clocks: needs("clock"), disk: needs("disk"), signal: interrupt.signal, say });
  } catch (error) {
    if (interrupt.signal.aborted) return INTERRUPTED;
    throw error;
  }
  try {
    const plan = withoutDisk(planned, needs("disk") ? world.noDisk : undefined);
    say(`data in ${world.dataDir}`);
    const running = runPlan(world, plan, { say, stopped: () => interrupt.signal.aborted });
    running.catch(() => undefined);
    const result = await Promise.race([running, interrupted]);
    if (result === undefined) return INTERRUPTED;
    const code = judge(options, plan, result);
    if (code !== 0) {
      world.keep = true;
      say(`what it left is kept for inspection: ${world.dataDir}`);
    }
    return code;
  } finally {
    await world.close();
  }
}

function judge(options: ChaosOptions, plan: ChaosPlan, { evidence, breaches }: ChaosResult): number {
  const command = `npm run chaos -- --seed ${String(options.seed)} ${lengthOf(options)} --profile ${options.profile}${options.only.length === 0 ? "" : ` --only ${options.only.join(",")}`}`;
  const report = reportOf(evidence, breaches, { command, seed: options.seed, profile: options.profile, skipped: plan.skipped });
  say(`\n${command}\n\n${render(report)}`);
  if (options.report !== undefined) writeFileSync(options.report, `${JSON.stringify(report, null, 2)}\n`);
  return report.ok ? 0 : 1;
}

function lengthOf({ minutes, rounds, inFlight }: ChaosOptions): string {
  return `${rounds === undefined ? `--minutes ${String(minutes)}` : `--rounds ${String(rounds)}`}${inFlight === undefined ? "" : ` --in-flight ${String(inFlight)}`}`;
}

/** What this machine cannot do is left out, and said. */
function withoutDisk(plan: ChaosPlan, reason: string | undefined): ChaosPlan {
  if (reason === undefined) return plan;
  say(`disk:state is left out: ${reason}`);
  return { ...plan, rounds: plan.rounds.filter((round) => round.fault.action.do !== "disk"), skipped: [...plan.skipped, "disk:state"] };
}

function showPlan({ rounds, skipped }: ChaosPlan): void {
  for (const { round, fault, afterEvents, dice, sessions } of rounds) {
    say(`${String(round).padStart(3)}  ${fault.name.padEnd(28)} after ${String(afterEvents).padStart(2)} events, dice ${dice.toFixed(3)}, ${String(sessions.length)} sessions, ${String(sessions.reduce((sum, session) => sum + session.events.length, 0))} events`);
  }
  if (skipped.length > 0) say(`not reached in this time: ${skipped.join(", ")}`);
}
