/** Owns: one run of `npm run bench`: measure, print, check, and the exit code. */
import { writeFileSync } from "node:fs";
import { checkSessions } from "./checks.js";
import { readOptions, type BenchOptions } from "./options.js";
import { costLines, levelLine, LEVEL_HEAD, machineLine, plain } from "./report.js";
import { startRig } from "./rig.js";
import { measureTurns } from "./turns.js";

/** Runs what the command line asks for; resolves with the exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  const options = readOptions(argv);
  say(machineLine());
  const rig = await startRig(options);
  try {
    say(`PostgreSQL ${rig.database.version}, fsync on; ${rig.broker.version}; ${String(options.hosts)} session host(s)`);
    const result = await measured(rig, options);
    const checks = await checkSessions(rig, result.sent);
    const problems = [...result.failures, ...checks.problems];
    say(`\nchecked ${String(checks.events)} events in ${String(checks.sessions)} sessions: ${problems.length === 0 ? "nothing lost, doubled or out of order; fold(journal) = state" : `${String(problems.length)} PROBLEMS`}`);
    for (const problem of problems.slice(0, 20)) say(`  ${problem.slice(0, 400)}`);
    if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(plain({ machine: machineLine(), broker: rig.broker.version, options, ...result, sent: undefined, checks: { ...checks, problems } }), null, 2)}\n`);
    return problems.length === 0 ? 0 : 1;
  } finally {
    await rig.close();
  }
}

async function measured(rig: Awaited<ReturnType<typeof startRig>>, options: BenchOptions): ReturnType<typeof measureTurns> {
  say(`\n${LEVEL_HEAD}`);
  const result = await measureTurns(rig, options, (level) => { say(levelLine(level)); });
  for (const level of result.levels) say(costLines(level).join("\n"));
  return result;
}

function say(line: string): void { process.stdout.write(`${line}\n`); }
