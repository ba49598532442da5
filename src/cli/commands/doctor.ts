/** Owns: `docket doctor`: what is wrong with this machine, this configuration, and what runs; each with its fix. */
import { Option, type Command } from "commander";
import { PROFILES, type ProfileName } from "../../launcher/profiles.js";
import type { Check } from "../../launcher/doctor/doctor.js";
import type { CliContext, Runner } from "../context.js";
import { EXIT, type ExitCode } from "../exit.js";
import { plain } from "../output.js";

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
  const checks = await runDoctor({
    root: flags.root ?? io.cwd, ...(flags.dataDir === undefined ? {} : { dataDir: flags.dataDir }), ...(flags.profile === undefined ? {} : { profile: flags.profile }),
    onCheck: (check) => { if (live) io.out(lineOf(check, printer.colors)); },
  });
  const failed = checks.filter((check) => check.status === "fail").length;
  const warned = checks.filter((check) => check.status === "warn").length;
  if (!live) printer.list({ items: checks }, {}, "");
  printer.say(`${String(checks.length)} checks, ${String(failed)} failed, ${String(warned)} warned`);
  return failed > 0 ? EXIT.negative : EXIT.ok;
}

function lineOf(check: Check, c: CliContext["printer"]["colors"]): string {
  const mark = check.status === "ok" ? c.green("ok  ") : check.status === "warn" ? c.yellow("warn") : c.red("FAIL");
  return `${mark}  ${plain(check.name)}: ${plain(check.detail)} ${c.dim(`(${String(check.ms)} ms)`)}\n${check.fix === "" ? "" : `      fix: ${plain(check.fix)}\n`}`;
}
