/**
 * Owns: structured logs. One JSON line per event on stdout (pino). Fields that may hold secrets are removed by name
 * (I13); payloads are never logged, only ids, codes and counts.
 */
import { pino, type Logger } from "pino";
import { withContext } from "./log-context.js";

export type { Logger };

const SECRET_PATHS = ["*.authorization", "*.apiKey", "*.token", "*.grant", "*.secret", "*.password", "authorization", "apiKey", "token", "grant", "secret", "password"];

/** Logger of an app. `level` is a pino level (trace … fatal, silent). */
export function createLogger(app: string, level: string): Logger {
  return pino({ level, base: { app }, formatters: { log: withContext }, redact: { paths: SECRET_PATHS, censor: "[redacted]" }, timestamp: pino.stdTimeFunctions.isoTime });
}

/** Message and code of anything thrown, without its stack. */
export function errorFields(error: unknown): { error: string; code?: string } {
  if (error instanceof Error) {
    const code = (error as { code?: unknown }).code;
    return typeof code === "string" ? { error: error.message, code } : { error: error.message };
  }
  return { error: String(error) };
}
