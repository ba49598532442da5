/** Owns: `docket key`: API keys in the installation's key file. Running apps follow the file, so a change counts within seconds. */
import { dirname, join, resolve } from "node:path";
import { Option, type Command } from "commander";
import { DEFAULT_TENANT } from "../../contracts/ids.js";
import { createApiKey, readApiKeyFile, writeApiKeyFile, type ApiKeyRecord } from "../../platform/apikeys.js";
import { Problem } from "../../contracts/problems.js";
import { readKeyUses } from "../../platform/key-uses.js";
import type { CliContext, Runner } from "../context.js";
import { keysDirOf } from "../data-dir.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import type { CliIo } from "../io.js";
import { fields, relative } from "../output.js";
import { SCOPES } from "../scopes.js";

const CLASSES = ["person", "machine"] as const;
const DAY_MS = 86_400_000;
interface Place { readonly keysDir?: string }
interface CreateOptions extends Place { readonly principal: string; readonly class: (typeof CLASSES)[number]; readonly roles: string; readonly scopes: string; readonly tenant: string; readonly expires: string; readonly note?: string }

export function keyCommands(program: Command, run: Runner): void {
  const key = program.command("key").description("API keys: make, list, revoke; in the key file of this machine's installation");
  const place = (command: Command): Command => command.option("--keys-dir <DIR>", "the folder with api-keys.json (default: that of the data folder)");

  place(key.command("create").description("Make a key. It is printed once, and only its hash is kept"))
    .requiredOption("--principal <ID>", "whom it stands for").requiredOption("--scopes <SCOPES>", `what it may be used for, with commas: ${SCOPES.join(", ")}, or *`)
    .option("--roles <ROLES>", "viewer, operator, approver, admin, and names of approver groups, with commas", "viewer").addOption(new Option("--class <CLASS>", "only a person decides approvals").choices(CLASSES).default("machine"))
    .option("--tenant <NAME>", "its tenant", DEFAULT_TENANT).option("--expires <DAYS>", "days until it ends, or never", "90").option("--note <TEXT>", "what it is for")
    .addHelpText("after", "\nExamples:\n  docket key create --principal ci --scopes prompts:write,sessions:read --note \"nightly job\"\n  docket key create --principal ann --class person --roles approver,finance --scopes 'console:read' --expires 30")
    .action(run(create));

  place(key.command("list").description("List keys: whom they stand for, what they may do, when they end and were last used"))
    .addHelpText("after", "\nExample:\n  docket key list -o json")
    .action(run(list));

  place(key.command("revoke <ID>").description("End a key. What was signed in with it ends too")).option("--yes", "do not ask")
    .addHelpText("after", "\nExample:\n  docket key revoke 9a02c4d1e0f3 --yes")
    .action(run(revoke));
}

async function create({ io, printer }: CliContext, options: CreateOptions): Promise<ExitCode> {
  const scopes = words(options.scopes);
  const unknown = scopes.find((scope) => scope !== "*" && !(SCOPES as readonly string[]).includes(scope));
  if (unknown !== undefined || scopes.length === 0) throw new CliError(EXIT.usage, "usage", `--scopes: ${unknown === undefined ? "none given" : `got ${unknown}`}, expected some of ${SCOPES.join(", ")}, or *`);
  const nowMs = Date.now();
  const made = orUsage(() => createApiKey({
    tenant: options.tenant, principalId: options.principal, class: options.class, roles: words(options.roles), scopes, createdAt: new Date(nowMs).toISOString(),
    ...(options.expires === "never" ? {} : { expiresAt: new Date(nowMs + daysOf(options.expires) * DAY_MS).toISOString() }), ...(options.note === undefined ? {} : { note: options.note }),
  }));
  const file = fileOf(io, options);
  await change(file, (records) => [...records, made.record]);
  const { hash: _hash, ...shown } = made.record;
  printer.one({ key: made.key, ...shown, file }, () => fields([["key", made.key], ["id", made.record.id], ["stands for", `${made.record.principalId} (${made.record.class}, tenant ${made.record.tenant})`], ["roles", made.record.roles.join(", ") || "none"], ["scopes", scopes.join(", ")], ["ends", made.record.expiresAt ?? "never"]]));
  printer.say("This is the only time that the key is shown. Running apps take it within seconds.");
  return EXIT.ok;
}

