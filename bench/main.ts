/** Owns: one run of `npm run bench`: measure, print, check, and the exit code. */
import { writeFileSync } from "node:fs";
import { checkSessions } from "./checks.js";
import type { Sent } from "./client.js";
import { measureActivation, measureApprovals, measureIdle, type TableResult } from "./long-runs.js";
import { readOptions, type BenchOptions } from "./options.js";
import { costLines, levelLine, LEVEL_HEAD, machineLine, plain } from "./report.js";
import { startRig, type Rig } from "./rig.js";
import { measureTurns } from "./turns.js";

/** Runs what the command line asks for; resolves with the exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  const options = readOptions(argv);
  say(machineLine());
  const rig = await startRig(options);
  // Killed half-way, nothing of the rig may stay behind.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => { void rig.close().finally(() => process.exit(130)); });
  try {
    say(`PostgreSQL ${rig.database.version}, fsync on; ${rig.broker.version}; ${String(options.hosts)} session host(s)`);
    const result = await measured(rig, options);
    // Sessions that were put into the store by hand have no events in our books, and copies no digests of their own.
    const checks = result.sent.length === 0 ? { sessions: 0, events: 0, problems: [] } : await checkSessions(rig, result.sent);
    const problems = [...result.failures, ...checks.problems];
    say(`\nchecked ${String(checks.events)} events in ${String(checks.sessions)} sessions: ${problems.length === 0 ? "nothing lost, doubled or out of order; fold(journal) = state" : `${String(problems.length)} PROBLEMS`}`);
    for (const problem of problems.slice(0, 20)) say(`  ${problem.slice(0, 400)}`);
    if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(plain({ machine: machineLine(), broker: rig.broker.version, options, ...result, sent: undefined, checks: { ...checks, problems } }), null, 2)}\n`);
    return problems.length === 0 ? 0 : 1;
  } finally {
    await rig.close();
  }
}

async function measured(rig: Rig, options: BenchOptions): Promise<{ readonly sent: readonly Sent[]; readonly failures: readonly string[] }> {
  switch (options.mode) {
    case "turns": return await turns(rig, options);
    case "activation": return shown(await measureActivation(rig, options));
    case "approvals": return shown(await measureApprovals(rig, options));
    case "idle": return shown(await measureIdle(rig, options));
  }
}

async function turns(rig: Rig, options: BenchOptions): ReturnType<typeof measureTurns> {
  say(`\n${LEVEL_HEAD}`);
  const result = await measureTurns(rig, options, (level) => { say(levelLine(level)); });
  for (const level of result.levels) say(costLines(level).join("\n"));
  return result;
}

function shown(result: TableResult): TableResult {
  for (const row of result.table) say(Object.entries(row).map(([name, value]) => `${name} ${String(value)}`).join(" · "));
  return result;
}

function say(line: string): void { process.stdout.write(`${line}\n`); }
