/** Owns: `docket system`: what the console sees of the installation, what is wrong with it, and how much of what there is. */
import type { Command } from "commander";
import { z } from "zod";
import type { CliContext, Runner } from "../context.js";
import { EXIT, type ExitCode } from "../exit.js";
import { counted, fields, relative } from "../output.js";
import { showList, watchable, type WatchOptions } from "../watch.js";

const Diagnosis = z.looseObject({ code: z.string(), tone: z.enum(["bad", "info"]), title: z.string(), detail: z.string(), fix: z.string() });
const System = z.looseObject({
  nowMs: z.number(), startedAtMs: z.number(), node: z.string(), parts: z.array(z.object({ name: z.string(), about: z.string(), ok: z.boolean(), detail: z.string(), tookMs: z.number() })),
  installed: z.object({ agents: z.number(), tools: z.number(), policy: z.string(), rules: z.number() }),
  apps: z.array(z.looseObject({ app: z.string(), instance: z.string(), receivedAtMs: z.number(), silent: z.boolean(), checks: z.array(z.object({ name: z.string(), status: z.string(), detail: z.string() })) })),
  diagnosis: z.array(Diagnosis),
});
const Overview = z.looseObject({ sessions: z.record(z.string(), z.number()), approvalsOpen: z.number(), deadLetters: z.number() });
const Notices = z.object({ channels: z.array(z.looseObject({ name: z.string(), kind: z.string(), show: z.string(), counts: z.array(z.object({ state: z.string(), count: z.number(), oldestAtMs: z.number().nullish() })) })) });

export function systemCommands(program: Command, run: Runner): void {
  const system = program.command("system").description("The installation as the console sees it");

  system.command("show").description("Apps, sidecar, database, what is installed, and what is wrong. Exit code 8 where something is")
    .addHelpText("after", "\nExample:\n  docket system show -o json")
    .action(run(show));

  watchable(system.command("diagnosis").description("What is wrong, each with what to do. Exit code 8 where something is"))
    .addHelpText("after", "\nExamples:\n  docket system diagnosis\n  docket system diagnosis --watch")
    .action(run(diagnosis));

  system.command("overview").description("How many sessions in which status, open approvals and dead letters")
    .addHelpText("after", "\nExample:\n  docket system overview")
    .action(run(async ({ console: api, printer }: CliContext) => {
      const overview = await api.get("/v1/overview", Overview);
      printer.one(overview, () => fields([...Object.entries(overview.sessions).map(([status, count]) => [status, String(count)] as const), ["open approvals", String(overview.approvalsOpen)], ["dead letters", String(overview.deadLetters)]]));
      return EXIT.ok;
    }));

  watchable(system.command("notices").description("The channels that tell people of approvals, and what became of what went there"))
    .addHelpText("after", "\nExample:\n  docket system notices")
    .action(run((context: CliContext, options: WatchOptions) => showList(context, options, {
      fetch: async () => ({ items: (await context.console.get("/v1/notices", Notices)).channels }), id: (c) => c.name, empty: "notices are not set up; docs/notices.md says how",
      columns: () => ({ CHANNEL: (c) => c.name, KIND: (c) => c.kind, SHOWS: (c) => c.show, NOTICES: (c) => c.counts.map(({ state, count }) => `${String(count)} ${state}`).join(", ") || "none" }),
    })));
}

async function show({ console: api, printer }: CliContext): Promise<ExitCode> {
  const system = await api.get("/v1/system", System);
  const { nowMs, installed, diagnosis: found } = system;
  printer.one(system, () => fields([
    ["console", `up since ${new Date(system.startedAtMs).toISOString()}, node ${system.node}`], ...system.parts.map(({ name, ok, detail }) => [name, `${ok ? "ok" : "FAILS"}: ${detail}`] as const),
    ...system.apps.map((app) => [app.app, `${app.instance}, ${app.silent ? "SILENT since" : "reported"} ${relative(app.receivedAtMs, nowMs)}${app.checks.filter(({ status }) => status !== "ok").map(({ name, status, detail }) => `\n${status}: ${name}: ${detail}`).join("")}`] as const),
    ["installed", `${counted(installed.agents, "agent")}, ${counted(installed.tools, "tool")}, policy ${installed.policy} with ${counted(installed.rules, "rule")}`],
    ...found.map(({ tone, title, detail, fix }) => [tone === "bad" ? "WRONG" : "note", `${title}: ${detail}\nfix: ${fix}`] as const),
  ]));
  return system.parts.every(({ ok }) => ok) && !found.some(({ tone }) => tone === "bad") ? EXIT.ok : EXIT.negative;
}

async function diagnosis(context: CliContext, options: WatchOptions): Promise<ExitCode> {
  const seen = { bad: false };
  const code = await showList(context, options, {
    fetch: async () => {
      const page = await context.console.get("/v1/diagnosis", z.object({ items: z.array(Diagnosis) }));
      seen.bad = page.items.some(({ tone }) => tone === "bad");
      return page;
    },
    id: (d) => `${d.code} ${d.title}`, empty: "nothing is wrong",
    columns: () => ({ CODE: (d) => d.code, WHAT: (d) => d.title, DETAIL: (d) => d.detail, FIX: (d) => d.fix }),
  });
  return seen.bad ? EXIT.negative : code;
}
