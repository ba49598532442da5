/**
 * Owns: the commands that decide. What is sent is what was shown: version and digest of the very record on the screen, after the digest was checked against
 * the arguments here, so that neither a stale list nor a wrong console can make a person sign something else.
 */
import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import { z } from "zod";
import { DecisionAnswer, type ApprovalListItem, type DecisionRequest } from "../../contracts/api.js";
import type { Change } from "../../contracts/json-diff.js";
import { REMEMBER_SPAN } from "../../contracts/decisions.js";
import { canonicalText } from "../../contracts/json.js";
import { sessionCommand } from "../../contracts/shell-word.js";
import { describe, fetchApproval } from "../approvals.js";
import { segment, textOrFile, type CliContext, type Runner } from "../context.js";
import { durationMs } from "../duration.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import { fields, plain } from "../output.js";
import { describeChanges, editArguments, jsonOf, type EditOptions } from "./modify.js";

interface DecideOptions { readonly yes?: boolean; readonly digest?: string; readonly reason?: string }
type Content = Pick<DecisionRequest, "kind" | "args" | "text" | "raise" | "remember">;
interface RememberOptions { readonly forSession?: string; readonly uses?: string; readonly where?: string }

export function decisionCommands(approval: Command, run: Runner): void {
  const decision = (usage: string, summary: string, example: string): Command => approval.command(usage).description(summary)
    .option("--yes", "do not ask; needed where nobody is at the terminal").option("--digest <DIGEST>", "refuse unless the arguments have this digest")
    .addHelpText("after", `\nExamples:\n${example.split("\n").map((line) => `  docket approval ${line}`).join("\n")}`);
  const reasoned = (command: Command): Command => command.option("--reason <TEXT>", "for the journal and the audit");
  const several = (text: string) => `${text}. Several at once only where they are the same tool, the same rule and below high risk`;

  reasoned(decision("approve <ID...>", several("Let a call run with the arguments shown"), "approve apr_4f1c --reason \"seen with the customer\"\napprove apr_4f1c apr_90b2 apr_77aa"))
    .option("--for-session <TIME>", "and let further calls of the tool in this session run without asking, for so long (30m, 4h; 7d at most)").option("--uses <N>", "so often at most").option("--where <JSON>", "only while these arguments stay the same")
    .action(run((context: CliContext, ids: string[], options: DecideOptions & RememberOptions) => {
      const remember = rememberOf(options);
      return ids.length > 1 ? together(context, ids, options, "approve") : decide(context, ids[0] ?? "", options, () => ({ kind: "approve", ...remember, ...textOf(options) }));
    }));
  reasoned(decision("modify <ID>", "Let the call run with other arguments; what changes is shown first", "modify apr_4f1c --set amount=40 --set 'to.name=\"Ann\"' --unset note\nmodify apr_4f1c --args '{\"amount\": 40}'"))
    .option("--set <PATH=JSON>", "change one argument, and keep all others; may be given again", collect, []).option("--unset <PATH>", "leave one argument out; may be given again", collect, []).option("--args <JSON>", "all arguments anew (or @FILE): what it does not name is left out")
    .action(run((context: CliContext, id: string, options: DecideOptions & EditOptions) => decide(context, id, options, (item) => {
      const { args, changes } = editArguments(context.io, item.pending.args, options);
      return { kind: "modify", args, changes, ...textOf(options) };
    })));
  decision("reject <ID...>", several("Do not let a call run; the model is told why"), "reject apr_4f1c --reason \"over the limit\"").requiredOption("--reason <TEXT>", "for the model and the audit")
    .action(run((context: CliContext, ids: string[], options: DecideOptions) => ids.length > 1 ? together(context, ids, options, "reject") : decide(context, ids[0] ?? "", options, () => ({ kind: "reject", ...textOf(options) }))));
  decision("respond <ID>", "Answer in place of the tool; the model gets the text as the call's result", "respond apr_4f1c --text \"the blue one\"")
    .requiredOption("--text <TEXT>", "the answer, or @FILE")
    .action(run((context: CliContext, id: string, options: DecideOptions & { text: string }) => decide(context, id, options, () => ({ kind: "respond", text: textOrFile(context.io, options.text) }))));
  reasoned(decision("raise <ID>", "Answer an escalation: raise the run's limits and go on", "raise apr_4f1c --budget 2.50"))
    .option("--budget <USD>", "the new budget of the run").option("--steps <N>", "the new number of steps")
    .action(run((context: CliContext, id: string, options: DecideOptions & { budget?: string; steps?: string }) => decide(context, id, options, () => ({ kind: "raise", raise: raiseOf(options), ...textOf(options) }))));
  reasoned(decision("retry <ID>", "Answer an escalation: try again", "retry apr_4f1c"))
    .action(run((context: CliContext, id: string, options: DecideOptions) => decide(context, id, options, () => ({ kind: "retry", ...textOf(options) }))));
  reasoned(decision("give-up <ID>", "Answer an escalation: end it", "give-up apr_4f1c --reason \"order was cancelled\""))
    .action(run((context: CliContext, id: string, options: DecideOptions) => decide(context, id, options, () => ({ kind: "give_up", ...textOf(options) }))));
}

