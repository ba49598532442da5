/** Owns: the command tree and how a command ends: its exit code, and for failures one line what, one line hint, and a code. */
import { Command, CommanderError, Option } from "commander";
import { errorFields } from "../platform/log.js";
import { agentCommands } from "./commands/agents.js";
import { approvalCommands } from "./commands/approval.js";
import { auditCommands } from "./commands/audit.js";
import { backupCommand } from "./commands/backup.js";
import { completionCommands } from "./commands/completion.js";
import { costCommand } from "./commands/costs.js";
import { dlqCommands } from "./commands/dlq.js";
import { doctorCommand } from "./commands/doctor.js";
import { initCommand } from "./commands/init.js";
import { keyCommands } from "./commands/key.js";
import { listsCommands } from "./commands/lists.js";
import { policyCommands } from "./commands/policy.js";
import { sessionCommands } from "./commands/session.js";
import { systemCommands } from "./commands/system.js";
import { viewCommands } from "./commands/views.js";
import { consoleUrlOf } from "./connection.js";
import { contextOf, type Runner } from "./context.js";
import { CliError, EXIT, type ExitCode } from "./exit.js";
import type { CliIo } from "./io.js";
import { FORMATS, visible } from "./output.js";
import { pageFor } from "./pages.js";
import { versionOf } from "./version.js";

/** Runs one command line (without node and script). Never throws. */
export async function runCli(argv: readonly string[], io: CliIo): Promise<ExitCode> {
  let exitCode: ExitCode = EXIT.ok;
  const chosen: { command?: Command } = {};
  const runner: Runner = (work) => async (...given) => {
    exitCode = await work(contextOf(io, chosen.command ?? program), ...given);
  };
  const program = buildProgram(io, runner).hook("preAction", (_program, command) => { chosen.command = command; });
  try {
    await program.parseAsync([...argv], { from: "user" });
    return exitCode;
  } catch (error) {
    return endWith(error, { io, argv, program, command: chosen.command });
  }
}

/** The whole tree; the documentation test walks it. */
export function buildProgram(io: CliIo, runner: Runner): Command {
  const program = new Command("docket").description("Operate durable agents: sessions, approvals, dead letters, policies").version(versionOf(), "-V, --version", "print the version of this docket")
    .addOption(new Option("-o, --output <FORMAT>", "how data is printed").choices(FORMATS).default("table"))
    .addOption(new Option("--color <WHEN>", "colours (also NO_COLOR)").choices(["auto", "always", "never"]).default("auto"))
    .option("--gateway <URL>", "the gateway (or DOCKET_GATEWAY_URL, or what `npm run dev` wrote down)").option("--console <URL>", "the console (or DOCKET_CONSOLE_URL, or what `npm run dev` wrote down)")
    .option("--api-key <KEY>", "better: DOCKET_API_KEY, or what `npm run dev` wrote down").option("--timeout <SECONDS>", "for a request (default 30), or for all of a wait (default: no limit)").option("--quiet", "data and errors only")
    .showSuggestionAfterError(true)
    .addHelpText("after", "\nExamples:\n  docket session list\n  docket approval list\n\nExit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict, 5 not allowed, 6 invalid, 7 unreachable,\n8 ended badly, 9 dead-lettered, 124 timeout, 130 interrupted. All of it: docs/cli.md");
  sessionCommands(program, runner);
  approvalCommands(program, runner);
  dlqCommands(program, runner);
  policyCommands(program, runner);
  agentCommands(program, runner);
  costCommand(program, runner);
  auditCommands(program, runner);
  keyCommands(program, runner);
  listsCommands(program, runner);
  systemCommands(program, runner);
  viewCommands(program, runner);
  backupCommand(program, runner);
  doctorCommand(program, runner);
  initCommand(program, runner);
  completionCommands(program, runner);
  everyCommand(program, (command) => {
    command.exitOverride().configureOutput({ writeOut: (text) => io.out(text), writeErr: (text) => io.err(text), getOutHasColors: () => false, getErrHasColors: () => false });
    if (command !== program && command.commands.length === 0) command.addHelpText("after", "\nOptions for every command: docket --help");
  });
  return program;
}

export function everyCommand(command: Command, visit: (command: Command) => void): void {
  visit(command);
  for (const child of command.commands) everyCommand(child, visit);
}

interface Ended { readonly io: CliIo; readonly argv: readonly string[]; readonly program: Command; /** Undefined where the arguments were not understood. */ readonly command: Command | undefined }

function endWith(error: unknown, ended: Ended): ExitCode {
  const { io, argv } = ended;
  // Help that was asked for is no failure.
  if (error instanceof CommanderError && error.exitCode === 0) return EXIT.ok;
  if (io.interrupted.aborted) {
    io.err("interrupted\n");
    return EXIT.interrupted;
  }
  const failure = failureFor(error);
  const page = linkFor(failure, ended);
  // Commander has said itself what is wrong, with the name that was probably meant.
  if (!(error instanceof CommanderError)) io.err(`error: ${visible(failure.message)}\n${failure.hint === undefined ? "" : `hint:  ${visible(failure.hint)}\n`}`);
  io.err(`code:  ${failure.code}\n${page === undefined ? "" : `page:  ${page}\n`}`);
  if (wantsJson(argv)) io.out(`${JSON.stringify({ ...(failure.document ?? { code: failure.code, detail: failure.message, ...(failure.hint === undefined ? {} : { hint: failure.hint }) }), ...(page === undefined ? {} : { page }) })}\n`);
  return failure.exitCode;
}

function failureFor(error: unknown): CliError {
  if (error instanceof CliError) return error;
  if (error instanceof CommanderError) return new CliError(EXIT.usage, "usage", error.message.replace(/^error: /, ""));
  return new CliError(EXIT.failed, "internal", `the command failed: ${errorFields(error).error}`, "this is a bug in the CLI; please report it");
}

/** The page of the console that shows what the failed command is about; undefined where it is not known where the console is. */
function linkFor(failure: CliError, { io, argv, program, command }: Ended): string | undefined {
  const words = command === undefined ? argv.slice(argv.findIndex((word) => program.commands.some((known) => known.name() === word))) : pathOf(command);
  const given: unknown = command?.processedArgs[0];
  const [id, ...more] = Array.isArray(given) ? given as unknown[] : [given];
  try {
    const base = consoleUrlOf(io, (command ?? program).optsWithGlobals());
    return `${base}${pageFor({ words, id: typeof id === "string" && more.length === 0 ? id : undefined, failure })}`;
  } catch {
    return undefined; // the address itself is what is wrong
  }
}

/** The words that name a command, without `docket`. */
function pathOf(command: Command): string[] { return command.parent === null ? [] : [...pathOf(command.parent), command.name()]; }

function wantsJson(argv: readonly string[]): boolean {
  return argv.some((arg, i) => /^(-o|--output)=?jsonl?$/.test(arg) || ((arg === "-o" || arg === "--output") && /^jsonl?$/.test(argv[i + 1] ?? "")) || /^-ojsonl?$/.test(arg));
}
