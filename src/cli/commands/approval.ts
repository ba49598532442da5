/** Owns: `docket approval list`, `show` and `similar`; deciding is in decide.ts, what surrounds a decision in tending.ts and notices.ts. */
import { Option, type Command } from "commander";
import { ApprovalPage, type ApprovalListItem } from "../../contracts/api.js";
import { describe, fetchApproval } from "../approvals.js";
import { queryOf, segment, type CliContext, type Runner } from "../context.js";
import { EXIT, type ExitCode } from "../exit.js";
import { clip, relative, type Columns } from "../output.js";
import { showList, watchable, type WatchOptions } from "../watch.js";
import { decisionCommands } from "./decide.js";
import { noticeCommands } from "./notices.js";
import { tendingCommands } from "./tending.js";

interface ListOptions extends WatchOptions { readonly state: string; readonly session?: string; readonly assigned?: string; readonly hideSnoozed?: boolean; readonly limit: string; readonly cursor?: string }

export function approvalCommands(program: Command, run: Runner): void {
  const approval = program.command("approval").description("Approvals: what waits for a person, and deciding it");

  watchable(approval.command("list").description("List approvals, open ones first by expiry"))
    .addOption(new Option("--state <STATE>", "only these").choices(["open", "decided", "expired", "withdrawn", "all"]).default("open")).option("--session <ID>", "only this session's").option("--assigned <WHO>", "only whose turn it is: me, nobody, or a person's id").option("--hide-snoozed", "leave out what was put off").option("--limit <N>", "how many", "50").option("--cursor <CURSOR>", "go on where the page before ended")
    .addHelpText("after", "\nExamples:\n  docket approval list --watch\n  docket approval list --state all --session ord-1001 -o json")
    .action(run(list));

  approval.command("show <ID>").description("Show one approval: the exact arguments, who asks, who may decide")
    .addHelpText("after", "\nExample:\n  docket approval show apr_4f1c")
    .action(run(async (context: CliContext, id: string) => {
      const item = await fetchApproval(context, id);
      context.printer.one(item, () => describe(item));
      return EXIT.ok;
    }));

  watchable(approval.command("similar <ID>").description("What was decided on the same tool before"))
    .addHelpText("after", "\nExample:\n  docket approval similar apr_4f1c")
    .action(run((context: CliContext, id: string, options: WatchOptions) => showList(context, options, {
      fetch: () => context.console.get(`/v1/approvals/${segment(id)}/similar`, ApprovalPage), id: (i) => i.pending.record.approvalId, empty: "nothing was decided on this tool before", columns: columnsOf,
    })));

  decisionCommands(approval, run);
  tendingCommands(approval, run);
  noticeCommands(approval, run);
}

async function list(context: CliContext, options: ListOptions): Promise<ExitCode> {
  const query = queryOf({ state: options.state, session: options.session, assigned: options.assigned, snoozed: options.hideSnoozed === true ? "hide" : undefined, limit: options.limit, cursor: options.cursor });
  return showList(context, options, {
    fetch: () => context.console.get(`/v1/approvals${query}`, ApprovalPage), id: (i) => i.pending.record.approvalId, empty: options.state === "open" ? "nothing waits for a person" : "no approvals", columns: columnsOf,
  });
}

function columnsOf(nowMs: number): Columns<ApprovalListItem> {
  return {
    APPROVAL: (i) => i.pending.record.approvalId, SESSION: (i) => i.pending.sessionId, WHAT: (i) => i.pending.record.tool ?? i.pending.record.kind, RISK: (i) => i.pending.record.risk,
    ARGUMENTS: (i) => clip(i.pending.args, 40), STATE: (i) => i.state === "decided" ? `${i.decision ?? "decided"} by ${i.decidedBy ?? "?"}` : i.state, EXPIRES: (i) => i.state === "open" ? relative(i.pending.record.expiresAtMs, nowMs) : "-",
  };
}
