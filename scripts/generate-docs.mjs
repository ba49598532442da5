/**
 * `npm run docs`: writes docs/configuration.md and .env.example from the settings in src/platform/config.ts, and the metrics of docs/telemetry.md
 * (all as built in dist/). A test fails when one is stale (test/unit/docs/generated.test.ts).
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import { fail, ROOT } from "./lib.mjs";

const APPS = ["gateway", "sessions", "tools", "console"];

/** Set by whoever starts the app (Dapr's CLI, npm run dev), never by a person. */
const SET_BY_STARTER = new Set(["APP_PORT", "DAPR_HTTP_PORT", "DAPR_API_TOKEN", "APP_API_TOKEN", "DOCKET_SESSIONS_ACTOR_KEY", "DOCKET_KEYS_DIR", "DOCKET_PUBLIC_PORT", "DOCKET_CONSOLE_URL"]);

/** Variables that are read elsewhere than through SETTINGS; a test finds those that are missing here. */
const OTHER_VARIABLES = [
  { title: "Tools", text: "Read by the worker only; no other app sees them under `npm run dev`.", rows: [
    ["DOCKET_TOOL_SECRET_<NAME>", "A secret that a tool asks for with `context.secret(\"<NAME>\")`. Cut from everything that the tool says"],
    ["DOCKET_SQL_<NAME>", "A connection of `sql_query`, which names it in lower case: `postgres://…` or `sqlite:<file>`. Give it an account that can only read"],
    ["DOCKET_HTTP_ALLOW_HOSTS", "Hosts that the HTTP tools may reach though their addresses are private: `host` or `host:port`, separated by commas"],
  ] },
  { title: "Notices", text: "Read by the console only; no other app sees them under `npm run dev`.", rows: [
    ["DOCKET_NOTICE_SECRET_<NAME>", "A secret that the notices file names: a webhook's signing secret, an incoming webhook's address, Slack's signing secret ([notices.md](notices.md))"],
    ["DOCKET_NOTICE_SECRET_<NAME>_FILE", "A file that holds it alone, instead of the variable"],
  ] },
  { title: "The launcher (`npm run dev`)", text: "`npm run dev -- --help` lists its flags; a flag wins over its variable.", rows: [
    ["DOCKET_PROFILE", "`embedded` is its default; chooses broker, stores and component files (a folder of `components/`)"],
    ["DOCKET_PORTS", "Ports by name, separated by commas: `gateway.public=7400,broker=7410`"],
    ["DOCKET_RUNTIME_DIR", "Folder with `daprd`, `placement` and `scheduler` (and `nats-server`), instead of looking for them or building them"],
    ["DOCKET_CACHE_DIR", "Where the built runtime is kept; default `~/.cache/docket` (or below `XDG_CACHE_HOME`)"],
    ["DOCKET_REDIS_HOST", "Redis of the profile `local`, `host:port`; default `127.0.0.1:6379`. Goes to the sidecars only"],
    ["DOCKET_REDIS_PASSWORD", "Its password. Goes to the sidecars only"],
    ["DOCKET_NATS_URL", "NATS of the profile `nats`; with `embedded` the launcher sets it. Goes to the sidecars only"],
    ["DOCKET_NATS_TOKEN", "Its token, likewise"],
    ["DOCKET_RABBITMQ_URL", "RabbitMQ of the profile `rabbitmq`. Goes to the sidecars only"],
    ["DOCKET_KAFKA_BROKERS", "Kafka of the profile `production`, `host:port`, separated by commas. Goes to the sidecars only"],
    ["DOCKET_KAFKA_AUTH_TYPE", "How Kafka is logged in to, as Dapr names it; default `none`"],
    ["DOCKET_KAFKA_SASL_MECHANISM", "SASL mechanism"],
    ["DOCKET_KAFKA_SASL_USERNAME", "SASL user"],
    ["DOCKET_KAFKA_SASL_PASSWORD", "SASL password. Goes to the sidecars only"],
    ["DOCKET_KAFKA_CA_CERT", "Certificate authority of Kafka, PEM"],
    ["DOCKET_POSTGRES_URL", "PostgreSQL of the profiles that keep state there (`rabbitmq`, `nats`, `production`). Goes to the sidecars only"],
  ] },
  { title: "Tests", text: "Never set these outside tests.", rows: [
    ["DOCKET_FAULT_FILE", "File that arms a fault point: the process kills itself there (`src/platform/faults.ts`, [chaos.md](chaos.md))"],
  ] },
  { title: "The `docket` command", text: "See [cli.md](cli.md) for the order in which it looks.", rows: [
    ["DOCKET_GATEWAY_URL", "Address of the gateway; default `http://127.0.0.1:7300`"],
    ["DOCKET_API_KEY", "The API key itself"],
    ["DOCKET_API_KEY_FILE", "A file that holds it alone"],
    ["NO_COLOR", "Any value: no colours"],
  ] },
  { title: "Component files", text: "Read by daprd (`envRef` in `components/`), never by an app. The launcher sets them; under `dapr run` they come from `dapr.yaml`.", rows: [
    ["DOCKET_SQLITE_SESSIONS", "SQLite file of the session store"],
    ["DOCKET_SQLITE_INBOX", "SQLite file of the gateway's inbox"],
    ["DOCKET_SQLITE_TOOLS", "SQLite file of the worker's store"],
    ["DOCKET_SQLITE_NAMES", "SQLite file in which sidecars find each other"],
    ["DOCKET_POSTGRES_SESSIONS", "PostgreSQL database of the session store; the launcher derives the three from `DOCKET_POSTGRES_URL`"],
    ["DOCKET_POSTGRES_INBOX", "PostgreSQL database of the gateway's inbox"],
    ["DOCKET_POSTGRES_TOOLS", "PostgreSQL database of the worker's store"],
    ["DOCKET_REPLICA", "Names what only this replica may read (`live`)"],
  ] },
  { title: "Files", text: "", rows: [
    ["DOCKET_CONFIG", "Another configuration file than `docket.config.yaml`; it must exist"],
    ["DOCKET_FAULT_FILE", "Never outside tests: a file that says at which point the app kills itself (docs/chaos.md)"],
  ] },
];

