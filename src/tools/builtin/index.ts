/** Owns: the tools that ship with Docket, and what configures them. */
import type { Tool } from "../../agent/definition.js";
import { Problem } from "../../contracts/problems.js";
import { fileTools } from "./files.js";
import { httpTools, type HttpSettings } from "./http.js";
import { sqlTool, type SqlConnections } from "./sql.js";

export interface BuiltinSettings { readonly http: HttpSettings; readonly sql: SqlConnections }

/** Manifests do not depend on settings, so the build asks with none. */
export function builtinTools(settings: BuiltinSettings = { http: { allowHosts: [] }, sql: {} }): Tool[] {
  return [...httpTools(settings.http), sqlTool(settings.sql), ...fileTools()];
}

const SQL_PREFIX = "DOCKET_SQL_";
const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(:\d{1,5})?$/i;

/**
 * DOCKET_HTTP_ALLOW_HOSTS: `host` or `host:port`, separated by commas. DOCKET_SQL_<NAME>: address of the connection that
 * tools know as <name> (lower case). Throws Problem `config_invalid`.
 */
export function builtinSettingsFrom(env: Readonly<Record<string, string | undefined>>): BuiltinSettings {
  const allowHosts = (env["DOCKET_HTTP_ALLOW_HOSTS"] ?? "").split(",").map((entry) => entry.trim()).filter((entry) => entry !== "");
  for (const entry of allowHosts) {
    if (!HOST.test(entry)) throw new Problem("config_invalid", `DOCKET_HTTP_ALLOW_HOSTS has ${JSON.stringify(entry)}, expected host or host:port`);
  }
  const sql: Record<string, string> = {};
  for (const [key, value] of Object.entries(env)) {
    if (!key.startsWith(SQL_PREFIX) || value === undefined || value === "") continue;
    if (!/^(postgres(ql)?:\/\/|sqlite:)/.test(value)) throw new Problem("config_invalid", `${key} is no address of a database, expected postgres://... or sqlite:<file>`);
    sql[key.slice(SQL_PREFIX.length).toLowerCase()] = value;
  }
  // checkUrl compares hosts without the brackets of a v6 literal.
  return { http: { allowHosts: allowHosts.map((entry) => entry.replace(/^\[(.*)\]/, "$1")) }, sql };
}
