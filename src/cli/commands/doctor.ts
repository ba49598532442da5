/** Owns: `docket doctor`: what is wrong with this machine, this configuration, and what runs; each with its fix. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Option, type Command } from "commander";
import { PROFILES, type ProfileName } from "../../launcher/profiles.js";
import type { Check } from "../../launcher/doctor/doctor.js";
import { loadConfig } from "../../platform/config.js";
import { compilePolicy } from "../../session/core/policy/compile.js";
import type { CliContext, Runner } from "../context.js";
import { EXIT, type ExitCode } from "../exit.js";
import { counted, plain } from "../output.js";

interface DoctorFlags { readonly root?: string; readonly dataDir?: string; readonly profile?: ProfileName }

export function doctorCommand(program: Command, run: Runner): void {
  program.command("doctor").description("Check machine, configuration and what runs; each finding with its fix. Exit code 8 for findings")
    .option("--root <DIR>", "the checkout (default: this folder)").option("--data-dir <DIR>", "the data folder (default: .docket)").addOption(new Option("--profile <NAME>", "the profile to check").choices(PROFILES))
    .addHelpText("after", "\nExamples:\n  docket doctor\n  docket doctor --profile local -o json")
    .action(run(doctor));
}

async function doctor({ io, printer }: CliContext, flags: DoctorFlags): Promise<ExitCode> {
  // Loaded when asked for: the launcher is much code, and no other command needs it.
  const { runDoctor } = await import("../../launcher/doctor/doctor.js");
  const live = printer.format === "table";
  const root = flags.root ?? io.cwd;
  const own = [configurationCheck(io, root), policyCheck(io, root)];
  if (live) for (const check of own) io.out(lineOf(check, printer.colors));
  const checks = own.concat(await runDoctor({
    root, ...(flags.dataDir === undefined ? {} : { dataDir: flags.dataDir }), ...(flags.profile === undefined ? {} : { profile: flags.profile }),
    onCheck: (check) => { if (live) io.out(lineOf(check, printer.colors)); },
  }));
  const failed = checks.filter((check) => check.status === "fail").length;
  const warned = checks.filter((check) => check.status === "warn").length;
  if (!live) printer.list({ items: checks }, {}, "");
  printer.say(`${counted(checks.length, "check")}, ${String(failed)} failed, ${String(warned)} warned`);
  return failed > 0 ? EXIT.negative : EXIT.ok;
}

/** The settings that every app reads at its start, from environment and file. */
export function configurationCheck(io: Pick<CliContext["io"], "env">, root: string): Check {
  return checked("configuration", "docs/configuration.md lists every setting", () => {
    const file = join(root, "docket.config.yaml");
    loadConfig(io.env, io.env["DOCKET_CONFIG"] ?? file);
    return existsSync(file) ? "environment and docket.config.yaml are usable" : "environment is usable, no docket.config.yaml";
  });
}

/** The policy that the session hosts compile at their start. */
export function policyCheck(io: Pick<CliContext["io"], "env">, root: string): Check {
  return checked("policy", "docket policy lint says the same with all warnings; docs/policies.md explains every key", () => {
    const folder = resolve(root, io.env["DOCKET_POLICIES_DIR"] ?? "policies");
    const files = readdirSync(folder).filter((name) => /\.ya?ml$/.test(name)).sort();
    const policy = compilePolicy(files.map((file) => ({ file, text: readFileSync(join(folder, file), "utf8") })));
    return `${counted(files.length, "file")}, ${counted(policy.rules.length, "rule")}, version ${policy.version}`;
  });
}

function checked(name: string, fix: string, look: () => string): Check {
  const started = performance.now();
  const ms = (): number => Math.round(performance.now() - started);
  try {
    return { name, status: "ok", detail: look(), fix: "", ms: ms() };
  } catch (error) {
    return { name, status: "fail", detail: (error instanceof Error ? error.message : String(error)).replace(/\s*\n\s*/g, "; "), fix, ms: ms() };
  }
}

function lineOf(check: Check, c: CliContext["printer"]["colors"]): string {
  const mark = check.status === "ok" ? c.green("ok  ") : check.status === "warn" ? c.yellow("warn") : c.red("FAIL");
  return `${mark}  ${plain(check.name)}: ${plain(check.detail)} ${c.dim(`(${String(check.ms)} ms)`)}\n${check.fix === "" ? "" : `      fix: ${plain(check.fix)}\n`}`;
}