/** docs/configuration.md. `seenBy(variable)` names the apps that inherit a variable under `npm run dev`. */
export function configurationPage(settings, seenBy) {
  const rows = Object.entries(settings).map(([key, setting]) => row([
    code(setting.env), code(key), expected(setting.schema), fallback(setting.schema), SET_BY_STARTER.has(setting.env) ? "set by the starter" : apps(seenBy(setting.env)),
    `${setting.about.replaceAll("<", "&lt;")}${setting.secret === true ? ". **Secret**" : ""}`,
  ]));
  return [
    "<!-- Made by `npm run docs` from src/platform/config.ts. Do not edit. -->",
    "# Configuration",
    "",
    "Order: defaults, then `docket.config.yaml` (keys of the second column), then the environment. A variable that is empty counts as not set. An app that finds",
    "a wrong value does not start; it lists every problem at once, with where the value came from (`config_invalid`).",
    "",
    "Nothing reads a `.env` file by itself: `set -a; . ./.env; set +a`, then `npm run dev`. Secrets belong in the environment, which the secret store fills, not in the file.",
    "",
    "\"Seen by\" says which apps inherit the variable from the shell that ran `npm run dev`. Sidecars and broker inherit none of them. Those marked *set by the starter* are overwritten.",
    "",
    row(["variable", "key", "expected", "default", "seen by", "what it is"]), row(["---", "---", "---", "---", "---", "---"]), ...rows,
    ...OTHER_VARIABLES.flatMap(({ title, text, rows: others }) => ["", `## ${title}`, "", ...(text === "" ? [] : [text, ""]), row(["variable", "what it is"]), row(["---", "---"]), ...others.map(([name, about]) => row([code(name), about]))]),
    "",
  ].join("\n");
}