type Intended = Content & { /** What new arguments change. */ readonly changes?: readonly Change[] };

async function decide(context: CliContext, id: string, options: DecideOptions, intend: (item: ApprovalListItem) => Intended): Promise<ExitCode> {
  const { printer, console } = context;
  const item = await fetchApproval(context, id);
  const { record } = item.pending;
  if (options.digest !== undefined && options.digest !== record.argsDigest) throw new CliError(EXIT.conflict, "digest_mismatch", `approval ${id} is for ${record.argsDigest}, not for ${options.digest}`, `docket approval show ${id}`);
  requireOpen(item);
  const { changes, ...content } = intend(item);
  await confirm(context, options, { shown: () => describe(item), changes, question: `${content.kind.replace("_", " ")} ${plain(record.tool ?? "this")} of session ${plain(item.pending.sessionId)}?` });
  const body: DecisionRequest = { ...content, version: record.version, argsDigest: record.argsDigest, decisionId: randomUUID() };
  const { status, body: answer } = await console.post(`/v1/approvals/${segment(id)}/decisions`, body, DecisionAnswer);
  if (status === 202) {
    printer.one(answer, () => "");
    throw new CliError(EXIT.timeout, "not_known_yet", `the decision was sent, but the session has not said yet what became of it`, `docket approval show ${id}`);
  }
  printer.one(answer, () => `${plain(answer.verdict)}\n`);
  if (printer.format === "table") printer.say(`watch: ${sessionCommand("tail", item.pending.sessionId)}`);
  return EXIT.ok;
}

const Answers = z.object({ items: z.array(DecisionAnswer) });
const SETTLED = new Set(["approved", "rejected", "signed"]);

/** Several approvals that are alike, by one click. Ends 8 where one of them came to something else. */
async function together(context: CliContext, ids: readonly string[], options: DecideOptions & RememberOptions, kind: "approve" | "reject"): Promise<ExitCode> {
  if (options.digest !== undefined || options.forSession !== undefined) throw new CliError(EXIT.usage, "usage", "--digest and --for-session are for one approval", "give one ID");
  const items: ApprovalListItem[] = [];
  for (const id of ids) items.push(await fetchApproval(context, id));
  for (const item of items) requireOpen(item);
  await confirm(context, options, { shown: () => items.map(describe).join("\n"), changes: undefined, question: `${kind} these ${String(items.length)}?` });
  const body = { kind, clickId: randomUUID(), approvals: items.map(({ pending: { record } }) => ({ approvalId: record.approvalId, version: record.version, argsDigest: record.argsDigest })), ...textOf(options) };
  const { body: answers } = await context.console.post("/v1/approvals/decisions", body, Answers);
  context.printer.list(answers, { APPROVAL: (a) => a.approvalId, VERDICT: (a) => a.verdict, NOTE: (a) => a.message ?? "" }, "nothing was decided");
  return answers.items.every(({ verdict }) => SETTLED.has(verdict)) ? EXIT.ok : EXIT.negative;
}

