/** Owns: `docket audit`: reading it, taking a copy, and checking a copy without any server. */
import { createReadStream, existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { resolve } from "node:path";
import type { Command } from "commander";
import { z } from "zod";
import { AuditChainState, AuditContent, AuditLine } from "../../contracts/audit.js";
import { Problem } from "../../contracts/problems.js";
import { verifyAuditFile, type AuditFileReport } from "../../platform/audit-file.js";
import { loadTrust } from "../../platform/keys.js";
import { queryOf, type CliContext, type Runner } from "../context.js";
import { keysDirOf } from "../data-dir.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import type { CliIo } from "../io.js";
import { clip, counted, fields, relative } from "../output.js";
import { savable, saveAnswer, type SaveOptions } from "../save.js";
import { showList, watchable, type WatchOptions } from "../watch.js";

const AuditPage = z.object({ items: z.array(AuditContent.extend({ seq: z.number() })), nextCursor: z.string().optional() });
interface VerifyOptions { readonly keysDir?: string; readonly head?: string; readonly atLeast?: string }

export function auditCommands(program: Command, run: Runner): void {
  const audit = program.command("audit").description("The audit: who did what; a copy of it, and whether a copy is whole and true");

  watchable(audit.command("list").description("List rows, the latest first (administrators)"))
    .option("--limit <N>", "how many", "50").option("--cursor <CURSOR>", "go on where the page before ended")
    .addHelpText("after", "\nExample:\n  docket audit list --limit 20")
    .action(run(list));

  audit.command("state").description("Say whether the chain holds, how far the console has checked it, and what it has signed. Exit code 8 where it does not hold")
    .addHelpText("after", "\nExample:\n  docket audit state")
    .action(run(state));

  savable(audit.command("export").description("Take a copy, as JSON Lines that end with a signed head"))
    .option("--from <SEQ>", "from this row on", "1")
    .addHelpText("after", "\nExample:\n  docket audit export --out audit.jsonl && docket audit verify audit.jsonl")
    .action(run(exportRows));

  audit.command("verify <FILE>").description("Check a copy offline: every row, their order, the signatures, and that nothing is missing. Exit code 8 with the first bad row")
    .option("--keys-dir <DIR>", "the folder with trust.jwks.json (default: that of the data folder)").option("--head <FILE>", "another export, or a signed head, that was kept elsewhere: the copy must continue it").option("--at-least <SEQ>", "the copy must reach this row")
    .addHelpText("after", "\nExamples:\n  docket audit verify audit.jsonl\n  docket audit verify audit.jsonl --keys-dir /mnt/keys --head last-month.jsonl")
    .action(run(verify));
}

async function list(context: CliContext, options: WatchOptions & { limit: string; cursor?: string }): Promise<ExitCode> {
  return showList(context, options, {
    fetch: () => context.console.get(`/v1/audit${queryOf({ limit: options.limit, cursor: options.cursor })}`, AuditPage), id: (i) => String(i.seq), empty: "nothing was done yet",
    columns: (nowMs) => ({ ROW: (i) => String(i.seq), AGE: (i) => relative(i.atMs, nowMs), WHO: (i) => i.principalId === "" ? "-" : i.principalId, ACTION: (i) => i.action, TARGET: (i) => clip(i.target, 40), OUTCOME: (i) => i.outcome, REASON: (i) => clip(i.reason, 50) }),
  });
}

async function state({ console: api, printer }: CliContext): Promise<ExitCode> {
  const chain = await api.get("/v1/audit/chain", AuditChainState);
  const nowMs = Date.now();
  printer.one(chain, () => fields([
    ["chain", chain.broken === null ? "holds" : `BROKEN at row ${String(chain.broken.seq)}: ${chain.broken.reason}`], ["rows", `${String(chain.firstSeq)} to ${String(chain.headSeq)}`],
    ["checked", chain.verifiedAtMs === null ? "not yet" : `to row ${String(chain.verifiedSeq)}, ${relative(chain.verifiedAtMs, nowMs)}`],
    ["signed", chain.signedAtMs === null ? "not yet" : `to row ${String(chain.signedSeq)}, ${relative(chain.signedAtMs, nowMs)}`], ["installation", chain.installation],
  ]));
  return chain.broken === null ? EXIT.ok : EXIT.negative;
}

async function exportRows(context: CliContext, options: SaveOptions & { from: string }): Promise<ExitCode> {
  const file = await saveAnswer(context, `/v1/audit/export${queryOf({ from: options.from })}`, options);
  if (file !== undefined) context.printer.say(`written to ${file}; docket audit verify ${options.out ?? ""} checks it`);
  return EXIT.ok;
}

async function verify({ io, printer }: CliContext, file: string, options: VerifyOptions): Promise<ExitCode> {
  const path = resolve(io.cwd, file);
  const trust = await trustOf(io, options.keysDir);
  const atLeast = options.atLeast === undefined ? undefined : Number(options.atLeast);
  if (atLeast !== undefined && !(Number.isSafeInteger(atLeast) && atLeast > 0)) throw new CliError(EXIT.usage, "usage", `--at-least: got ${options.atLeast ?? ""}, expected a row's number`);
  const report = await verifyAuditFile(linesOf(path), {
    trust, nowMs: Date.now(), ...(options.head === undefined ? {} : { knownHead: headIn(resolve(io.cwd, options.head)) }), ...(atLeast === undefined ? {} : { atLeastSeq: atLeast }),
  });
  const { fault } = report;
  printer.one(report, () => fault === null ? fields([
    ["audit", "whole and true"], ["rows", `${String(report.firstSeq)} to ${String(report.lastSeq)}${report.partial ? " (older rows were left out)" : ""}${report.hidden === 0 ? "" : `; of ${String(report.hidden)} the hash only, they are other tenants'`}`],
    ["signed", `${new Date(report.signedAtMs ?? 0).toISOString()}, ${counted(report.heads, "head")}`], ["installation", report.installation],
  ]) : fields([["audit", `NOT TRUE: ${fault.reason}`], ["first bad row", String(fault.seq)], ["line", String(fault.line)], ["before it", soundness(report, fault.seq)]]));
  return fault === null ? EXIT.ok : EXIT.negative;
}

/** What can be said of the rows before the first bad one. That they fit together anybody can bring about; a signature stands for what it covers. */
function soundness({ firstSeq, lastSeq, signedSeq }: AuditFileReport, faultSeq: number): string {
  const last = Math.min(lastSeq, faultSeq - 1), signed = Math.min(signedSeq, last);
  if (last < firstSeq || last === 0) return "nothing";
  return `rows ${String(firstSeq)} to ${String(last)} fit together; ${signed < firstSeq ? "no signature stands for them" : signed === last ? "signed" : `signed up to row ${String(signed)}`}`;
}

async function trustOf(io: CliIo, keysDir: string | undefined): ReturnType<typeof loadTrust> {
  try {
    return await loadTrust(keysDir === undefined ? keysDirOf(io) : resolve(io.cwd, keysDir));
  } catch (error) {
    if (error instanceof Problem) throw new CliError(EXIT.notFound, error.code, error.message, "--keys-dir names the folder that holds the installation's trust.jwks.json; public keys are enough");
    throw error;
  }
}

async function* linesOf(path: string): AsyncGenerator<string, void, undefined> {
  if (!existsSync(path)) throw new CliError(EXIT.notFound, "not_found", `${path}: there is no such file`);
  yield* createInterface({ input: createReadStream(path, "utf8"), crlfDelay: Infinity });
}

/** The last signed head of an export, or the head itself. */
function headIn(path: string): string {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new CliError(EXIT.usage, "file_unreadable", `${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (/^[\w-]+\.[\w-]+\.[\w-]+$/.test(text.trim())) return text.trim();
  const last = AuditLine.safeParse(jsonOf(text.trimEnd().split("\n").at(-1) ?? ""));
  if (last.success && last.data.type === "head") return last.data.jws;
  throw new CliError(EXIT.invalid, "no_head", `${path} is no signed head, and does not end with one`, "an export ends with its head");
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
