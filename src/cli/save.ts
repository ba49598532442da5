/** Owns: what the server sends as a file: to stdout, or into a file that is whole or not there, and that replaces another one only when that is asked for. */
import { open, rename, unlink } from "node:fs/promises";
import { resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Command } from "commander";
import { failureOf } from "./client.js";
import type { CliContext } from "./context.js";
import { CliError, EXIT } from "./exit.js";

export interface SaveOptions { readonly out?: string; readonly force?: boolean }

export function savable(command: Command): Command {
  return command.option("--out <FILE>", "into this file (default: stdout)").option("--force", "with --out: replace the file where there is one");
}

/** Where it was written to; undefined for stdout. Throws CliError `file_exists`, `file_unwritable`. */
export async function saveAnswer({ io, console: api, connection }: CliContext, path: string, { out, force }: SaveOptions): Promise<string | undefined> {
  const ask = async (): Promise<NonNullable<Response["body"]>> => {
    const { body } = await api.open(path, {}, io.interrupted);
    if (body === null) throw new CliError(EXIT.failed, "unexpected_answer", "the console sent nothing to write down");
    return body;
  };
  try {
    if (out !== undefined) return await intoFile(ask, resolve(io.cwd, out), force === true);
    const decoder = new TextDecoder();
    for await (const chunk of await ask()) io.out(decoder.decode(chunk as Uint8Array, { stream: true }));
    return undefined;
  } catch (error) {
    const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
    if (code === "EEXIST") throw new CliError(EXIT.conflict, "file_exists", `${resolve(io.cwd, out ?? "")} is there already, and was left as it is`, "name another file, or --force");
    if (/^E(ACCES|NOENT|ISDIR|NOTDIR|ROFS|NOSPC|PERM)$/.test(code)) throw new CliError(EXIT.failed, "file_unwritable", `the copy cannot be written: ${error instanceof Error ? error.message : code}`);
    throw failureOf(error, io.interrupted, `the console at ${connection.consoleUrl}`);
  }
}

/** Nothing is asked of the server before there is a file to write to. Replacing is done at the end and at once: a copy that breaks off leaves the old file as it was. */
async function intoFile(ask: () => Promise<NonNullable<Response["body"]>>, file: string, replace: boolean): Promise<string> {
  const target = replace ? `${file}.part` : file;
  const handle = await open(target, replace ? "w" : "wx", 0o600);
  try {
    await pipeline(Readable.fromWeb(await ask()), handle.createWriteStream());
    if (replace) await rename(target, file);
    return file;
  } catch (error) {
    await handle.close().catch(() => undefined);
    await unlink(target).catch(() => undefined);
    throw error;
  }
}
