/** Owns: `docket lists`: the console's lists as a whole: how far they are behind, and making them anew from the journals. */
import type { Command } from "commander";
import { z } from "zod";
import type { CliContext, Runner } from "../context.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import { fields } from "../output.js";

const Projection = z.looseObject({ journals: z.number(), gaps: z.number(), entriesMissing: z.number() });
const System = z.looseObject({ projection: Projection.extend({ lagMs: z.number().nullish() }).nullable() });
const Rebuild = z.looseObject({ missing: z.array(z.string()), projection: Projection });

export function listsCommands(program: Command, run: Runner): void {
  const lists = program.command("lists").description("The console's lists: how far they are behind, and making them anew from the journals");

  lists.command("status").description("How many journals the lists are made of, and what is missing")
    .addHelpText("after", "\nExample:\n  docket lists status -o json")
    .action(run(status));

  lists.command("rebuild").description("Read journals again: all that the console knows, or the sessions that are named (administrators)")
    .requiredOption("--reason <TEXT>", "for the audit").option("--session <ID...>", "only take these in: for sessions that the console has lost")
    .addHelpText("after", "\nExamples:\n  docket lists rebuild --reason \"after the restore\"\n  docket lists rebuild --session ord-1001 --session ord-1002 --reason \"new database\"")
    .action(run(rebuild));
}

async function status(context: CliContext): Promise<ExitCode> {
  const { projection } = await context.console.get("/v1/system", System);
  if (projection === null) throw new CliError(EXIT.unreachable, "store_unavailable", "the console's database does not answer", "docket doctor");
  context.printer.one(projection, () => fields([["journals", String(projection.journals)], ["with a gap", String(projection.gaps)], ["entries missing", String(projection.entriesMissing)], ["behind", projection.lagMs === null || projection.lagMs === undefined ? "not known yet" : `${String(projection.lagMs)} ms`]]));
  return EXIT.ok;
}

async function rebuild(context: CliContext, { reason, session }: { reason: string; session?: string[] }): Promise<ExitCode> {
  const { body } = await context.console.post("/v1/read-model/rebuild", { reason, ...(session === undefined ? {} : { sessions: session }) }, Rebuild);
  context.printer.say("the console reads the journals again; docket lists status shows how far it is");
  context.printer.one(body, () => fields([["journals to read", String(body.projection.gaps)], ...(body.missing.length === 0 ? [] : [["no such session", body.missing.join(", ")] as [string, string]])]));
  return body.missing.length === 0 ? EXIT.ok : EXIT.notFound;
}
