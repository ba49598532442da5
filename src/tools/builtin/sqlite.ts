/**
 * Owns: one read-only query on a SQLite file. SQLite runs inside the process that asks, and cannot be interrupted from
 * JavaScript: so the query runs in a process of its own, without our environment, and is killed at its deadline.
 */
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { ToolFailure } from "../../agent/tool-failure.js";
import { MAX_ROW_BYTES, type SqlQuery, type SqlRows } from "./sql-query.js";

const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** CommonJS for `node -e`: reads the job from stdin, writes `{rows, more}` or `{error}`. */
const SCRIPT = `
const job = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const answer = (value) => process.stdout.write(JSON.stringify(value));
try {
  const Database = require(job.driver);
  const db = new Database(job.file, { readonly: true, fileMustExist: true, timeout: 2000 });
  const statement = db.prepare(job.text);
  if (!statement.reader || !statement.readonly) throw new Error("the statement does not only read");
  statement.safeIntegers(true);
  const plain = (value) => typeof value === "bigint" ? (Number.isSafeInteger(Number(value)) ? Number(value) : String(value)) : Buffer.isBuffer(value) ? "[" + value.length + " bytes]" : value;
  const rows = [];
  let more = false, bytes = 0;
  // The driver takes ?1 for a name, ? for a place.
  const bound = /\\?\\d/.test(job.text) ? [Object.fromEntries(job.params.map((value, i) => [i + 1, value]))] : job.params;
  for (const row of statement.iterate(...bound)) {
    if (rows.length === job.maxRows || bytes > job.maxBytes) { more = true; break; }
    const line = JSON.stringify(Object.fromEntries(Object.entries(row).map(([key, value]) => [key, plain(value)])));
    const kept = line.length <= job.maxRowBytes ? line : JSON.stringify(line.slice(0, job.maxRowBytes) + " …");
    bytes += kept.length;
    rows.push(kept);
  }
  answer({ rows, more });
} catch (error) {
  answer({ error: String(error && error.message || error) });
}
`;

export async function querySqlite(address: string, query: SqlQuery): Promise<SqlRows> {
  const job = {
    driver: createRequire(import.meta.url).resolve("better-sqlite3"), file: address.slice("sqlite:".length), text: query.text,
    // The driver binds no booleans.
    params: query.params.map((value) => (typeof value === "boolean" ? Number(value) : value)),
    maxRows: query.maxRows, maxRowBytes: MAX_ROW_BYTES, maxBytes: MAX_ANSWER_BYTES / 4,
  };
  const text = await runScript(JSON.stringify(job), query);
  const answer = JSON.parse(text) as { rows?: string[]; more?: boolean; error?: string };
  if (answer.rows === undefined) throw ToolFailure.permanent(`the query failed: ${answer.error ?? "no answer"}`);
  return { rows: answer.rows, more: answer.more === true };
}

function runScript(input: string, query: SqlQuery): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["--max-old-space-size=256", "-e", SCRIPT], { env: {}, stdio: ["pipe", "pipe", "ignore"] });
    const kill = (): void => { child.kill("SIGKILL"); };
    const deadline = setTimeout(kill, query.timeoutMs);
    query.signal.addEventListener("abort", kill, { once: true });
    const chunks: Buffer[] = [];
    let bytes = 0;
    child.stdout.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > MAX_ANSWER_BYTES) kill();
    });
    // A child that is killed before it has read its job breaks the pipe; `close` reports it.
    child.stdin.on("error", () => undefined);
    child.on("error", (error) => { reject(ToolFailure.transient(`the query's process could not be started: ${error.message}`)); });
    child.on("close", (code, signal) => {
      clearTimeout(deadline);
      query.signal.removeEventListener("abort", kill);
      if (code === 0) resolve(Buffer.concat(chunks).toString("utf8"));
      else reject(ToolFailure.permanent(signal === "SIGKILL" ? "the query took too long, or its answer was too large" : `the query's process ended with ${String(code ?? signal)}`));
    });
    child.stdin.end(input);
  });
}