async function list({ io, printer }: CliContext, options: Place): Promise<ExitCode> {
  const file = fileOf(io, options);
  const uses = await readKeyUses(dirname(dirname(file)));
  const nowMs = Date.now();
  const items = (await records(file)).map(({ hash: _hash, ...record }) => {
    const usedAtMs = uses.get(record.id);
    return { ...record, ...(usedAtMs === undefined ? {} : { lastUsedAt: new Date(usedAtMs).toISOString() }) };
  });
  printer.list({ items }, {
    ID: (i) => i.id, PRINCIPAL: (i) => `${i.principalId}${i.tenant === DEFAULT_TENANT ? "" : ` (${i.tenant})`}`, CLASS: (i) => i.class, ROLES: (i) => i.roles.join(",") || "-", SCOPES: (i) => i.scopes.join(",") || "-",
    ENDS: (i) => i.expiresAt === undefined ? "never" : Date.parse(i.expiresAt) <= nowMs ? "ENDED" : `in ${String(Math.ceil((Date.parse(i.expiresAt) - nowMs) / DAY_MS))} d`,
    "LAST USED": (i) => i.lastUsedAt === undefined ? "-" : relative(Date.parse(i.lastUsedAt), nowMs), NOTE: (i) => i.note ?? "",
  }, `no keys in ${file}`);
  return EXIT.ok;
}

async function revoke({ io, printer }: CliContext, id: string, options: Place & { yes?: boolean }): Promise<ExitCode> {
  const file = fileOf(io, options);
  const found = (await records(file)).find((record) => record.id === id);
  if (found === undefined) throw new CliError(EXIT.notFound, "not_found", `${file} has no key ${id}`, "docket key list");
  if (options.yes !== true) {
    if (!io.interactive) throw new CliError(EXIT.usage, "needs_yes", `revoking key ${id} of ${found.principalId} needs a yes`, "--yes says it");
    if (!/^y(es)?$/i.test((await io.ask(`Revoke key ${id} of ${found.principalId}? [y/N] `)).trim())) throw new CliError(EXIT.failed, "not_confirmed", "nothing was revoked");
  }
  await change(file, (all) => all.filter((record) => record.id !== id));
  printer.one({ id, revoked: true }, () => `key ${id} of ${found.principalId} is revoked\n`);
  return EXIT.ok;
}

function fileOf(io: CliIo, { keysDir }: Place): string { return join(keysDir === undefined ? keysDirOf(io) : resolve(io.cwd, keysDir), "api-keys.json"); }

async function records(file: string): Promise<ApiKeyRecord[]> {
  try {
    return await readApiKeyFile(file);
  } catch (error) {
    if (error instanceof Problem) throw new CliError(EXIT.invalid, error.code, error.message);
    throw error;
  }
}

/** Reads and writes with nothing between: two commands at once are not expected of one person; the file is always whole. */
async function change(file: string, work: (records: readonly ApiKeyRecord[]) => ApiKeyRecord[]): Promise<void> {
  try {
    await writeApiKeyFile(file, work(await records(file)));
  } catch (error) {
    if (error instanceof Error && "code" in error && typeof error.code === "string" && /^E[A-Z]+$/.test(error.code)) throw new CliError(EXIT.failed, "file_unwritable", `${file} cannot be written: ${error.message}`, "docket init makes the folder; --keys-dir names another");
    throw error;
  }
}

function orUsage<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw new CliError(EXIT.usage, "usage", `the key cannot be made: ${error instanceof Error ? error.message.slice(0, 300) : String(error)}`);
  }
}

function words(text: string): string[] { return text.split(",").map((word) => word.trim()).filter((word) => word !== ""); }

function daysOf(text: string): number {
  const days = Number(text);
  if (!(days > 0 && days <= 3_650)) throw new CliError(EXIT.usage, "usage", `--expires: got ${text}, expected days (3650 at most), or never`);
  return days;
}
