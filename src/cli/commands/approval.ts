/**
 * Owns: `docket approval`. What is sent is what was shown: version and digest of the very record on the screen, after the digest
 * was checked against the arguments here, so that neither a stale list nor a wrong console can make a person sign something else.
 */
import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import { ApprovalListItem, ApprovalPage, DecisionAnswer, type DecisionRequest } from "../../contracts/api.js";
import { argsDigest } from "../../contracts/ids.js";
import { canonicalize } from "../../contracts/json.js";
import { queryOf, segment, textOrFile, type CliContext, type Runner } from "../context.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import { clip, fields, plain, relative, visible } from "../output.js";

interface DecideOptions { readonly yes?: boolean; readonly digest?: string }
type Content = Pick<DecisionRequest, "kind" | "args" | "text" | "raise">;

export function approvalCommands(program: Command, run: Runner): void {
  const approval = program.command("approval").description("Approvals: what waits for a person, and deciding it");

  approval.command("list").description("List approvals, open ones first by expiry")
    .option("--state <STATE>", "open, decided, expired, withdrawn or all", "open").option("--session <ID>", "only this session's").option("--limit <N>", "how many", "50").option("--cursor <CURSOR>", "go on where the page before ended")
    .addHelpText("after", "\nExamples:\n  docket approval list\n  docket approval list --state all --session ord-1001 -o json")
    .action(run(list));

  approval.command("show <ID>").description("Show one approval: the exact arguments, who asks, who may decide")
    .addHelpText("after", "\nExample:\n  docket approval show apr_4f1c")
    .action(run(async (context: CliContext, id: string) => {
      const item = await fetchApproval(context, id);
      context.printer.one(item, () => describe(item));
      return EXIT.ok;
    }));

  const decision = (name: string, summary: string, example: string): Command => approval.command(`${name} <ID>`).description(summary)
    .option("--yes", "do not ask; needed where nobody is at the terminal").option("--digest <DIGEST>", "refuse unless the arguments have this digest")
    .addHelpText("after", `\nExample:\n  docket approval ${example}`);

  decision("approve", "Let the call run with the arguments shown", "approve apr_4f1c")
    .action(run((context: CliContext, id: string, options: DecideOptions) => decide(context, id, options, { kind: "approve" })));
  decision("modify", "Let the call run with other arguments", "modify apr_4f1c --args '{\"amount\": 40}'")
    .requiredOption("--args <JSON>", "the new arguments, or @FILE")
    .action(run((context: CliContext, id: string, options: DecideOptions & { args: string }) => decide(context, id, options, { kind: "modify", args: readArgs(textOrFile(context.io, options.args)) })));
  decision("reject", "Do not let the call run; the model is told why", "reject apr_4f1c --reason \"over the limit\"")
    .requiredOption("--reason <TEXT>", "for the model and the audit")
    .action(run((context: CliContext, id: string, options: DecideOptions & { reason: string }) => decide(context, id, options, { kind: "reject", text: options.reason })));
  decision("respond", "Answer in place of the tool; the model gets the text as the call's result", "respond apr_4f1c --text \"the blue one\"")
    .requiredOption("--text <TEXT>", "the answer, or @FILE")
    .action(run((context: CliContext, id: string, options: DecideOptions & { text: string }) => decide(context, id, options, { kind: "respond", text: textOrFile(context.io, options.text) })));
  decision("raise", "Answer an escalation: raise the run's limits and go on", "raise apr_4f1c --budget 2.50")
    .option("--budget <USD>", "the new budget of the run").option("--steps <N>", "the new number of steps")
    .action(run((context: CliContext, id: string, options: DecideOptions & { budget?: string; steps?: string }) => decide(context, id, options, { kind: "raise", raise: raiseOf(options) })));
  decision("retry", "Answer an escalation: try again", "retry apr_4f1c")
    .action(run((context: CliContext, id: string, options: DecideOptions) => decide(context, id, options, { kind: "retry" })));
  decision("give-up", "Answer an escalation: end it", "give-up apr_4f1c --reason \"order was cancelled\"")
    .option("--reason <TEXT>", "for the journal and the audit")
    .action(run((context: CliContext, id: string, options: DecideOptions & { reason?: string }) => decide(context, id, options, { kind: "give_up", ...(options.reason === undefined ? {} : { text: options.reason }) })));
}

async function list(context: CliContext, options: { state: string; session?: string; limit: string; cursor?: string }): Promise<ExitCode> {
  const page = await context.console.get(`/v1/approvals${queryOf({ state: options.state, session: options.session, limit: options.limit, cursor: options.cursor })}`, ApprovalPage);
  const nowMs = Date.now();
  context.printer.list(page, {
    APPROVAL: (i) => i.pending.record.approvalId, SESSION: (i) => i.pending.sessionId, WHAT: (i) => i.pending.record.tool ?? i.pending.record.kind, RISK: (i) => i.pending.record.risk,
    ARGUMENTS: (i) => clip(i.pending.args, 40), STATE: (i) => i.state === "decided" ? `${i.decision ?? "decided"} by ${i.decidedBy ?? "?"}` : i.state, EXPIRES: (i) => i.state === "open" ? relative(i.pending.record.expiresAtMs, nowMs) : "-",
  }, options.state === "open" ? "nothing waits for a person" : "no approvals");
  return EXIT.ok;
}

