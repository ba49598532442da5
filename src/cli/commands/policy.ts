/** Owns: `docket policy`: checking policy files and trying calls on them, with the code that runs in production. Needs no server. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { Option, type Command } from "commander";
import { z } from "zod";
import { Principal } from "../../contracts/cloudevent.js";
import { canonicalize } from "../../contracts/json.js";
import { Problem } from "../../contracts/problems.js";
import { Risk, ToolEffects, ToolManifest } from "../../contracts/tools.js";
import { compilePolicy, type PolicyText } from "../../session/core/policy/compile.js";
import { judge } from "../../session/core/policy/judge.js";
import { lintPolicy } from "../../session/core/policy/lint.js";
import { textOrFile, type CliContext, type Runner } from "../context.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import type { CliIo } from "../io.js";
import { counted, fields } from "../output.js";
import { mayDecide, policyServerCommands } from "./policy-server.js";

const MANIFESTS = join("dist", "agents", "manifests.json");
const DEFAULT_FOLDER = "policies";
const VERDICTS = ["allow", "ask", "deny"];

interface TestOptions {
  readonly tool: string; readonly args: string; readonly file: string[]; readonly tools?: string; readonly agent: string; readonly session: string; readonly tenant: string;
  readonly effects?: ToolEffects; readonly risk?: Risk; readonly principal: string; readonly class: Principal["class"]; readonly roles: string; readonly spent: string; readonly budget: string; readonly expect?: string;
}

export function policyCommands(program: Command, run: Runner): void {
  const policy = program.command("policy").description("Policies: the rules and what they decided, check the files, try a call");
  policyServerCommands(policy, run);

  policy.command("lint [FILE...]").description("Check policy files; all faults at once. Exit code 6 for faults, 8 for warnings with --strict")
    .option("--tools <FILE>", "tool manifests to check names against (default: the built ones)").option("--strict", "warnings count")
    .addHelpText("after", "\nExamples:\n  docket policy lint\n  docket policy lint policies/finance.yaml --strict")
    .action(run((context: CliContext, files: string[], options: { tools?: string; strict?: boolean }) => Promise.resolve(lint(context, files, options))));

  policy.command("test").description("Say what policy decides on one call, and why")
    .requiredOption("--tool <NAME>", "the tool").option("--args <JSON>", "its arguments, or @FILE", "{}").option("--file <FILE>", "policy files or folders", (file: string, all: string[]) => [...all, file], [])
    .option("--tools <FILE>", "tool manifests (default: the built ones)").addOption(new Option("--effects <EFFECTS>", "instead of the manifest's").choices(ToolEffects.options)).addOption(new Option("--risk <RISK>", "instead of the manifest's").choices(Risk.options))
    .option("--agent <NAME>", "the agent that calls", "").option("--session <ID>", "the session", "test").option("--tenant <NAME>", "the tenant", "default")
    .option("--principal <ID>", "who caused the run", "tester").addOption(new Option("--class <CLASS>", "of what kind that principal is").choices(Principal.shape.class.options).default("person")).option("--roles <ROLES>", "that principal's roles, with commas", "")
    .option("--spent <USD>", "spent so far", "0").option("--budget <USD>", "the run's budget", "1").addOption(new Option("--expect <VERDICT>", "exit code 8 for another verdict").choices(VERDICTS))
    .addHelpText("after", "\nExamples:\n  docket policy test --tool issue_refund --args '{\"amountCents\": 60000}'\n  docket policy test --tool http_request --args @call.json --expect ask")
    .action(run((context: CliContext, options: TestOptions) => Promise.resolve(test(context, options))));
}

function lint(context: CliContext, files: readonly string[], options: { tools?: string; strict?: boolean }): ExitCode {
  const policy = compiled(context.io, files);
  const warnings = lintPolicy(policy, manifestsOf(context.io, options.tools));
  context.printer.one({ version: policy.version, rules: policy.rules.length, warnings }, () =>
    [...warnings.map((w) => `${w.file}:${String(w.line)} ${w.rule}: warning: ${w.message}\n`), `${policy.version}: ${counted(policy.rules.length, "rule")}, ${counted(warnings.length, "warning")}\n`].join(""));
  return warnings.length > 0 && options.strict === true ? EXIT.negative : EXIT.ok;
}

function test(context: CliContext, options: TestOptions): ExitCode {
  const known = manifestsOf(context.io, options.tools).find((tool) => tool.name === options.tool);
  if (known === undefined) context.printer.say(`no manifest of ${options.tool} is known; effects once and risk medium are assumed unless you say otherwise`);
  const manifest = { ...(known ?? strangerManifest(options.tool)), ...(options.effects === undefined ? {} : { effects: options.effects }), ...(options.risk === undefined ? {} : { risk: options.risk }) };
  const roles = options.roles.split(",").filter((role) => role !== "");
  const verdict = judge(compiled(context.io, options.file), manifest, {
    toolName: options.tool, argsText: argsOf(context.io, options.args), session: { id: options.session, tenant: options.tenant, agent: options.agent },
    principal: { id: options.principal, class: options.class, roles }, budget: { spentUsd: dollars(options.spent, "--spent"), budgetUsd: dollars(options.budget, "--budget") },
  });
  context.printer.one(verdict, () => fields([
    ["verdict", verdict.verdict], ["rule", verdict.rule], ["reason", verdict.reason], ["risk", verdict.risk], ["policy", verdict.policyVersion],
    ...(verdict.verdict === "ask" ? [
      ["may decide", mayDecide(verdict.approvers)] as const,
      ["answers", verdict.allowed.join(", ")] as const, ["expiry", verdict.expiresInMs === undefined ? "the agent's default" : `after ${String(verdict.expiresInMs / 1000)} s: ${verdict.onExpiry}`] as const,
    ] : []),
  ]));
  return options.expect === undefined || options.expect === verdict.verdict ? EXIT.ok : EXIT.negative;
}

function compiled(io: CliIo, files: readonly string[]): ReturnType<typeof compilePolicy> {
  try {
    return compilePolicy(policyTexts(io, files.length === 0 ? [DEFAULT_FOLDER] : files));
  } catch (error) {
    if (error instanceof Problem) throw new CliError(EXIT.invalid, error.code, error.message, "docs/policies.md has every key", error.toDocument());
    throw error;
  }
}

function policyTexts(io: CliIo, paths: readonly string[]): PolicyText[] {
  return paths.flatMap((path) => {
    const at = resolve(io.cwd, path);
    if (!existsSync(at)) throw new CliError(EXIT.notFound, "not_found", `${at}: there is no such file or folder`);
    const files = statSync(at).isDirectory() ? readdirSync(at).filter((name) => /\.ya?ml$/.test(name)).sort().map((name) => join(at, name)) : [at];
    return files.map((file) => ({ file: relative(io.cwd, file), text: readFileSync(file, "utf8") }));
  });
}

/** Known manifests; none where nothing is built and no file is named. */
function manifestsOf(io: CliIo, file: string | undefined): ToolManifest[] {
  const at = resolve(io.cwd, file ?? MANIFESTS);
  if (!existsSync(at)) {
    if (file === undefined) return [];
    throw new CliError(EXIT.notFound, "not_found", `${at}: there is no such file`);
  }
  const Manifests = z.array(ToolManifest);
  const parsed = z.union([Manifests, z.object({ tools: Manifests }).transform((whole) => whole.tools)]).safeParse(JSON.parse(readFileSync(at, "utf8")));
  if (!parsed.success) throw new CliError(EXIT.invalid, "manifests_invalid", `${at} holds no tool manifests`, "npm run build writes them");
  return parsed.data;
}

/** What is assumed of a tool that nobody knows: the worst that is usual. */
function strangerManifest(name: string): ToolManifest {
  return { name, description: name, inputSchema: { type: "object" }, effects: "once", critical: false, reconcilable: false, timeoutMs: 30_000, outputCapBytes: 65_536, maxTries: 1, risk: "medium", allowedDecisions: ["approve", "modify", "reject"] };
}

function argsOf(io: CliIo, text: string): string {
  try {
    return canonicalize(textOrFile(io, text));
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(EXIT.invalid, "arguments_invalid", `--args is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function dollars(text: string, flag: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value) || value < 0) throw new CliError(EXIT.usage, "usage", `${flag}: got ${JSON.stringify(text)}, expected dollars`);
  return value;
}
