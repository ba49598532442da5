/**
 * Owns: configuration (STYLE, habit 6). One table of settings, each with its key, variable, schema, default and meaning.
 * Order: defaults < docket.config.yaml < environment. A boot with bad values fails with all problems at once, each with
 * its key, where the value came from and what was expected. `.env.example` and docs/configuration.md are made from here.
 */
import { existsSync, readFileSync } from "node:fs";
import { parse } from "yaml";
import { z } from "zod";
import { Problem } from "../contracts/problems.js";
import { didYouMean } from "../contracts/suggest.js";

interface Setting<S extends z.ZodType> { readonly env: string; readonly schema: S; readonly about: string; readonly secret?: true }

const setting = <S extends z.ZodType>(env: string, schema: S, about: string): Setting<S> => ({ env, schema, about });
const secret = <S extends z.ZodType>(env: string, schema: S, about: string): Setting<S> => ({ env, schema, about, secret: true });

const port = z.coerce.number().int().min(1).max(65_535);
const text = z.string().min(1);
const flag = z.union([z.boolean(), z.enum(["true", "false", "1", "0"]).transform((word) => word === "true" || word === "1")]);
const list = z.union([z.array(text), z.string().transform((words) => words.split(",").map((word) => word.trim()).filter((word) => word !== ""))]);
/** In the file as it is, in the environment as JSON text. */
const json = <S extends z.ZodType>(schema: S) => z.union([z.string().transform((words, context) => {
  try {
    return JSON.parse(words) as unknown;
  } catch {
    context.addIssue("expected JSON");
    return z.NEVER;
  }
}).pipe(schema), schema]);
const usd = z.number().min(0);
const prices = z.record(z.string(), z.object({ input: usd, output: usd, cacheRead: usd, cacheWrite: usd }));
const servers = z.record(z.string(), z.object({ baseUrl: z.url(), apiKey: text.optional() }));
/** Signing secrets, each long enough to be one. */
const secretList = list.pipe(z.array(z.string().min(8, "each secret must have 8 characters or more")));
const days = z.coerce.number().positive().max(36_500);
const perMinute = z.coerce.number().int().positive().optional();

