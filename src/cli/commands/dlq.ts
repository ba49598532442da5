/** Owns: `docket dlq`: what was given up, and sending it again. */
import { Option, type Command } from "commander";
import { z } from "zod";
import { BulkDiscardAnswer, BulkRedriveAnswer, DeadLetterGroup, DeadLetterItem, DeadLetterPage } from "../../contracts/api.js";
import { DeadLetterKind } from "../../contracts/messages.js";
import { sessionCommand } from "../../contracts/shell-word.js";
import { queryOf, segment, textOrFile, type CliContext, type Runner } from "../context.js";
import { momentMs } from "../duration.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import { clip, fields, relative, times } from "../output.js";
import { showList, watchable, type WatchOptions } from "../watch.js";

const Redriven = z.object({ deadLetterId: z.string(), redrive: z.number(), action: z.string(), dryRun: z.boolean(), sessionId: z.string().optional(), eventId: z.string().optional() });

const Groups = z.object({ items: z.array(DeadLetterGroup) });
/** Skipped letters that are shown in a table; json has all. */
const MAX_SHOWN = 20;

const kindOption = (): Option => new Option("--kind <KIND>", "only letters of this kind").choices(DeadLetterKind.options);
const stateOption = (): Option => new Option("--state <STATE>", "only letters in this state").choices(["dead", "redriven", "discarded"]);

export function dlqCommands(program: Command, run: Runner): void {
  const dlq = program.command("dlq").description("Dead letters: what was given up, why, and sending it again");

  watchable(dlq.command("list").description("List dead letters, the latest first"))
    .addOption(stateOption()).addOption(kindOption()).option("--session <ID>", "only this session's")
    .option("--code <CODE>", "only letters with this reason").option("--fingerprint <FP>", "only letters that died of this").option("--limit <N>", "how many", "50").option("--cursor <CURSOR>", "go on where the page before ended")
    .addHelpText("after", "\nExample:\n  docket dlq list --state dead --kind event")
    .action(run(list));

  dlq.command("show <ID>").description("Show one dead letter, whole")
    .addHelpText("after", "\nExample:\n  docket dlq show dl_9a02")
    .action(run(show));

  const filters = (command: Command): Command => command
    .addOption(kindOption()).option("--code <CODE>", "only letters with this reason").option("--fingerprint <FP>", "only letters that died of this (docket dlq groups)")
    .option("--session <ID>", "only this session's").option("--since <WHEN>", "only letters that came since: 30m, 6h, 2d, or a time").option("--until <WHEN>", "only letters that came before");

  watchable(filters(dlq.command("groups").description("Dead letters that died of the same thing, as one line each"))).addOption(stateOption().default("dead"))
    .addHelpText("after", "\nExample:\n  docket dlq groups --since 6h")
    .action(run(groups));

  filters(dlq.command("redrive [ID]").description("Send a dead letter again, as a new event with a new id and expiry; without ID all that the filters name, the oldest first"))
    .requiredOption("--reason <TEXT>", "for the audit").option("--all", "without ID: all that the filters leave, or all there are").option("--dry-run", "say what would be sent, and send nothing")
    .option("--edit <FILE>", "send the event in this file instead; needs the approver role").option("--payload <JSON>", "the same, as text or @FILE")
    .option("--redrive <N>", "which redrive of this letter it is; needed from the second one on")
    .addHelpText("after", "\nExamples:\n  docket dlq redrive dl_9a02 --reason \"shop is back\"\n  docket dlq redrive dl_9a02 --reason \"fixed total\" --edit event.json --dry-run\n  docket dlq redrive --fingerprint fp_02b1 --since 6h --reason \"shop is back\" --dry-run\n  docket dlq redrive --all --kind event --reason \"mailbox was full\"")
    .action(run(redrive));

  filters(dlq.command("discard [ID]").description("Settle a dead letter without sending it; without ID all that the filters name"))
    .requiredOption("--reason <TEXT>", "for the audit").option("--all", "without ID: all that the filters leave, or all there are").option("--dry-run", "say how many, and settle nothing")
    .addHelpText("after", "\nExamples:\n  docket dlq discard dl_9a02 --reason \"a test\"\n  docket dlq discard --fingerprint fp_02b1 --reason \"shop was rebuilt\" --dry-run")
    .action(run(discard));
}

interface FilterOptions { kind?: string; code?: string; fingerprint?: string; session?: string; since?: string; until?: string }
interface RedriveOptions extends FilterOptions { reason: string; all?: boolean; dryRun?: boolean; edit?: string; payload?: string; redrive?: string }

