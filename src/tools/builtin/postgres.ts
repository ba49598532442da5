/**
 * Owns: one read-only query on PostgreSQL. Four locks: the session and the transaction are read-only; the statement is
 * wrapped in a cursor over a sub-select, which takes nothing but a SELECT without data-modifying parts; the extended
 * protocol takes one statement only; the connection ends after it.
 */
import pg from "pg";
import { ToolFailure } from "../../agent/tool-failure.js";
import { MAX_ROW_BYTES, type SqlQuery, type SqlRows } from "./sql-query.js";

const CONNECT_TIMEOUT_MS = 5_000;

export async function queryPostgres(address: string, query: SqlQuery): Promise<SqlRows> {
  const client = new pg.Client({
    connectionString: address, application_name: "docket-tools", connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    options: `-c default_transaction_read_only=on -c statement_timeout=${String(query.timeoutMs)} -c idle_in_transaction_session_timeout=${String(query.timeoutMs)}`,
  });
  // Without a listener a connection that breaks would end the process.
  client.on("error", () => undefined);
  const onAbort = (): void => { void client.end(); };
  query.signal.addEventListener("abort", onAbort, { once: true });
  try {
    await client.connect();
    return await read(client, query);
  } catch (error) {
    throw failureOf(error);
  } finally {
    query.signal.removeEventListener("abort", onAbort);
    await client.end().catch(() => undefined);
  }
}

async function read(client: pg.Client, query: SqlQuery): Promise<SqlRows> {
  await client.query("BEGIN TRANSACTION READ ONLY");
  const inner = query.text.trim().replace(/;+$/, "");
  const declare = `DECLARE docket NO SCROLL CURSOR FOR SELECT left(row_to_json(q)::text, ${String(MAX_ROW_BYTES)}) AS line FROM (\n${inner}\n) q`;
  await client.query({ text: declare, values: [...query.params], queryMode: "extended" } as pg.QueryConfig);
  const { rows } = await client.query<{ line: string }>(`FETCH ${String(query.maxRows + 1)} FROM docket`);
  return { rows: rows.slice(0, query.maxRows).map((row) => whole(row.line)), more: rows.length > query.maxRows };
}

/** A row that was cut is no JSON any more: it becomes a text. */
function whole(line: string): string {
  return line.length < MAX_ROW_BYTES ? line : JSON.stringify(`${line} …`);
}

function failureOf(error: unknown): ToolFailure {
  const message = error instanceof Error ? error.message : String(error);
  const found = (error as { code?: unknown } | undefined)?.code;
  const code = typeof found === "string" ? found : "";
  // 57014: our own statement timeout. The same query would be too slow again.
  if (code === "57014") return ToolFailure.permanent("the query took too long", { cause: error });
  // Classes 08 (connection), 53 (resources), 57 (stopped, timed out) and errors of the network may pass.
  const transient = /^(08|53|57|40)/.test(code) || /^E[A-Z]+$/.test(code) || /timeout|terminated/i.test(message);
  return transient ? ToolFailure.transient(`the database did not answer: ${message}`, { cause: error }) : ToolFailure.permanent(`the query failed: ${message}`, { cause: error });
}
