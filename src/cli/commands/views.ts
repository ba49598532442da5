/** Owns: `docket view`: saved views, a name for an address of the console's lists, each person's own. */
import type { Command } from "commander";
import { z } from "zod";
import { segment, type CliContext, type Runner } from "../context.js";
import { EXIT } from "../exit.js";
import { fields } from "../output.js";
import { showList, watchable, type WatchOptions } from "../watch.js";

const View = z.object({ name: z.string(), address: z.string() });

export function viewCommands(program: Command, run: Runner): void {
  const view = program.command("view").description("Saved views of the console's lists: yours, by your key");

  watchable(view.command("list").description("List your saved views, each with its link"))
    .addHelpText("after", "\nExample:\n  docket view list")
    .action(run((context: CliContext, options: WatchOptions) => showList(context, options, {
      fetch: () => context.console.get("/v1/views", z.object({ items: z.array(View) })), id: (v) => v.name, empty: "no view is saved",
      columns: () => ({ VIEW: (v) => v.name, LINK: (v) => `${context.connection.consoleUrl}${v.address}` }),
    })));

  view.command("save <NAME> <ADDRESS>").description("Save a view; the same name again replaces it")
    .addHelpText("after", "\nExample:\n  docket view save stuck '/sessions?status=ESCALATED'")
    .action(run(async ({ console: api, connection, printer }: CliContext, name: string, address: string) => {
      const { body } = await api.post("/v1/views", { name, address }, View);
      printer.one(body, () => fields([["view", body.name], ["link", `${connection.consoleUrl}${body.address}`]]));
      return EXIT.ok;
    }));

  view.command("remove <NAME>").description("Remove a saved view")
    .addHelpText("after", "\nExample:\n  docket view remove stuck")
    .action(run(async ({ console: api, printer }: CliContext, name: string) => {
      await api.remove(`/v1/views/${segment(name)}`);
      printer.one({ name, removed: true }, () => `view ${name} is removed\n`);
      return EXIT.ok;
    }));
}