async function decide(context: CliContext, id: string, options: DecideOptions, content: Content): Promise<ExitCode> {
  const { printer, console } = context;
  const item = await fetchApproval(context, id);
  const { record } = item.pending;
  if (options.digest !== undefined && options.digest !== record.argsDigest) throw new CliError(EXIT.conflict, "digest_mismatch", `approval ${id} is for ${record.argsDigest}, not for ${options.digest}`, `docket approval show ${id}`);
  if (item.state !== "open") throw new CliError(EXIT.conflict, item.state === "expired" ? "approval_expired" : item.state === "withdrawn" ? "approval_withdrawn" : "already_decided", `approval ${id} is ${item.state}${item.decidedBy === undefined ? "" : `: ${item.decision ?? ""} by ${item.decidedBy}`}`, `docket approval show ${id}`);
  await confirm(context, item, options, content);
  const body: DecisionRequest = { ...content, version: record.version, argsDigest: record.argsDigest, decisionId: randomUUID() };
  const { status, body: answer } = await console.post(`/v1/approvals/${segment(id)}/decisions`, body, DecisionAnswer);
  if (status === 202) {
    printer.one(answer, () => "");
    throw new CliError(EXIT.timeout, "not_known_yet", `the decision was sent, but the session has not said yet what became of it`, `docket approval show ${id}`);
  }
  printer.one(answer, () => `${plain(answer.verdict)}\n`);
  if (printer.format === "table") printer.say(`watch: docket session tail ${plain(item.pending.sessionId)}`);
  return EXIT.ok;
}

/** Shows what will be signed and asks, unless --yes. Nobody there and no --yes: refused. */
async function confirm({ io, printer }: CliContext, item: ApprovalListItem, options: DecideOptions, content: Content): Promise<void> {
  if (options.yes === true) return;
  if (!io.interactive) throw new CliError(EXIT.usage, "needs_yes", "nobody is at the terminal to confirm", "look at `docket approval show`, then add --yes and --digest DIGEST");
  io.err(describe(item));
  if (content.args !== undefined) io.err(fields([["instead", content.args]]));
  const answer = await io.ask(`${content.kind.replace("_", " ")} ${plain(item.pending.record.tool ?? "this")} of session ${plain(item.pending.sessionId)}? [y/N] `).catch(() => "");
  if (io.interrupted.aborted) throw new CliError(EXIT.interrupted, "interrupted", "interrupted; nothing was sent");
  if (!/^y(es)?$/i.test(answer.trim())) throw new CliError(EXIT.failed, "not_confirmed", "not confirmed; nothing was sent");
  printer.say("");
}

/** Fetches and checks that the digest is the digest of the arguments shown. */
async function fetchApproval({ console }: CliContext, id: string): Promise<ApprovalListItem> {
  const item = await console.get(`/v1/approvals/${segment(id)}`, ApprovalListItem);
  const { record, args } = item.pending;
  if (record.kind === "tool_call" && argsDigest(args) !== record.argsDigest) {
    throw new CliError(EXIT.conflict, "digest_mismatch", `the console shows arguments whose digest is ${argsDigest(args)}, but the approval is for ${record.argsDigest}`, "do not decide this; look at the session's journal");
  }
  return item;
}

function describe({ pending, state, decidedBy, decision }: ApprovalListItem): string {
  const { record } = pending;
  const nowMs = Date.now();
  const { approvers, signatures } = record;
  return fields([
    ["approval", `${record.approvalId} (version ${String(record.version)})`], ["state", decidedBy === undefined ? state : `${state}: ${decision ?? ""} by ${decidedBy}`], ["session", `${pending.sessionId} (agent ${pending.agent})`],
    ["what", record.tool ?? record.kind], ["risk", record.risk], ["why", `${record.question} (rule ${record.rule}, policy ${record.policyVersion})`],
    ["requested by", record.requestedBy], ["model says", pending.rationale || undefined], ["trigger", pending.trigger === "" ? undefined : `${clip(pending.trigger, 1000)} (untrusted)`],
    ["may decide", `${approvers.roles.join(" or ") || "approver or admin"}${approvers.excludeRequester ? ", not the requester" : ""}${approvers.quorum > 1 ? `, ${String(signatures.length)} of ${String(approvers.quorum)} so far` : ""}`],
    ["answers", record.allowed.join(", ")], ["expires", record.expiresAtMs === undefined ? "never" : `${relative(record.expiresAtMs, nowMs)}, then ${record.onExpiry}`],
    ["arguments", pending.args], ["digest", record.argsDigest],
  ]);
}

function readArgs(text: string): string {
  try {
    return canonicalize(text);
  } catch (error) {
    throw new CliError(EXIT.invalid, "arguments_invalid", `--args is not JSON: ${visible(error instanceof Error ? error.message : String(error))}`);
  }
}

function raiseOf(options: { budget?: string; steps?: string }): NonNullable<DecisionRequest["raise"]> {
  const budgetUsd = options.budget === undefined ? undefined : Number(options.budget);
  const maxSteps = options.steps === undefined ? undefined : Number(options.steps);
  if (budgetUsd === undefined && maxSteps === undefined) throw new CliError(EXIT.usage, "usage", "nothing to raise", "give --budget USD or --steps N");
  if (budgetUsd !== undefined && !(budgetUsd > 0 && Number.isFinite(budgetUsd))) throw new CliError(EXIT.usage, "usage", `--budget: got ${options.budget ?? ""}, expected dollars above 0`);
  if (maxSteps !== undefined && !(Number.isInteger(maxSteps) && maxSteps > 0)) throw new CliError(EXIT.usage, "usage", `--steps: got ${options.steps ?? ""}, expected a whole number above 0`);
  return { ...(budgetUsd === undefined ? {} : { budgetUsd }), ...(maxSteps === undefined ? {} : { maxSteps }) };
}
