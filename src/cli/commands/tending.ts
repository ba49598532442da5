/** Owns: `docket approval assign`, `snooze`, and `docket session revoke`: what surrounds a decision and never is one. */
import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import { z } from "zod";
import { MAX_SNOOZE_MS } from "../../contracts/api.js";
import { segment, type CliContext, type Runner } from "../context.js";
import { durationMs } from "../duration.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import { plain } from "../output.js";

const Answer = z.object({ target: z.string(), eventId: z.string(), verdict: z.string() });

export function tendingCommands(approval: Command, run: Runner): void {
  approval.command("assign <ID> [WHO]").description("Say whose turn an approval is; gives no right and takes none")
    .option("--nobody", "take it back").option("--reason <TEXT>", "for the journal and the audit", "")
    .addHelpText("after", "\nExamples:\n  docket approval assign apr_4f1c ann\n  docket approval assign apr_4f1c me\n  docket approval assign apr_4f1c --nobody")
    .action(run((context: CliContext, id: string, who: string | undefined, options: { nobody?: boolean; reason: string }) => {
      if ((who === undefined) !== (options.nobody === true)) throw new CliError(EXIT.usage, "usage", "say whose turn it is, or --nobody", "docket approval assign apr_4f1c ann");
      return post(context, `/v1/approvals/${segment(id)}/assign`, { to: who ?? null, reason: options.reason });
    }));
  approval.command("snooze <ID> [FOR]").description("Put an approval off for a while (30m, 4h, 2d; 30d at most); its deadline stays")
    .option("--wake", "look at it again now").option("--reason <TEXT>", "for the journal and the audit", "")
    .addHelpText("after", "\nExamples:\n  docket approval snooze apr_4f1c 2h --reason \"ask the customer first\"\n  docket approval snooze apr_4f1c --wake")
    .action(run((context: CliContext, id: string, time: string | undefined, options: { wake?: boolean; reason: string }) => {
      if ((time === undefined) !== (options.wake === true)) throw new CliError(EXIT.usage, "usage", "say for how long, or --wake", "docket approval snooze apr_4f1c 2h");
      return post(context, `/v1/approvals/${segment(id)}/snooze`, { untilMs: time === undefined ? null : Date.now() + durationMs("FOR", time, { atMostMs: MAX_SNOOZE_MS }), reason: options.reason });
    }));
}

export function allowanceCommands(session: Command, run: Runner): void {
  session.command("revoke <ID> <ALLOWANCE>").description("End an allowance: the tool asks again (docket session show lists them)")
    .option("--reason <TEXT>", "for the journal and the audit", "")
    .addHelpText("after", "\nExample:\n  docket session revoke ord-1001 alw_91c2 --reason \"not for this customer\"")
    .action(run((context: CliContext, id: string, allowance: string, options: { reason: string }) => post(context, `/v1/sessions/${segment(id)}/allowances/${segment(allowance)}/revoke`, { reason: options.reason })));
}

async function post({ console, printer }: CliContext, path: string, body: object): Promise<ExitCode> {
  const { status, body: answer } = await console.post(path, body, Answer, { "idempotency-key": randomUUID() });
  if (status === 202) {
    printer.one(answer, () => "");
    throw new CliError(EXIT.timeout, "not_known_yet", "it was sent, but the session has not said yet what became of it", `docket approval show ${answer.target}`);
  }
  printer.one(answer, () => `${plain(answer.verdict)}\n`);
  return EXIT.ok;
}