/** .env.example: everything that a person may set, commented out. */
export function envExample(settings) {
  const lines = ["# Made by `npm run docs` from src/platform/config.ts. Copy to .env, take away the # where you want another value, then:", "#   set -a; . ./.env; set +a; npm run dev", "# docs/configuration.md has all of it, also what the starters set themselves."];
  for (const { env, schema, about, secret } of Object.values(settings)) {
    if (SET_BY_STARTER.has(env) || isOther(env)) continue;
    const value = schema.safeParse(undefined).data;
    lines.push("", `# ${about}${secret === true ? " (secret)" : ""}.`, `# ${env}=${value === undefined ? "" : String(value)}`);
  }
  for (const { title, rows } of OTHER_VARIABLES) {
    if (title === "Component files") continue;
    lines.push("", `# --- ${title.replaceAll("`", "")}`);
    for (const [name, about] of rows) lines.push(`# ${about.replaceAll("`", "")}.`, `# ${name}=`);
  }
  return `${lines.join("\n")}\n`;
}

/** docs/telemetry.md with its table of metrics made anew. */
export function telemetryPage(page, instruments) {
  const rows = Object.entries(instruments).map(([name, { kind, apps: said, labels, about, unit }]) => row([
    code(name), code(`${name.replaceAll(".", "_")}${kind === "counter" ? "_total" : ""}`), kind, said.length === APPS.length ? "all apps" : said.join(", "), labels.map(code).join(", "), `${about}${unit === undefined ? "" : `, ${code(unit)}`}`,
  ]));
  const table = [row(["metric", "in Prometheus", "kind", "app", "labels", "what it is"]), row(["---", "---", "---", "---", "---", "---"]), ...rows].join("\n");
  return page.replace(/(<!-- metrics: [^\n]*-->\n)[\s\S]*?(<!-- \/metrics -->)/, (_all, begin, end) => `${begin}${table}\n${end}`);
}

function isOther(variable) {
  return OTHER_VARIABLES.some(({ rows }) => rows.some(([name]) => name === variable));
}

function expected(schema) {
  const { anyOf, enum: words, type, format, minimum, exclusiveMinimum, maximum, minLength } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  if (anyOf?.some((one) => one.type === "array")) return "words, separated by commas";
  if (anyOf?.some((one) => one.type === "boolean")) return "`true` or `false`";
  if (words !== undefined) return words.map(code).join(", ");
  if (type === "integer") {
    const from = minimum ?? (exclusiveMinimum === undefined ? undefined : exclusiveMinimum + 1);
    return maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? `whole number from ${from}` : `whole number, ${from} to ${maximum}`;
  }
  if (format === "uri") return "URL";
  return minLength !== undefined && minLength > 1 ? `text, at least ${minLength} characters` : "text";
}

function fallback(schema) {
  const value = schema.safeParse(undefined).data;
  return value === undefined ? "none" : code(String(value));
}

function apps(names) {
  return names.length === APPS.length ? "all apps" : names.join(", ");
}

const code = (text) => `\`${text}\``;
const row = (cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const built = join(ROOT, "dist", "src");
  if (!existsSync(join(built, "platform", "config.js"))) fail("Docket is not built yet, and the pages are made from the build.", "npm run docs builds it first.");
  const { SETTINGS } = await import(pathToFileURL(join(built, "platform", "config.js")).href);
  const { appBaseEnv } = await import(pathToFileURL(join(built, "launcher", "child-env.js")).href);
  const seenBy = (variable) => APPS.filter((app) => variable in appBaseEnv(app, { [variable]: "x" }));
  writeFileSync(join(ROOT, "docs", "configuration.md"), configurationPage(SETTINGS, seenBy));
  writeFileSync(join(ROOT, ".env.example"), envExample(SETTINGS));
  const { INSTRUMENTS } = await import(pathToFileURL(join(built, "platform", "telemetry", "metrics.js")).href);
  const telemetry = join(ROOT, "docs", "telemetry.md");
  writeFileSync(telemetry, telemetryPage(readFileSync(telemetry, "utf8"), INSTRUMENTS));
  process.stdout.write("docs/configuration.md, docs/telemetry.md and .env.example are written\n");
}