export const SETTINGS = {
  appPort: setting("APP_PORT", port.optional(), "Port that the sidecar calls (set by Dapr's CLI and by npm run dev)"),
  appHost: setting("DOCKET_APP_HOST", text.default("127.0.0.1"), "Address of the sidecar-facing listener"),
  daprHttpPort: setting("DAPR_HTTP_PORT", port.default(3500), "The sidecar's HTTP port"),
  daprApiToken: secret("DAPR_API_TOKEN", text.optional(), "Token that the sidecar asks of this app"),
  appApiToken: secret("APP_API_TOKEN", text.optional(), "Token that this app asks of the sidecar; without it only loopback is served"),
  publicPort: setting("DOCKET_PUBLIC_PORT", port.optional(), "Public port of gateway (7300) and console (7301)"),
  publicHost: setting("DOCKET_PUBLIC_HOST", text.default("127.0.0.1"), "Address of the public listener"),
  trustProxyHops: setting("DOCKET_TRUST_PROXY_HOPS", z.coerce.number().int().min(0).max(16).default(0), "Proxies in front of the public listener whose X-Forwarded-For is believed; with 0 all clients behind a proxy are one address for rate limits and audit"),
  dataDir: setting("DOCKET_DATA_DIR", text.default(".docket"), "Folder of local data: keys, read model, workspaces"),
  keysDir: setting("DOCKET_KEYS_DIR", text.optional(), "Folder of signing keys, trust and API keys; default <dataDir>/keys"),
  profile: setting("DOCKET_PROFILE", text.default("local"), "Component profile, for messages only"),
  logLevel: setting("DOCKET_LOG_LEVEL", z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"), "Least level that is logged"),
  metricsPort: setting("DOCKET_METRICS_PORT", port.optional(), "Port for Prometheus' /metrics; none without it. Under npm run dev the first app's, each further one has the next"),
  metricsHost: setting("DOCKET_METRICS_HOST", text.default("127.0.0.1"), "Address of that listener, which asks for no credentials"),
  traceContent: setting("DOCKET_TRACE_CONTENT", flag.default(false), "Traces carry prompts, answers, arguments and results too, redacted"),
  sessionsActorKey: secret("DOCKET_SESSIONS_ACTOR_KEY", z.string().min(16).optional(), "Secret that all session hosts share; state-changing actor methods need it"),
  allowUnsafeStore: setting("DOCKET_ALLOW_UNSAFE_STORE", flag.default(false), "Accept a session store that cannot fence (never in production)"),
  agentsDir: setting("DOCKET_AGENTS_DIR", text.default("dist/agents"), "Folder of built agents and their manifests.json"),
  scriptsDir: setting("DOCKET_SCRIPTS_DIR", text.default("agents"), "Folder with <agent>/script.yaml for scripted models"),
  policiesDir: setting("DOCKET_POLICIES_DIR", text.default("policies"), "Folder of policy files (*.yaml)"),
  defaultAgent: setting("DOCKET_DEFAULT_AGENT", text.default("assistant"), "Agent that takes prompts which name none"),
  defaultModel: setting("DOCKET_DEFAULT_MODEL", text.optional(), "provider:model for agents that name none; default a Claude model where ANTHROPIC_API_KEY is set, else scripted:assistant"),
  anthropicApiKey: secret("ANTHROPIC_API_KEY", text.optional(), "Key for the anthropic provider"),
  anthropicBaseUrl: setting("ANTHROPIC_BASE_URL", z.url().optional(), "Address of the anthropic provider, where it is not the public one"),
  openaiApiKey: secret("OPENAI_API_KEY", text.optional(), "Key for the openai provider"),
  openaiBaseUrl: setting("OPENAI_BASE_URL", z.url().optional(), "Address of any server that speaks OpenAI's chat completions (NIM, vLLM, Ollama, llama.cpp)"),
  modelRequestsPerMinute: setting("DOCKET_MODEL_REQUESTS_PER_MINUTE", perMinute, "Requests per minute and provider key, over all hosts"),
  modelTokensPerMinute: setting("DOCKET_MODEL_TOKENS_PER_MINUTE", perMinute, "Tokens per minute and provider key, over all hosts"),
  modelServers: secret("DOCKET_MODEL_SERVERS", json(servers).optional(), "More servers like openaiBaseUrl, as JSON: name before the colon to {baseUrl, apiKey}"),
  modelPrices: setting("DOCKET_MODEL_PRICES", json(prices).optional(), "Prices as JSON, USD per million tokens: model, or provider:model, to {input, output, cacheRead, cacheWrite}"),
  modelCallLog: setting("DOCKET_MODEL_CALL_LOG", text.optional(), "File to which scripted models append one line per call"),
  githubWebhookSecrets: secret("DOCKET_GITHUB_WEBHOOK_SECRETS", secretList.optional(), "Secrets of GitHub webhooks, several while one is rotated"),
  stripeWebhookSecrets: secret("DOCKET_STRIPE_WEBHOOK_SECRETS", secretList.optional(), "Secrets of Stripe webhooks"),
  sweepAfterMs: setting("DOCKET_SWEEP_AFTER_MS", z.coerce.number().int().min(100).optional(), "An accepted event without receipt for this long is published again"),
  toolConcurrency: setting("DOCKET_TOOL_CONCURRENCY", z.coerce.number().int().min(1).max(1000).default(16), "Tools that one worker runs at once"),
  sessionIdleDays: setting("DOCKET_SESSION_IDLE_DAYS", days.default(90), "A session that is IDLE for so long is deleted"),
  sessionClosedDays: setting("DOCKET_SESSION_CLOSED_DAYS", days.default(30), "A session that is CLOSED for so long is deleted"),
  journalKeepDays: setting("DOCKET_JOURNAL_KEEP_DAYS", days.min(1).default(30), "Journal entries of a living session that are younger stay; older ones may go once their runs have ended"),
  journalKeepEntries: setting("DOCKET_JOURNAL_KEEP_ENTRIES", z.coerce.number().int().min(16).max(1_000_000).default(1000), "So many newest journal entries of a living session stay, whatever their age"),
  workspaceDays: setting("DOCKET_WORKSPACE_DAYS", days.min(1).default(30), "A tool workspace that was not used for so long is deleted"),
  oidcIssuer: setting("DOCKET_OIDC_ISSUER", z.url().optional(), "Identity provider (OpenID Connect) that signs people in at the console; without it only API keys do"),
  oidcClientId: setting("DOCKET_OIDC_CLIENT_ID", text.optional(), "The console's client id there"),
  oidcClientSecret: secret("DOCKET_OIDC_CLIENT_SECRET", text.optional(), "Its client secret; without one the client is public, with PKCE alone"),
  oidcClientSecretFile: setting("DOCKET_OIDC_CLIENT_SECRET_FILE", text.optional(), "A file that holds the client secret alone, instead of the variable"),
  oidcScopes: setting("DOCKET_OIDC_SCOPES", text.default("openid profile email"), "Scopes that are asked for, separated by spaces"),
  oidcAccessFile: setting("DOCKET_OIDC_ACCESS_FILE", text.optional(), "File that says which claims give which roles and approver groups (docs/identity.md)"),
  oidcLabel: setting("DOCKET_OIDC_LABEL", text.default("single sign-on"), "What the button says: Sign in with …"),
  oidcHours: setting("DOCKET_OIDC_HOURS", z.coerce.number().positive().max(720).default(8), "How long such a sign-in lasts, in hours"),
  keySignIn: setting("DOCKET_KEY_SIGN_IN", flag.default(true), "Browsers may sign in with API keys; programs always may"),
  noticesFile: setting("DOCKET_NOTICES_FILE", text.optional(), "File that says which approvals are told where: webhooks, Slack, Discord, one-time links (docs/notices.md)"),
  consoleDatabase: secret("DOCKET_CONSOLE_DATABASE", text.optional(), "The console's database: postgres://…, or a SQLite file; default <dataDir>/console.db"),
  consoleUrl: setting("DOCKET_CONSOLE_URL", z.url().optional(), "Address of the console as people reach it: for links, and for browsers behind a proxy"),
} as const;

type Settings = typeof SETTINGS;
export type Config = { readonly [K in keyof Settings]: z.output<Settings[K]["schema"]> };
export type ConfigKey = keyof Settings;

/** Reads configuration. Throws Problem `config_invalid` that lists every problem. */
export function loadConfig(env: NodeJS.ProcessEnv = process.env, file = env.DOCKET_CONFIG ?? "docket.config.yaml"): Config {
  const fromFile = readConfigFile(file, env.DOCKET_CONFIG !== undefined);
  const problems: { path: string; message: string }[] = unknownKeys(fromFile, file);
  const config: Record<string, unknown> = {};
  for (const [key, { env: variable, schema }] of Object.entries(SETTINGS)) {
    const inEnv = env[variable];
    const used = inEnv !== undefined && inEnv !== "" ? { value: inEnv as unknown, from: variable } : { value: fromFile[key], from: `${file}: ${key}` };
    const parsed = schema.safeParse(used.value);
    if (parsed.success) config[key] = parsed.data;
    else problems.push({ path: used.from, message: parsed.error.issues.map((issue) => issue.message).join("; ") });
  }
  if (problems.length > 0) {
    throw new Problem("config_invalid", `the configuration has ${String(problems.length)} problem(s):\n${problems.map(({ path, message }) => `  ${path}: ${message}`).join("\n")}`, { errors: problems, hint: "docs/configuration.md lists every setting" });
  }
  return config as Config;
}

/** A setting that this app cannot do without. Throws Problem `config_invalid`. */
export function required<K extends ConfigKey>(config: Config, key: K): NonNullable<Config[K]> {
  const value = config[key];
  if (value === undefined) throw new Problem("config_invalid", `${SETTINGS[key].env} is not set: ${SETTINGS[key].about}`, { hint: "npm run dev sets it; elsewhere set it in the environment" });
  return value;
}

/** Folder of signing keys. */
export function keysDirOf(config: Config): string { return config.keysDir ?? `${config.dataDir}/keys`; }

function readConfigFile(file: string, mustExist: boolean): Record<string, unknown> {
  if (!existsSync(file)) {
    if (mustExist) throw new Problem("config_invalid", `DOCKET_CONFIG names ${file}, which does not exist`);
    return {};
  }
  const parsed: unknown = parse(readFileSync(file, "utf8"));
  if (parsed === null) return {};
  if (typeof parsed !== "object" || Array.isArray(parsed)) throw new Problem("config_invalid", `${file} does not hold a mapping of settings`);
  return parsed as Record<string, unknown>;
}

function unknownKeys(fromFile: Record<string, unknown>, file: string): { path: string; message: string }[] {
  return Object.keys(fromFile).filter((key) => !Object.hasOwn(SETTINGS, key)).map((key) => ({ path: `${file}: ${key}`, message: `unknown setting${didYouMean(key, Object.keys(SETTINGS))}` }));
}