async function list(context: CliContext, options: WatchOptions & { state?: string; kind?: string; session?: string; code?: string; fingerprint?: string; limit: string; cursor?: string }): Promise<ExitCode> {
  const query = queryOf({ state: options.state, kind: options.kind, session: options.session, reason: options.code, fingerprint: options.fingerprint, limit: options.limit, cursor: options.cursor });
  return showList(context, options, {
    fetch: () => context.console.get(`/v1/dead-letters${query}`, DeadLetterPage), id: (i) => i.letter.deadLetterId, empty: "no dead letters",
    columns: (nowMs) => ({
      "DEAD LETTER": (i) => i.letter.deadLetterId, KIND: (i) => i.letter.kind, REASON: (i) => i.letter.reason, SESSION: (i) => i.letter.sessionId ?? "-", TRIES: (i) => String(i.letter.tries),
      STATE: (i) => i.redriveCount === 0 ? i.state : `${i.state} (${String(i.redriveCount)})`, AGE: (i) => relative(i.receivedAtMs, nowMs), MESSAGE: (i) => clip(i.letter.message, 60),
    }),
  });
}

async function show(context: CliContext, id: string): Promise<ExitCode> {
  const item = await context.console.get(`/v1/dead-letters/${segment(id)}`, DeadLetterItem);
  const { letter } = item;
  const nowMs = Date.now();
  context.printer.one(item, () => fields([
    ["dead letter", letter.deadLetterId], ["state", item.redriveCount === 0 ? item.state : `${item.state}, redriven ${times(item.redriveCount)}`], ["kind", letter.kind], ["fingerprint", item.fingerprint || undefined], ["reason", `${letter.reason}: ${letter.message}`],
    ["from", `${letter.topic} (${letter.app})`], ["session", letter.sessionId], ["run", letter.runId], ["call", letter.callId === undefined ? undefined : `${letter.callId} ${letter.tool ?? ""}`], ["tries", String(letter.tries)],
    ["failed", `first ${relative(letter.firstFailedAtMs, nowMs)}, last ${relative(letter.lastFailedAtMs, nowMs)}`], ["event", letter.envelope?.id === undefined ? undefined : `${letter.envelope.type ?? ""} ${letter.envelope.id} from ${letter.envelope.source ?? ""}`],
    [letter.payloadEncoding === "base64" ? "payload (base64)" : "payload", letter.payload],
  ]));
  return EXIT.ok;
}

async function groups(context: CliContext, options: WatchOptions & FilterOptions & { state: string }): Promise<ExitCode> {
  return showList(context, options, {
    fetch: () => {
      const { kind, reason, fingerprint, session, sinceMs, untilMs } = filterOf(options, Date.now());
      return context.console.get(`/v1/dead-letters/groups${queryOf({ state: options.state, kind, reason, fingerprint, session, sinceMs: textOf(sinceMs), untilMs: textOf(untilMs) })}`, Groups);
    },
    id: (g) => g.fingerprint, empty: "no dead letters",
    columns: (nowMs) => ({
      FINGERPRINT: (g) => g.fingerprint, COUNT: (g) => String(g.count), DEAD: (g) => String(g.dead), KIND: (g) => g.kind, REASON: (g) => g.reason, FIRST: (g) => relative(g.firstAtMs, nowMs), LAST: (g) => relative(g.lastAtMs, nowMs),
      EXAMPLE: (g) => g.sampleId, MESSAGE: (g) => clip(g.message, 60),
    }),
  });
}

async function redrive(context: CliContext, id: string | undefined, options: RedriveOptions): Promise<ExitCode> {
  if (id === undefined) return await redriveMany(context, options);
  const bulk = ["all", "kind", "code", "fingerprint", "session", "since", "until"].filter((name) => name in options);
  if (bulk.length > 0) throw new CliError(EXIT.usage, "usage", `--${bulk[0] ?? ""} chooses among many letters, and an ID was given`, "leave one of the two out");
  if (options.edit !== undefined && options.payload !== undefined) throw new CliError(EXIT.usage, "usage", "--edit and --payload are the same thing", "give one");
  const payload = options.edit === undefined ? options.payload : `@${options.edit}`;
  const number = options.redrive === undefined ? undefined : Number(options.redrive);
  if (number !== undefined && !(Number.isInteger(number) && number > 0)) throw new CliError(EXIT.usage, "usage", `--redrive: got ${options.redrive ?? ""}, expected a whole number above 0`);
  const body = {
    reason: options.reason, dryRun: options.dryRun === true, ...(number === undefined ? {} : { redrive: number }),
    ...(payload === undefined ? {} : { payload: textOrFile(context.io, payload) }),
  };
  const { body: answer } = await context.console.post(`/v1/dead-letters/${segment(id)}/redrive`, body, Redriven);
  context.printer.one(answer, () => fields([["dead letter", answer.deadLetterId], ["redrive", `${String(answer.redrive)}${answer.dryRun ? " (dry run: nothing was sent)" : ""}`], ["session", answer.sessionId], ["event", answer.eventId],
    ["watch", answer.dryRun || answer.sessionId === undefined ? undefined : sessionCommand("tail", answer.sessionId)]]));
  return EXIT.ok;
}

