/** Owns: one run of `npm run bench`: measure, print, check, and the exit code. */
import { writeFileSync } from "node:fs";
import { benchConsole } from "./console.js";
import { checkSessions } from "./checks.js";
import type { Sent } from "./client.js";
import { measureActivation, measureApprovals, measureIdle, type TableResult } from "./long-runs.js";
import { readConsoleOptions, readOptions, type BenchOptions } from "./options.js";
import { costLines, levelLine, LEVEL_HEAD, machineLine, plain, verdictLine } from "./report.js";
import { startRig, type Rig } from "./rig.js";
import { measureScale, SCALED_TO } from "./scale.js";
import { storedLines, storedNow, type Stored } from "./stored.js";
import { measureTurns } from "./turns.js";

/** Runs what the command line asks for; resolves with the exit code. `prepare` builds what is missing, once the command line is known to make sense. */
export async function main(argv: readonly string[], prepare: (needs: { readonly runtime: boolean }) => void): Promise<number> {
  if (argv[0] === "console") return benchConsole(readConsoleOptions(argv.slice(1)), prepare);
  const asked = readOptions(argv);
  const options = asked.mode === "scale" ? { ...asked, hosts: SCALED_TO } : asked;
  prepare({ runtime: true });
  say(machineLine());
  const rig = await startRig(options);
  // Killed half-way, nothing of the rig may stay behind.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => { void rig.close().finally(() => process.exit(130)); });
  try {
    say(`PostgreSQL ${rig.database.version}, fsync on; ${rig.broker.version}; ${String(options.hosts)} session host(s)`);
    const result = await measured(rig, options);
    // Sessions that were put into the store by hand have no events in our books, and copies no digests of their own.
    const checks = result.sent.length === 0 ? { sessions: 0, events: 0, problems: [] } : await checkSessions(rig, result.sent, { callsMayRepeat: options.mode === "scale" });
    const problems = [...result.failures, ...checks.problems];
    say(`\n${verdictLine(checks, problems.length)}`);
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
    case "scale": return shown(await measureScale(rig, options));
    case "activation": return shown(await measureActivation(rig, options));
    case "approvals": return shown(await measureApprovals(rig, options));
    case "idle": return shown(await measureIdle(rig, options));
  }
}

async function turns(rig: Rig, options: BenchOptions): Promise<Awaited<ReturnType<typeof measureTurns>> & { readonly stored: readonly Stored[] }> {
  say(`\n${LEVEL_HEAD}`);
  const result = await measureTurns(rig, options, (level) => { say(levelLine(level)); });
  for (const level of result.levels) say(costLines(level).join("\n"));
  const stored = await storedNow(rig);
  say(storedLines(stored, result.sent.length, new Set(result.sent.map(({ sessionId }) => sessionId)).size).join("\n"));
  return { ...result, stored };
}

function shown(result: TableResult): TableResult {
  for (const row of result.table) say(Object.entries(row).map(([name, value]) => `${name} ${String(value)}`).join(" · "));
  return result;
}

function say(line: string): void { process.stdout.write(`${line}\n`); }
