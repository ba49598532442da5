/** Owns: `docket dlq`: what was given up, and sending it again. */
import type { Command } from "commander";
import { z } from "zod";
import { DeadLetterItem, DeadLetterPage } from "../../contracts/api.js";
import { queryOf, segment, textOrFile, type CliContext, type Runner } from "../context.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import { clip, fields, relative } from "../output.js";

const Redriven = z.object({ deadLetterId: z.string(), redrive: z.number(), action: z.string(), dryRun: z.boolean(), sessionId: z.string().optional(), eventId: z.string().optional() });

export function dlqCommands(program: Command, run: Runner): void {
  const dlq = program.command("dlq").description("Dead letters: what was given up, why, and sending it again");

  dlq.command("list").description("List dead letters, the latest first")
    .option("--state <STATE>", "dead, redriven or discarded").option("--kind <KIND>", "event, tool_request, tool_result, decision, journal, approval or unreadable").option("--session <ID>", "only this session's")
    .option("--limit <N>", "how many", "50").option("--cursor <CURSOR>", "go on where the page before ended")
    .addHelpText("after", "\nExample:\n  docket dlq list --state dead --kind event")
    .action(run(list));

  dlq.command("show <ID>").description("Show one dead letter, whole")
    .addHelpText("after", "\nExample:\n  docket dlq show dl_9a02")
    .action(run(show));

  dlq.command("redrive <ID>").description("Send a dead event again: as a new event with a new id and expiry")
    .requiredOption("--reason <TEXT>", "for the audit").option("--dry-run", "say what would be sent, and send nothing").option("--payload <JSON>", "send this event instead (or @FILE); needs the approver role")
    .option("--redrive <N>", "which redrive this is; needed from the second one on")
    .addHelpText("after", "\nExamples:\n  docket dlq redrive dl_9a02 --reason \"shop is back\"\n  docket dlq redrive dl_9a02 --reason \"fixed total\" --payload @event.json --dry-run")
    .action(run(redrive));
}

async function list(context: CliContext, options: { state?: string; kind?: string; session?: string; limit: string; cursor?: string }): Promise<ExitCode> {
  const page = await context.console.get(`/v1/dead-letters${queryOf({ state: options.state, kind: options.kind, session: options.session, limit: options.limit, cursor: options.cursor })}`, DeadLetterPage);
  const nowMs = Date.now();
  context.printer.list(page, {
    "DEAD LETTER": (i) => i.letter.deadLetterId, KIND: (i) => i.letter.kind, REASON: (i) => i.letter.reason, SESSION: (i) => i.letter.sessionId ?? "-", TRIES: (i) => String(i.letter.tries),
    STATE: (i) => i.redriveCount === 0 ? i.state : `${i.state} (${String(i.redriveCount)})`, AGE: (i) => relative(i.receivedAtMs, nowMs), MESSAGE: (i) => clip(i.letter.message, 60),
  }, "no dead letters");
  return EXIT.ok;
}

async function show(context: CliContext, id: string): Promise<ExitCode> {
  const item = await context.console.get(`/v1/dead-letters/${segment(id)}`, DeadLetterItem);
  const { letter } = item;
  const nowMs = Date.now();
  context.printer.one(item, () => fields([
    ["dead letter", letter.deadLetterId], ["state", item.redriveCount === 0 ? item.state : `${item.state}, redriven ${String(item.redriveCount)} times`], ["kind", letter.kind], ["reason", `${letter.reason}: ${letter.message}`],
    ["from", `${letter.topic} (${letter.app})`], ["session", letter.sessionId], ["run", letter.runId], ["call", letter.callId === undefined ? undefined : `${letter.callId} ${letter.tool ?? ""}`], ["tries", String(letter.tries)],
    ["failed", `first ${relative(letter.firstFailedAtMs, nowMs)}, last ${relative(letter.lastFailedAtMs, nowMs)}`], ["event", letter.envelope?.id === undefined ? undefined : `${letter.envelope.type ?? ""} ${letter.envelope.id} from ${letter.envelope.source ?? ""}`],
    [letter.payloadEncoding === "base64" ? "payload (base64)" : "payload", letter.payload],
  ]));
  return EXIT.ok;
}

async function redrive(context: CliContext, id: string, options: { reason: string; dryRun?: boolean; payload?: string; redrive?: string }): Promise<ExitCode> {
  const number = options.redrive === undefined ? undefined : Number(options.redrive);
  if (number !== undefined && !(Number.isInteger(number) && number > 0)) throw new CliError(EXIT.usage, "usage", `--redrive: got ${options.redrive ?? ""}, expected a whole number above 0`);
  const body = {
    reason: options.reason, dryRun: options.dryRun === true, ...(number === undefined ? {} : { redrive: number }),
    ...(options.payload === undefined ? {} : { payload: textOrFile(context.io, options.payload) }),
  };
  const { body: answer } = await context.console.post(`/v1/dead-letters/${segment(id)}/redrive`, body, Redriven);
  context.printer.one(answer, () => fields([["dead letter", answer.deadLetterId], ["redrive", `${String(answer.redrive)}${answer.dryRun ? " (dry run: nothing was sent)" : ""}`], ["session", answer.sessionId], ["event", answer.eventId],
    ["watch", answer.dryRun || answer.sessionId === undefined ? undefined : `docket session tail ${answer.sessionId}`]]));
  return EXIT.ok;
}
