/**
 * Owns: which of this machine's environment variables each child sees. The launcher is started from a person's shell, which
 * may hold every key there is; each app gets only those that DESIGN 2 lets it hold (the worker never sees a model key, only
 * `sessions` does), and a sidecar gets none (I13).
 */
import type { AppId } from "../contracts/channels.js";

const OWNED_BY: readonly { readonly owner: AppId; readonly pattern: RegExp }[] = [
  { owner: "sessions", pattern: /^(ANTHROPIC|OPENAI|NVIDIA|NIM|VLLM|OLLAMA|LLAMA|AZURE_OPENAI|GEMINI|MISTRAL|GROQ|TOGETHER|OPENROUTER)_|^DOCKET_MODEL|^DOCKET_SESSIONS_/ },
  { owner: "tools", pattern: /^DOCKET_(TOOLS?|SQL|HTTP)_/ },
  { owner: "gateway", pattern: /WEBHOOK.*SECRET/ },
  { owner: "console", pattern: /^DOCKET_(OIDC_|KEY_SIGN_IN$|CONSOLE_DATABASE|NOTICE)/ },
];

/** Only sidecars may know how to reach the broker and the stores: an app that could would walk round the scopes. */
const SIDECAR_ONLY = /^DOCKET_(NATS|REDIS|SQLITE|POSTGRES|KAFKA|RABBITMQ)_/;
/** Set per start by the launcher; an inherited value would be another stack's. */
const LAUNCHER_SET = /^(DAPR_|APP_API_TOKEN$|APP_PORT$)/;
const SIDECAR_KEEPS = /^(PATH|HOME|TMPDIR|TZ|LANG|LC_\w+|SSL_CERT_\w+|GOMAXPROCS|GODEBUG)$/;

/** What an app process inherits. */
export function appBaseEnv(appId: string, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return pick(env, (key) => {
    if (SIDECAR_ONLY.test(key) || LAUNCHER_SET.test(key)) return false;
    return OWNED_BY.every(({ owner, pattern }) => owner === appId || !pattern.test(key));
  });
}

/** What daprd, placement, scheduler and the broker inherit. */
export function sidecarBaseEnv(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return pick(env, (key) => SIDECAR_KEEPS.test(key));
}

/** Drops from an app's own variables those that only its sidecar needs. */
export function withoutSidecarOnly(env: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([key]) => !SIDECAR_ONLY.test(key)));
}

function pick(env: NodeJS.ProcessEnv, keep: (key: string) => boolean): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([key]) => keep(key)));
}
