/** Owns: `docket session`. Lists come from the console, sending and watching go to the gateway. */
import { randomUUID } from "node:crypto";
import { Option, type Command } from "commander";
import { z } from "zod";
import { Accepted, SessionPage, SessionView } from "../../contracts/api.js";
import { BusyMode, SESSION_STATUSES } from "../../contracts/journal.js";
import { sessionCommand } from "../../contracts/shell-word.js";
import { queryOf, segment, textOrFile, type CliContext, type Runner } from "../context.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import { clip, fields, relative } from "../output.js";
import { followRun, tailSession } from "../tail.js";
import { showList, watchable, type WatchOptions } from "../watch.js";
import { historyCommands } from "./history.js";
import { allowanceCommands } from "./tending.js";

const MODES = BusyMode.options;
const StaleView = SessionView.extend({ stale: z.boolean().default(false) });
const Ordered = z.object({ sessionId: z.string(), eventId: z.string(), eventKey: z.string() }).loose();

export function sessionCommands(program: Command, run: Runner): void {
  const session = program.command("session").description("Sessions: list, look at, follow, talk to, cancel, close, release");

  watchable(session.command("list").description("List sessions, the latest first"))
    .option("--status <STATUS>", `only these: ${SESSION_STATUSES.join(", ")}; several with commas`).option("--agent <NAME>", "only this agent's").option("--search <TEXT>", "only with these words, or beginnings of them, in id, agent or messages")
    .option("--quarantined", "only those that take nothing until an operator acts").option("--limit <N>", "how many", "50").option("--cursor <CURSOR>", "go on where the page before ended")
    .addHelpText("after", "\nExamples:\n  docket session list --status AWAITING_APPROVAL\n  docket session list --agent order-triage --watch -o jsonl")
    .action(run(list));

  session.command("show <ID>").description("Show one session as its actor sees it")
    .addHelpText("after", "\nExample:\n  docket session show ord-1001")
    .action(run(show));

  session.command("tail <ID>").description("Follow a session's journal as it grows")
    .option("--after <REV>", "begin after this revision", "0").option("--until-end", "stop when the session is at rest; exit code 8 unless its last run completed").option("--run <RUN>", "stop when this run ends; the same exit codes")
    .addHelpText("after", "\nExamples:\n  docket session tail ord-1001\n  docket session tail ord-1001 --until-end --timeout 600")
    .action(run((context: CliContext, id: string, options: { after: string; untilEnd?: boolean; run?: string }) => tailSession(context, id, { afterRev: revOf(options.after), untilEnd: options.untilEnd === true, runId: options.run })));

  session.command("send <ID> <TEXT>").description("Send a message to a session (TEXT may be @FILE); the session is made if there is none")
    .option("--agent <NAME>", "the agent for a new session").addOption(new Option("--mode <MODE>", "what to do while it is busy").choices(MODES)).option("--wait", "wait until the run ends and print its answer; exit code 8 unless it completed, 9 if no session took it")
    .option("--idempotency-key <KEY>", "sending twice with one key is sending once")
    .addHelpText("after", "\nExamples:\n  docket session send ord-1001 \"Where is my parcel?\" --wait\n  docket session send notes @letter.txt --agent assistant --mode interrupt")
    .action(run(send));

  session.command("cancel <ID>").description("Cancel the session's open run")
    .option("--reason <TEXT>", "for the journal and the audit", "").option("--run <RUN>", "only if this is the open run")
    .addHelpText("after", "\nExample:\n  docket session cancel ord-1001 --reason \"wrong customer\"")
    .action(run(cancel));

  session.command("close <ID>").description("Close a session: what waits is rejected, the open run is cancelled, and it takes no more events")
    .option("--reason <TEXT>", "for the journal and the audit", "")
    .addHelpText("after", "\nExample:\n  docket session close ord-1001 --reason \"the customer has left\"")
    .action(run((context: CliContext, id: string, options: { reason: string }) => order(context, id, "close", options)));

  session.command("delete <ID>").description("Delete a session at rest: its conversation is gone at once, its journal is erased a day after its last entry (administrators)")
    .option("--reason <TEXT>", "for the audit", "").option("--yes", "do not ask")
    .addHelpText("after", "\nExample:\n  docket session delete ord-1001 --reason \"the customer asked for it\" --yes")
    .action(run(remove));

  historyCommands(session, run);
  allowanceCommands(session, run);
  session.command("release <ID>").description("End a session's quarantine: it goes on with what is stored (administrators; look at it first)")
    .option("--reason <TEXT>", "for the journal and the audit", "")
    .addHelpText("after", "\nExamples:\n  docket session show ord-1001\n  docket session release ord-1001 --reason \"journal restored from last night's copy\"")
    .action(run((context: CliContext, id: string, options: { reason: string }) => order(context, id, "release", options)));
}

async function list(context: CliContext, options: WatchOptions & { status?: string; agent?: string; search?: string; quarantined?: boolean; limit: string; cursor?: string }): Promise<ExitCode> {
  const query = queryOf({ status: options.status, agent: options.agent, q: options.search, quarantined: options.quarantined === true ? "true" : undefined, limit: options.limit, cursor: options.cursor });
  return showList(context, options, {
    fetch: () => context.console.get(`/v1/sessions${query}`, SessionPage), id: (s) => s.sessionId, empty: "no sessions; start one: docket session send my-session \"Hello\"",
    columns: (nowMs) => ({
      SESSION: (s) => s.sessionId, AGENT: (s) => s.agent, STATUS: (s) => s.quarantine === undefined ? s.status : `${s.status} (quarantined)`, "WAITING FOR": (s) => clip(s.waitingFor, 40), QUEUE: (s) => String(s.mailboxLength), COST: (s) => `$${s.costUsd.toFixed(4)}`, CHANGED: (s) => relative(s.updatedAtMs, nowMs),
    }),
  });
}

