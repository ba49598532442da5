/** Owns: `docket agent` and `docket tool`: what is installed, and which processes run which version of it. */
import type { Command } from "commander";
import { z } from "zod";
import { didYouMean } from "../../contracts/suggest.js";
import { ToolManifest } from "../../contracts/tools.js";
import type { CliContext, Runner } from "../context.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import { clip, fields } from "../output.js";
import { showList, watchable, type WatchOptions } from "../watch.js";

const Agent = z.looseObject({
  name: z.string(), version: z.string(), description: z.string(), instructions: z.string(), model: z.string(), tools: z.array(z.string()), triggers: z.array(z.string()), limits: z.record(z.string(), z.unknown()),
});
const Installed = z.looseObject({ agents: z.array(Agent), tools: z.array(ToolManifest) });
const Running = z.looseObject({
  live: z.array(z.object({ agent: z.string(), version: z.string(), sessions: z.number(), busy: z.number() })),
  hosts: z.array(z.object({ instance: z.string(), policy: z.string().nullable(), actors: z.number(), agents: z.array(z.object({ name: z.string(), version: z.string() })) })),
  workers: z.array(z.object({ instance: z.string(), tools: z.array(z.string()) })),
});

export function agentCommands(program: Command, run: Runner): void {
  const agent = program.command("agent").description("Agents: what is installed, and what runs");

  watchable(agent.command("list").description("List the agents that are installed"))
    .addHelpText("after", "\nExample:\n  docket agent list")
    .action(run((context: CliContext, options: WatchOptions) => showList(context, options, {
      fetch: async () => ({ items: (await installed(context)).agents }), id: (a) => a.name, empty: "no agent is installed; docs/writing-an-agent.md says how",
      columns: () => ({ AGENT: (a) => a.name, VERSION: (a) => a.version, MODEL: (a) => a.model, TOOLS: (a) => clip(a.tools.join(", ") || "-", 50), TRIGGERS: (a) => clip(a.triggers.join(", ") || "-", 40), "WHAT IT DOES": (a) => clip(a.description, 60) }),
    })));

  agent.command("show <NAME>").description("Show one agent: its instructions, tools, triggers and limits")
    .addHelpText("after", "\nExample:\n  docket agent show order-triage")
    .action(run(async (context: CliContext, name: string) => {
      const found = named("agent", name, (await installed(context)).agents);
      context.printer.one(found, () => fields([
        ["agent", found.name], ["version", found.version], ["does", found.description], ["model", found.model], ["tools", found.tools.join(", ") || "none"], ["triggers", found.triggers.join(", ") || "none: prompts only"],
        ...Object.entries(found.limits).map(([limit, amount]) => [limit, String(amount)] as const), ["instructions", found.instructions],
      ]));
      return EXIT.ok;
    }));

  watchable(agent.command("running").description("Which versions sessions run, and which processes offer them"))
    .addHelpText("after", "\nExample:\n  docket agent running --watch")
    .action(run(running));

  const tool = program.command("tool").description("Tools: what the installed agents may call");

  watchable(tool.command("list").description("List the tools that are installed"))
    .addHelpText("after", "\nExample:\n  docket tool list")
    .action(run((context: CliContext, options: WatchOptions) => showList(context, options, {
      fetch: async () => ({ items: (await installed(context)).tools }), id: (t) => t.name, empty: "no tool is installed",
      columns: () => ({ TOOL: (t) => t.name, RISK: (t) => t.risk, EFFECTS: (t) => t.effects, "WITHOUT A RULE": (t) => t.defaultVerdict ?? "ask", ANSWERS: (t) => t.allowedDecisions.join(", "), "WHAT IT DOES": (t) => clip(t.description, 60) }),
    })));

  tool.command("show <NAME>").description("Show one tool: what it does, what it may, and the schema of its arguments")
    .addHelpText("after", "\nExample:\n  docket tool show issue_refund")
    .action(run(async (context: CliContext, name: string) => {
      const found = named("tool", name, (await installed(context)).tools);
      context.printer.one(found, () => fields([
        ["tool", found.name], ["does", found.description], ["risk", found.risk], ["effects", `${found.effects}${found.critical ? ", critical" : ""}`], ["without a rule", found.defaultVerdict ?? "ask"], ["answers", found.allowedDecisions.join(", ")],
        ["tries", String(found.maxTries)], ["time limit", `${String(found.timeoutMs / 1_000)} s`], ["arguments", JSON.stringify(found.inputSchema, null, 2)],
      ]));
      return EXIT.ok;
    }));
}

async function installed({ console: api }: CliContext): Promise<z.output<typeof Installed>> { return api.get("/v1/agents", Installed); }

async function running(context: CliContext, options: WatchOptions): Promise<ExitCode> {
  return showList(context, options, {
    fetch: async () => {
      const { live, hosts, workers } = await context.console.get("/v1/agents/running", Running);
      const offered = hosts.flatMap((host) => host.agents.map(({ name, version }) => ({ agent: name, version, host: host.instance })));
      const versions = new Map([...live, ...offered.map(({ agent, version }) => ({ agent, version, sessions: 0, busy: 0 }))].reverse().map((row) => [`${row.agent} ${row.version}`, row]));
      return { items: [
        ...[...versions.values()].reverse().map((row) => ({ kind: "agent", name: `${row.agent} ${row.version}`, sessions: row.sessions, busy: row.busy, by: offered.filter((one) => one.agent === row.agent && one.version === row.version).map(({ host }) => host) })),
        ...workers.map((worker) => ({ kind: "worker", name: worker.tools.join(", "), sessions: 0, busy: 0, by: [worker.instance] })),
      ] };
    },
    id: (r) => `${r.kind} ${r.name} ${r.kind === "worker" ? r.by.join() : ""}`, empty: "nothing has reported yet",
    columns: () => ({ WHAT: (r) => r.kind, NAME: (r) => clip(r.name, 60), SESSIONS: (r) => r.kind === "agent" ? String(r.sessions) : "-", BUSY: (r) => r.kind === "agent" ? String(r.busy) : "-", "OFFERED BY": (r) => r.by.join(", ") || "no host" }),
  });
}

function named<T extends { readonly name: string }>(what: string, name: string, all: readonly T[]): T {
  const found = all.find((one) => one.name === name);
  if (found === undefined) throw new CliError(EXIT.notFound, "not_found", `no ${what} is named ${name}${didYouMean(name, all.map((one) => one.name))}`, `docket ${what} list`);
  return found;
}
