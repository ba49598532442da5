/** Owns: showing a followed session: the story line by line, text as it is produced, and how it all ended. */
import { SessionView } from "../contracts/api.js";
import { segment, type CliContext } from "./context.js";
import { CliError, EXIT, type ExitCode } from "./exit.js";
import { visible } from "./output.js";
import { landmarks, tell } from "./story.js";
import { followSession, type StreamSink } from "./stream.js";

export interface TailOptions { readonly afterRev: number; readonly untilEnd: boolean; readonly runId: string | undefined }

/** `session tail`. Without an end to wait for it goes on until Ctrl-C or --timeout. */
export async function tailSession(context: CliContext, sessionId: string, options: TailOptions): Promise<ExitCode> {
  const { io, printer } = context;
  const seen = { outcome: undefined as string | undefined, rev: options.afterRev };
  const restRev = options.untilEnd && options.runId === undefined ? await restOf(context, sessionId) : undefined;
  // Already at rest and nothing is left to show: the outcome is the last run's.
  if (restRev !== undefined && restRev.rev !== undefined && restRev.rev <= options.afterRev) return outcomeCode(restRev.lastOutcome);
  const target = { rev: restRev?.rev, runId: options.runId ?? restRev?.runId };
  const sink = sinkOf(context, (entry) => {
    if (printer.format === "table") io.out(tell(entry, printer.colors));
    else io.out(`${JSON.stringify(entry)}\n`);
    seen.outcome = landmarks(entry).ended.at(-1)?.outcome ?? seen.outcome;
    return target.rev !== undefined && entry.rev >= target.rev ? "stop" : "go on";
  }, printer.format === "table" && printer.colors.isColorSupported);
  const end = await followSession(context.gateway, { sessionId, afterRev: options.afterRev, runId: target.runId, timeoutMs: context.timeoutMs, interrupted: io.interrupted }, sink);
  if (end === "timeout") throw timedOut(`session ${sessionId} went on`);
  if (end !== "stopped" && end.deadLetterId !== undefined) sayDead(context, end.code, end.deadLetterId);
  return outcomeCode(end === "stopped" ? (seen.outcome ?? restRev?.lastOutcome) : end.outcome);
}

/** `session send --wait`: waits for one run and prints its answer alone. */
export async function followRun(context: CliContext, sessionId: string, runId: string): Promise<ExitCode> {
  const { io, printer } = context;
  let answer = "";
  const sink = sinkOf(context, (entry) => {
    const { opened, ended } = landmarks(entry);
    for (const approvalId of opened) printer.say(`a person is needed: docket approval show ${approvalId}`);
    answer = ended.find((end) => end.runId === runId)?.text ?? answer;
    return "go on";
  }, false);
  const end = await followSession(context.gateway, { sessionId, afterRev: 0, runId, timeoutMs: context.timeoutMs, interrupted: io.interrupted }, sink);
  if (end === "timeout") throw timedOut(`run ${runId} has not ended`);
  const outcome = end === "stopped" ? "unknown" : end.outcome;
  const deadLetterId = end === "stopped" ? undefined : end.deadLetterId;
  printer.one({ sessionId, runId, outcome, text: answer, ...(deadLetterId === undefined ? {} : { deadLetterId }) }, () => (deadLetterId === undefined ? `${visible(answer)}\n` : ""));
  if (deadLetterId !== undefined) sayDead(context, end === "stopped" ? undefined : end.code, deadLetterId);
  else if (outcome !== "completed") printer.say(`the run ended ${outcome}${end !== "stopped" && end.code !== undefined ? ` (${end.code})` : ""}`);
  return outcomeCode(outcome);
}

function sinkOf({ io, printer }: CliContext, journal: StreamSink["journal"], live: boolean): StreamSink {
  let inLine = false;
  const endLine = (): void => { if (inLine) io.out("\n"); inLine = false; };
  return {
    journal: (entry) => { endLine(); return journal(entry); },
    delta: ({ text }) => {
      if (!live) return;
      io.out(printer.colors.dim(visible(text)));
      inLine = true;
    },
    gap: ({ fromRev, toRev }) => { endLine(); printer.say(`journal entries ${String(fromRev)} to ${String(toRev)} are no longer kept; it can be read from ${String(toRev + 1)} on`); },
    reconnecting: (reason) => { endLine(); printer.say(`reconnecting: ${reason}`); },
  };
}

/** Where following can stop: at the end of the open run, or, at rest already, at the newest revision. */
async function restOf(context: CliContext, sessionId: string): Promise<{ rev?: number; runId?: string; lastOutcome?: string }> {
  const { summary, recentRuns } = await context.gateway.get(`/v1/sessions/${segment(sessionId)}`, SessionView);
  if (summary.runId !== undefined) return { runId: summary.runId };
  const lastOutcome = recentRuns.at(-1)?.outcome;
  return { rev: summary.rev, ...(lastOutcome === undefined ? {} : { lastOutcome }) };
}

function sayDead({ printer }: CliContext, code: string | undefined, deadLetterId: string): void {
  printer.say(`the event never became a run (${code ?? "no reason given"}): docket dlq show ${deadLetterId}`);
}

function outcomeCode(outcome: string | undefined): ExitCode {
  if (outcome === "dead_lettered") return EXIT.deadLettered;
  return outcome === undefined || outcome === "completed" ? EXIT.ok : EXIT.negative;
}

function timedOut(what: string): CliError {
  return new CliError(EXIT.timeout, "timeout", `${what} when --timeout was over`, "it goes on without being watched");
}

