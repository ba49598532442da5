/** Owns: where the CLI's gateway, console and API key come from: flag, environment, the `run.json` of a running `npm run dev`, default. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { readRunRecord, type RunRecord } from "../launcher/run-record.js";
import { CliError, EXIT } from "./exit.js";
import type { CliIo } from "./io.js";

const DEFAULT_GATEWAY = "http://127.0.0.1:7300";
const DEFAULT_CONSOLE = "http://127.0.0.1:7301";

export interface ConnectionFlags { readonly gateway?: string | undefined; readonly console?: string | undefined; readonly apiKey?: string | undefined }
export interface Connection { readonly gatewayUrl: string; readonly consoleUrl: string; readonly apiKey: string | undefined }

export function findConnection(io: CliIo, flags: ConnectionFlags): Connection {
  const run = runRecordOf(io);
  const key = flags.apiKey ?? io.env["DOCKET_API_KEY"] ?? keyFromFile(io.env["DOCKET_API_KEY_FILE"] ?? run?.apiKeyFile);
  return {
    gatewayUrl: baseUrl(flags.gateway ?? io.env["DOCKET_GATEWAY_URL"] ?? run?.gatewayUrl ?? DEFAULT_GATEWAY, "--gateway"),
    consoleUrl: consoleUrlOf(io, flags, run),
    apiKey: key === "" ? undefined : key,
  };
}

/** Where the console is, for a link: without any look at keys. Throws CliError `bad_url`. */
export function consoleUrlOf(io: CliIo, flags: Pick<ConnectionFlags, "console">, run = runRecordOf(io)): string {
  return baseUrl(flags.console ?? io.env["DOCKET_CONSOLE_URL"] ?? run?.consoleUrl ?? DEFAULT_CONSOLE, "--console");
}

/** The data folder: DOCKET_DATA_DIR, or the nearest `.docket` here or above. */
function runRecordOf(io: CliIo): RunRecord | undefined {
  const named = io.env["DOCKET_DATA_DIR"];
  if (named !== undefined) return readRunRecord(resolve(io.cwd, named));
  for (let at = io.cwd; ; at = dirname(at)) {
    if (existsSync(join(at, ".docket", "run.json"))) return readRunRecord(join(at, ".docket"));
    if (dirname(at) === at) return undefined;
  }
}

function keyFromFile(file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new CliError(EXIT.usage, "api_key_unreadable", `the API key file ${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`, "set DOCKET_API_KEY instead");
  }
}

function baseUrl(text: string, from: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) throw new CliError(EXIT.usage, "bad_url", `${from}: got ${JSON.stringify(text)}, expected an http or https URL`);
  return text.replace(/\/+$/, "");
}
