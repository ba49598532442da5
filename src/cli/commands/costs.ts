/** Owns: `docket costs`: what models cost, by day, agent, model and session. */
import { Option, type Command } from "commander";
import { z } from "zod";
import { queryOf, type CliContext, type Runner } from "../context.js";
import { clip, counted, relative } from "../output.js";
import { showList, watchable, type WatchOptions } from "../watch.js";

const Sum = z.object({ calls: z.number(), unpriced: z.number(), inputTokens: z.number(), outputTokens: z.number(), usd: z.number() });
const Costs = z.looseObject({
  fromMs: z.number(), days: z.array(Sum.extend({ day: z.number() })), agents: z.array(Sum.extend({ agent: z.string() })), models: z.array(Sum.extend({ model: z.string() })),
  sessions: z.array(z.object({ sessionId: z.string(), agent: z.string(), usd: z.number(), updatedAtMs: z.number() })),
});
const BY = ["day", "agent", "model", "session"] as const;
type By = (typeof BY)[number];

export function costCommand(program: Command, run: Runner): void {
  watchable(program.command("costs").description("What models cost, in US dollars; days are counted in UTC"))
    .addOption(new Option("--by <WHAT>", "a row for each; sessions over their whole life, the dearest first").choices(BY).default("day")).option("--days <N>", "how far back, today included", "30")
    .addHelpText("after", "\nExamples:\n  docket costs --days 7\n  docket costs --by agent -o jsonl")
    .action(run(async (context: CliContext, options: WatchOptions & { by: By; days: string }) => {
      const fetch = () => context.console.get(`/v1/costs${queryOf({ days: options.days })}`, Costs);
      if (options.by === "session") {
        return showList(context, options, {
          fetch: async () => ({ items: (await fetch()).sessions }), id: (s) => s.sessionId, empty: "no session has cost anything yet",
          columns: (nowMs) => ({ SESSION: (s) => s.sessionId, AGENT: (s) => s.agent, COST: (s) => dollars(s.usd), CHANGED: (s) => relative(s.updatedAtMs, nowMs) }),
        });
      }
      return showList(context, options, {
        fetch: async () => {
          const costs = await fetch();
          const unpriced = costs.days.reduce((sum, day) => sum + day.unpriced, 0);
          if (unpriced > 0 && options.watch !== true) context.printer.say(`${counted(unpriced, "call")} had no price here, and count as $0: DOCKET_MODEL_PRICES sets prices`);
          return { items: rowsOf(costs, options.by) };
        },
        id: (r) => r.name, empty: "no model was called in this time",
        columns: () => ({ [options.by.toUpperCase()]: (r) => clip(r.name, 60), COST: (r) => dollars(r.usd), CALLS: (r) => String(r.calls), "TOKENS IN": (r) => String(r.inputTokens), "TOKENS OUT": (r) => String(r.outputTokens) }),
      });
    }));
}

function rowsOf(costs: z.output<typeof Costs>, by: By): (z.output<typeof Sum> & { readonly name: string })[] {
  if (by === "agent") return costs.agents.map(({ agent, ...sum }) => ({ name: agent, ...sum }));
  if (by === "model") return costs.models.map(({ model, ...sum }) => ({ name: model === "" ? "answers that came too late" : model, ...sum }));
  return costs.days.map(({ day, ...sum }) => ({ name: new Date(day).toISOString().slice(0, 10), ...sum }));
}

function dollars(usd: number): string { return `$${usd.toFixed(4)}`; }