function requireOpen(item: ApprovalListItem): void {
  const { approvalId } = item.pending.record;
  if (item.state !== "open") throw new CliError(EXIT.conflict, item.state === "expired" ? "approval_expired" : item.state === "withdrawn" ? "approval_withdrawn" : "already_decided", `approval ${approvalId} is ${item.state}${item.decidedBy === undefined ? "" : `: ${item.decision ?? ""} by ${item.decidedBy}`}`, `docket approval show ${approvalId}`);
}

interface Question { readonly shown: () => string; readonly changes: readonly Change[] | undefined; readonly question: string }

/** Shows what will be signed and asks, unless --yes; changes are shown in any case. Nobody there and no --yes: refused. */
async function confirm({ io, printer }: CliContext, options: DecideOptions, { shown, changes, question }: Question): Promise<void> {
  if (options.yes !== true && !io.interactive) throw new CliError(EXIT.usage, "needs_yes", "nobody is at the terminal to confirm", "look at `docket approval show`, then add --yes and --digest DIGEST");
  if (options.yes !== true) io.err(shown());
  if (changes !== undefined) printer.say(`${fields([["changes", String(changes.length)]])}${describeChanges(changes).trimEnd()}`);
  if (options.yes === true) return;
  const answer = await io.ask(`${question} [y/N] `).catch(() => "");
  if (io.interrupted.aborted) throw new CliError(EXIT.interrupted, "interrupted", "interrupted; nothing was sent");
  if (!/^y(es)?$/i.test(answer.trim())) throw new CliError(EXIT.failed, "not_confirmed", "not confirmed; nothing was sent");
  printer.say("");
}

/** The reason goes where a decision's text goes: to the journal and the audit, of a rejection also to the model. */
function textOf({ reason }: DecideOptions): { text?: string } { return reason === undefined ? {} : { text: reason }; }

function collect(text: string, all: readonly string[]): string[] { return [...all, text]; }

function rememberOf({ forSession, uses, where }: RememberOptions): Pick<Content, "remember"> {
  if (forSession === undefined) {
    if (uses !== undefined || where !== undefined) throw new CliError(EXIT.usage, "usage", "--uses and --where say more about --for-session", "docket approval approve apr_4f1c --for-session 1h --uses 5");
    return {};
  }
  if (uses !== undefined && !/^[1-9]\d{0,3}$/.test(uses)) throw new CliError(EXIT.usage, "usage", `--uses: got ${uses}, expected a whole number above 0`);
  return { remember: { forMs: durationMs("--for-session", forSession, REMEMBER_SPAN), ...(uses === undefined ? {} : { uses: Number(uses) }), ...(where === undefined ? {} : { where: canonicalText(jsonOf("--where", where)) }) } };
}

function raiseOf(options: { budget?: string; steps?: string }): NonNullable<DecisionRequest["raise"]> {
  const budgetUsd = options.budget === undefined ? undefined : Number(options.budget);
  const maxSteps = options.steps === undefined ? undefined : Number(options.steps);
  if (budgetUsd === undefined && maxSteps === undefined) throw new CliError(EXIT.usage, "usage", "nothing to raise", "give --budget USD or --steps N");
  if (budgetUsd !== undefined && !(budgetUsd > 0 && Number.isFinite(budgetUsd))) throw new CliError(EXIT.usage, "usage", `--budget: got ${options.budget ?? ""}, expected dollars above 0`);
  if (maxSteps !== undefined && !(Number.isInteger(maxSteps) && maxSteps > 0)) throw new CliError(EXIT.usage, "usage", `--steps: got ${options.steps ?? ""}, expected a whole number above 0`);
  return { ...(budgetUsd === undefined ? {} : { budgetUsd }), ...(maxSteps === undefined ? {} : { maxSteps }) };
}
