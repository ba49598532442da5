/** Owns: `docket policy list` and `try`: the policy as the console has it, with how often each rule decided, and its verdict on a call. `lint` and `test` ask no server. */
import { Option, type Command } from "commander";
import { z } from "zod";
import { Principal } from "../../contracts/cloudevent.js";
import { hitsOf } from "../../contracts/rule-hits.js";
import { textOrFile, type CliContext, type Runner } from "../context.js";
import { EXIT, type ExitCode } from "../exit.js";
import { clip, counted, fields } from "../output.js";
import { showList, watchable, type WatchOptions } from "../watch.js";

const Rule = z.looseObject({ id: z.string(), verdict: z.string(), reason: z.string(), when: z.string().optional(), match: z.looseObject({ tools: z.array(z.string()).optional(), agents: z.array(z.string()).optional() }), file: z.string(), line: z.number() });
const Policy = z.looseObject({ version: z.string(), rules: z.array(Rule), hits: z.array(z.object({ rule: z.string(), verdict: z.string(), hits: z.number() })), warnings: z.array(z.object({ file: z.string(), line: z.number(), rule: z.string(), message: z.string() })) });
const Verdict = z.looseObject({
  verdict: z.enum(["allow", "ask", "deny"]), rule: z.string(), reason: z.string(), risk: z.string(), policyVersion: z.string(), allowed: z.array(z.string()), args: z.string(), argsDigest: z.string(),
  approvers: z.looseObject({ roles: z.array(z.string()), quorum: z.number(), excludeRequester: z.boolean() }),
});
interface TryOptions { readonly tool: string; readonly args: string; readonly agent: string; readonly session: string; readonly class?: string; readonly expect?: string }

export function policyServerCommands(policy: Command, run: Runner): void {
  watchable(policy.command("list").description("The rules that the console has read, in their order, and how many calls each decided in 30 days"))
    .addHelpText("after", "\nExample:\n  docket policy list")
    .action(run(list));

  policy.command("try").description("Ask the console for its verdict on a call, by the code and the policy that judge calls there")
    .requiredOption("--tool <NAME>", "the tool").option("--args <JSON>", "its arguments, or @FILE", "{}").option("--agent <NAME>", "the agent that calls", "").option("--session <ID>", "the session", "try")
    .addOption(new Option("--class <CLASS>", "who caused the run").choices(Principal.shape.class.options)).addOption(new Option("--expect <VERDICT>", "exit code 8 for another verdict").choices(Verdict.shape.verdict.options))
    .addHelpText("after", "\nExample:\n  docket policy try --tool issue_refund --args '{\"orderId\": \"1001\", \"amountCents\": 600}'")
    .action(run(tryCall));
}

async function list(context: CliContext, options: WatchOptions): Promise<ExitCode> {
  return showList(context, options, {
    fetch: async () => {
      const { rules, hits, version, warnings } = await context.console.get("/v1/policy", Policy);
      if (options.watch !== true) context.printer.say(`policy ${version}, ${counted(rules.length, "rule")}${warnings.map((w) => `\n${w.file}:${String(w.line)} ${w.rule}: warning: ${w.message}`).join("")}`);
      return { items: rules.map((rule) => ({ ...rule, hits: hitsOf(rule.id, hits) })) };
    },
    id: (r) => r.id, empty: "there are no rules: every call asks a person, unless its tool says otherwise",
    columns: () => ({ RULE: (r) => r.id, VERDICT: (r) => r.verdict, TOOLS: (r) => clip(r.match.tools?.join(", ") ?? "all", 40), WHEN: (r) => clip(r.when ?? "always", 50), HITS: (r) => String(r.hits), PLACE: (r) => `${r.file}:${String(r.line)}`, REASON: (r) => clip(r.reason, 60) }),
  });
}

async function tryCall(context: CliContext, options: TryOptions): Promise<ExitCode> {
  const body = { tool: options.tool, args: textOrFile(context.io, options.args), agent: options.agent, session: options.session, principal: options.class === undefined ? {} : { class: options.class } };
  const { body: verdict } = await context.console.post("/v1/policy/try", body, Verdict);
  context.printer.one(verdict, () => fields([
    ["verdict", verdict.verdict], ["rule", verdict.rule], ["reason", verdict.reason], ["risk", verdict.risk], ["policy", verdict.policyVersion],
    ...(verdict.verdict === "ask" ? [["may decide", mayDecide(verdict.approvers)] as const, ["answers", verdict.allowed.join(", ")] as const] : []), ["arguments", verdict.args], ["digest", verdict.argsDigest],
  ]));
  return options.expect === undefined || options.expect === verdict.verdict ? EXIT.ok : EXIT.negative;
}

/** Who may decide, in words. */
export function mayDecide({ roles, quorum, excludeRequester }: { readonly roles: readonly string[]; readonly quorum: number; readonly excludeRequester: boolean }): string {
  return `${roles.join(" or ") || "approver or admin"}${quorum > 1 ? `, ${String(quorum)} of them` : ""}${excludeRequester ? ", not the requester" : ""}`;
}
