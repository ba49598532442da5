/** Owns: what every command gets: its global options, its clients, its printer; made once the arguments are parsed. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { z } from "zod";
import { createClient, type Client } from "./client.js";
import { findConnection, type Connection } from "./connection.js";
import { secondsMs } from "./duration.js";
import { CliError, EXIT, type ExitCode } from "./exit.js";
import type { CliIo } from "./io.js";
import { createPrinter, FORMATS, type Printer } from "./output.js";

const GlobalOptions = z.object({
  output: z.enum(FORMATS).default("table"), color: z.enum(["auto", "always", "never"]).default("auto"), quiet: z.boolean().default(false),
  gateway: z.string().optional(), console: z.string().optional(), apiKey: z.string().optional(), timeout: z.string().optional(),
});

export interface CliContext {
  readonly io: CliIo;
  readonly printer: Printer;
  readonly connection: Connection;
  readonly gateway: Client;
  readonly console: Client;
  /** What --timeout said; undefined where it was not given. */
  readonly timeoutMs: number | undefined;
}

const DEFAULT_TIMEOUT_MS = 30_000;

/** Throws CliError `usage` for global options that make no sense. */
export function contextOf(io: CliIo, command: Command): CliContext {
  const parsed = GlobalOptions.safeParse(command.optsWithGlobals());
  if (!parsed.success) throw new CliError(EXIT.usage, "usage", `--${parsed.error.issues[0]?.path.map(String).join(".") ?? ""}: ${parsed.error.issues[0]?.message ?? ""}`);
  const options = parsed.data;
  const connection = findConnection(io, options);
  const timeoutMs = options.timeout === undefined ? undefined : secondsMs("--timeout", options.timeout);
  const client = (url: string, name: string): Client => createClient({ url, name, apiKey: connection.apiKey, timeoutMs: timeoutMs ?? DEFAULT_TIMEOUT_MS, interrupted: io.interrupted });
  return {
    io, connection, timeoutMs, printer: createPrinter(io, { format: options.output, color: options.color, quiet: options.quiet }),
    gateway: client(connection.gatewayUrl, "the gateway"), console: client(connection.consoleUrl, "the console"),
  };
}

/** A command's work; what it returns is the exit code. */
type Work<A extends readonly unknown[]> = (context: CliContext, ...args: A) => Promise<ExitCode>;
/** Makes a commander action of it. */
export type Runner = <A extends readonly unknown[]>(work: Work<A>) => (...args: A) => Promise<void>;

/** Text given as such, or as `@file`; `@@` is an @ that is meant. */
export function textOrFile(io: CliIo, text: string): string {
  if (!text.startsWith("@")) return text;
  if (text.startsWith("@@")) return text.slice(1);
  const file = resolve(io.cwd, text.slice(1));
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new CliError(EXIT.usage, "file_unreadable", `${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** A path segment. */
export const segment = (id: string): string => encodeURIComponent(id);

/** `?a=b` of what is given. */
export function queryOf(values: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams(Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined)).toString();
  return query === "" ? "" : `?${query}`;
}