async function show(context: CliContext, id: string): Promise<ExitCode> {
  const view = await context.console.get(`/v1/sessions/${segment(id)}`, StaleView);
  if (view.stale) context.printer.say("the session itself does not answer; this is what the console knew last");
  const { summary } = view;
  const nowMs = Date.now();
  context.printer.one(view, () => fields([
    ["session", summary.sessionId], ["tenant", summary.tenant], ["agent", `${summary.agent} (${summary.agentVersion})`], ["status", summary.status], ["quarantined", summary.quarantine === undefined ? undefined : `${summary.quarantine.reason} ${relative(summary.quarantine.sinceMs, nowMs)}: ${summary.quarantine.message}\n${sessionCommand("release", summary.sessionId)}, or close`],
    ["waiting for", summary.waitingFor || undefined], ["run", summary.runId],
    ["revision", String(summary.rev)], ["mailbox", String(summary.mailboxLength)], ["calls", `${String(summary.modelCalls)} model, ${String(summary.toolCalls)} tool`], ["tokens", `${String(summary.inputTokens)} in, ${String(summary.outputTokens)} out`],
    ["cost", `$${summary.costUsd.toFixed(4)}`], ["changed", relative(summary.updatedAtMs, nowMs)], ["due", summary.nextDueAtMs === undefined ? undefined : relative(summary.nextDueAtMs, nowMs)],
    ...view.approvals.map((a) => ["approval", `${a.approvalId} ${a.tool ?? a.kind} risk ${a.risk}, expires ${relative(a.expiresAtMs, nowMs)}`] as const),
    ...(view.allowances ?? []).map((a) => ["allowed", `${a.allowanceId} ${a.tool}${a.where === undefined ? "" : ` where ${a.where}`} by ${a.grantedBy}, ends ${relative(a.expiresAtMs, nowMs)}${a.usesLeft === undefined ? "" : ` or after ${String(a.usesLeft)} more`}`] as const),
    ...view.unknownCalls.map((u) => ["unknown", `${u.callId} ${u.tool}`] as const),
    ...view.recentRuns.slice(-10).map((r) => ["ended", `${r.runId} ${r.outcome}${r.code === undefined ? "" : ` (${r.code})`} ${relative(r.endedAtMs, nowMs)}`] as const),
  ]));
  return EXIT.ok;
}

async function send(context: CliContext, id: string, text: string, options: { agent?: string; mode?: string; wait?: boolean; idempotencyKey?: string }): Promise<ExitCode> {
  const body = { text: textOrFile(context.io, text), ...(options.agent === undefined ? {} : { agent: options.agent }), ...(options.mode === undefined ? {} : { mode: options.mode }) };
  // A key of our own: should the answer get lost, the person can send again without a second run.
  const key = options.idempotencyKey ?? randomUUID();
  const { body: accepted } = await context.gateway.post(`/v1/sessions/${segment(id)}/events`, body, Accepted, { "idempotency-key": key });
  context.printer.say(`accepted: run ${accepted.runId} of session ${accepted.sessionId} (agent ${accepted.agent})`);
  if (options.wait === true) return followRun(context, accepted.sessionId, accepted.runId);
  context.printer.one(accepted, () => fields([["session", accepted.sessionId], ["run", accepted.runId], ["event", accepted.eventId], ["watch", sessionCommand("tail", accepted.sessionId, "--run", accepted.runId)]]));
  return EXIT.ok;
}

async function cancel(context: CliContext, id: string, options: { reason: string; run?: string }): Promise<ExitCode> {
  const body = { reason: options.reason, ...(options.run === undefined ? {} : { runId: options.run }) };
  const { body: answer } = await context.console.post(`/v1/sessions/${segment(id)}/cancel`, body, Ordered, { "idempotency-key": randomUUID() });
  context.printer.say("the command is on its way; the session decides what there is to cancel");
  context.printer.one(answer, () => fields([["session", answer.sessionId], ["event", answer.eventId], ["watch", sessionCommand("tail", answer.sessionId, "--until-end")]]));
  return EXIT.ok;
}

async function remove(context: CliContext, id: string, options: { reason: string; yes?: boolean }): Promise<ExitCode> {
  const { io } = context;
  if (options.yes !== true) {
    if (!io.interactive) throw new CliError(EXIT.usage, "needs_yes", "nobody is at the terminal to confirm", "add --yes");
    if (!/^y(es)?$/i.test((await io.ask(`delete session ${id} for good? y/N `)).trim())) throw new CliError(EXIT.failed, "not_confirmed", "not confirmed; nothing was sent");
  }
  return await order(context, id, "delete", options);
}

async function order(context: CliContext, id: string, what: "close" | "delete" | "release", options: { reason: string }): Promise<ExitCode> {
  const { body: answer } = await context.console.post(`/v1/sessions/${segment(id)}/${what}`, { reason: options.reason }, Ordered, { "idempotency-key": randomUUID() });
  context.printer.say("the command is on its way; the session carries it out");
  context.printer.one(answer, () => fields([["session", answer.sessionId], ["event", answer.eventId], ["look", sessionCommand("show", answer.sessionId)]]));
  return EXIT.ok;
}

function revOf(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new CliError(EXIT.usage, "usage", `--after: got ${text}, expected a revision`);
  return Number(text);
}
