/** Owns: `docket session journal`, `state` and `export`: what the console reads from a session's whole journal, whether a gateway runs or not. */
import type { Command } from "commander";
import { z } from "zod";
import { JournalPage } from "../../contracts/api.js";
import { stringifyLossless } from "../../contracts/json.js";
import { queryOf, segment, type CliContext, type Runner } from "../context.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import { fields } from "../output.js";
import { savable, saveAnswer, type SaveOptions } from "../save.js";
import { tell } from "../story.js";

const StateAt = z.looseObject({ rev: z.number(), state: z.looseObject({ status: z.string() }) });

export function historyCommands(session: Command, run: Runner): void {
  session.command("journal <ID>").description("Print a session's journal as a story, from the console (tail follows it, from the gateway)")
    .option("--after <REV>", "begin after this revision", "0").option("--limit <N>", "how many entries", "100")
    .addHelpText("after", "\nExamples:\n  docket session journal ord-1001\n  docket session journal ord-1001 --after 40 -o jsonl")
    .action(run(journal));

  session.command("state <ID>").description("Show a session's state at a revision, folded from its journal")
    .option("--rev <REV>", "the revision (default: the newest)")
    .addHelpText("after", "\nExample:\n  docket session state ord-1001 --rev 7")
    .action(run(state));

  savable(session.command("export <ID>").description("Take a copy of a session's journal, an entry a line"))
    .addHelpText("after", "\nExample:\n  docket session export ord-1001 --out ord-1001.jsonl")
    .action(run(async (context: CliContext, id: string, options: SaveOptions) => {
      const file = await saveAnswer(context, `/v1/sessions/${segment(id)}/export`, options);
      if (file !== undefined) context.printer.say(`written to ${file}`);
      return EXIT.ok;
    }));
}

async function journal({ io, console: api, printer }: CliContext, id: string, options: { after: string; limit: string }): Promise<ExitCode> {
  const page = await api.get(`/v1/sessions/${segment(id)}/journal${queryOf({ after: options.after, limit: options.limit })}`, JournalPage);
  if (printer.format === "json") printer.one(page, () => "");
  else for (const entry of page.entries) io.out(printer.format === "jsonl" ? `${JSON.stringify(entry)}\n` : tell(entry, printer.colors));
  if (page.fromRev !== undefined && page.fromRev > Number(options.after) + 1) printer.say(`entries before ${String(page.fromRev)} are no longer kept`);
  const last = page.entries.at(-1)?.rev;
  if (last !== undefined && last < page.headRev) printer.say(`more: --after ${String(last)} (its newest is ${String(page.headRev)})`);
  return EXIT.ok;
}

async function state({ console: api, printer }: CliContext, id: string, options: { rev?: string }): Promise<ExitCode> {
  if (options.rev !== undefined && !/^[1-9]\d{0,14}$/.test(options.rev)) throw new CliError(EXIT.usage, "usage", `--rev: got ${options.rev}, expected a revision`);
  const rev = options.rev ?? String((await api.get(`/v1/sessions/${segment(id)}/journal${queryOf({ limit: "1" })}`, JournalPage)).headRev);
  const answer = await api.get(`/v1/sessions/${segment(id)}/state${queryOf({ rev })}`, StateAt);
  printer.one(answer, () => fields([["session", id], ["revision", String(answer.rev)], ...Object.entries(answer.state).map(([name, value]) => [name, typeof value === "string" ? value : stringifyLossless(value)] as const)]));
  return EXIT.ok;
}