/** Page by page. Ends 8 where letters were skipped: they need an edited payload, or another answer. */
async function redriveMany(context: CliContext, options: RedriveOptions): Promise<ExitCode> {
  const single = (["edit", "payload", "redrive"] as const).find((name) => options[name] !== undefined);
  if (single !== undefined) throw new CliError(EXIT.usage, "usage", `--${single} is for one letter`, "give its ID");
  const filter = filterOf(options, Date.now());
  if (options.all !== true && Object.values(filter).every((value) => value === undefined)) throw new CliError(EXIT.usage, "usage", "which dead letters? an ID, a filter or --all is needed", "docket dlq groups shows what there is");
  const total = { dryRun: options.dryRun === true, matched: 0, redriven: 0, byKind: {} as Record<string, number>, skipped: [] as BulkRedriveAnswer["skipped"] };
  let cursor: string | undefined;
  do {
    const body = { reason: options.reason, dryRun: total.dryRun, all: options.all === true, filter, ...(cursor === undefined ? {} : { cursor }) };
    const { body: page } = await context.console.post("/v1/dead-letters/redrive", body, BulkRedriveAnswer);
    total.matched = cursor === undefined ? page.matched : total.matched;
    total.redriven += page.redriven;
    total.skipped.push(...page.skipped);
    for (const [kind, count] of Object.entries(page.byKind)) total.byKind[kind] = (total.byKind[kind] ?? 0) + count;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  context.printer.one(total, () => fields([
    ["dead letters", String(total.matched)], [total.dryRun ? "would be redriven" : "redriven", `${String(total.redriven)}${Object.entries(total.byKind).map(([kind, count]) => `, ${String(count)} ${kind}`).join("")}`],
    ["skipped", String(total.skipped.length)], ...total.skipped.slice(0, MAX_SHOWN).map(({ deadLetterId, code, message }) => ["", `${deadLetterId} ${code}: ${clip(message, 120)}`] as const),
  ]));
  return total.skipped.length > 0 ? EXIT.negative : EXIT.ok;
}

async function discard(context: CliContext, id: string | undefined, options: FilterOptions & { reason: string; all?: boolean; dryRun?: boolean }): Promise<ExitCode> {
  const filter = filterOf(options, Date.now());
  const filtered = options.all === true || Object.values(filter).some((value) => value !== undefined);
  if (id !== undefined && (filtered || options.dryRun === true)) throw new CliError(EXIT.usage, "usage", "filters, --all and --dry-run choose among many letters, and an ID was given", "leave one of the two out");
  if (id !== undefined) {
    const { body } = await context.console.post(`/v1/dead-letters/${segment(id)}/discard`, { reason: options.reason }, z.object({ deadLetterId: z.string(), state: z.string() }));
    context.printer.one(body, () => fields([["dead letter", body.deadLetterId], ["state", body.state]]));
    return EXIT.ok;
  }
  if (!filtered) throw new CliError(EXIT.usage, "usage", "which dead letters? an ID, a filter or --all is needed", "docket dlq groups shows what there is");
  const total = { dryRun: options.dryRun === true, matched: 0, discarded: 0 };
  let cursor: string | undefined;
  do {
    const { body: page } = await context.console.post("/v1/dead-letters/discard", { reason: options.reason, dryRun: total.dryRun, all: options.all === true, filter, ...(cursor === undefined ? {} : { cursor }) }, BulkDiscardAnswer);
    total.matched = cursor === undefined ? page.matched : total.matched;
    total.discarded += page.discarded;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  context.printer.one(total, () => fields([["dead letters", String(total.matched)], [total.dryRun ? "would be discarded" : "discarded", String(total.discarded)]]));
  return EXIT.ok;
}

function filterOf(options: FilterOptions, nowMs: number) {
  const { kind, code, fingerprint, session, since, until } = options;
  return { kind, reason: code, fingerprint, session, sinceMs: since === undefined ? undefined : momentMs("--since", since, nowMs), untilMs: until === undefined ? undefined : momentMs("--until", until, nowMs) };
}

function textOf(value: number | undefined): string | undefined { return value === undefined ? undefined : String(value); }
