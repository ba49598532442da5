/**
 * Owns: `sql_query`: one read-only statement on a database that the configuration names. The model gives a name, never
 * an address. How reading only is enforced is each driver's own matter (postgres.ts, sqlite.ts); the account given to
 * Docket should have no right to write either.
 */
import { z } from "zod";
import { defineTool } from "../../agent/define-tool.js";
import type { Tool } from "../../agent/definition.js";
import { ToolFailure } from "../../agent/tool-failure.js";
import { suggestion } from "../../contracts/suggest.js";
import { queryPostgres } from "./postgres.js";
import type { SqlQuery, SqlRows } from "./sql-query.js";
import { querySqlite } from "./sqlite.js";

/** `postgres://...`, or `sqlite:<file>`. */
export type SqlConnections = Readonly<Record<string, string>>;

const TIMEOUT_MS = 20_000;

export function sqlTool(connections: SqlConnections): Tool {
  return defineTool({
    name: "sql_query", title: "Query a database", effects: "none", timeoutMs: TIMEOUT_MS + 5_000, outputCapBytes: 64 * 1024,
    description: "Runs one read-only SELECT on a configured database and returns its rows as JSON. Use $1, $2 (PostgreSQL) or ?1, ?2 (SQLite) with `params` for values.",
    input: z.object({
      connection: z.string().min(1).max(64).describe("Name of a configured connection."),
      query: z.string().min(1).max(20_000).describe("A single SELECT."),
      params: z.array(z.union([z.string(), z.number(), z.boolean(), z.null()])).max(100).default([]),
      maxRows: z.int().min(1).max(500).default(100),
    }),
    run: async ({ connection, query, params, maxRows }, context) => {
      const address = Object.hasOwn(connections, connection) ? connections[connection] : undefined;
      if (address === undefined) throw ToolFailure.permanent(`no connection is named "${connection}"${suggestion(connection, Object.keys(connections))}`);
      if (!/^\s*(select|with|values|table)\b/i.test(withoutComments(query))) throw ToolFailure.permanent("only a single SELECT (or WITH, VALUES, TABLE) is allowed");
      const answer = await driverFor(address)(address, { text: query, params, maxRows, timeoutMs: TIMEOUT_MS, signal: context.signal });
      return `{"rows":[${answer.rows.join(",")}],"more":${String(answer.more)}}`;
    },
  });
}

function driverFor(address: string): (address: string, query: SqlQuery) => Promise<SqlRows> {
  if (/^postgres(ql)?:\/\//.test(address)) return queryPostgres;
  if (address.startsWith("sqlite:")) return querySqlite;
  throw ToolFailure.permanent("the connection's address is neither postgres:// nor sqlite:");
}

function withoutComments(query: string): string {
  return query.replace(/^(\s|--[^\n]*\n|\/\*[\s\S]*?\*\/)+/, "");
}
