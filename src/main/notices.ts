/** Owns: which notices go where, read from the file that the configuration names, with its secrets. What does not fit together ends the boot. */
import { readFileSync } from "node:fs";
import { readNotices, type NoticeSettings } from "../console/notices/settings.js";
import { Problem } from "../contracts/problems.js";
import { required, type Config } from "../platform/config.js";

const PREFIX = "DOCKET_NOTICE_SECRET_";
/** Another place that takes answers to Slack callbacks, in tests: on this machine only. */
const LOOPBACK = /^http:\/\/127\.0\.0\.1:\d+$/;

/** A part of ConsoleConfig; undefined where no file is named. Throws Problem `config_invalid`. */
export function noticesFrom(config: Config, env: NodeJS.ProcessEnv): NoticeSettings | undefined {
  const { noticesFile: file } = config;
  if (file === undefined) return undefined;
  const consoleUrl = required(config, "consoleUrl");
  const settings = readNotices(read(file, "DOCKET_NOTICES_FILE"), { from: file, consoleUrl, secret: (name) => secretOf(env, name) });
  // An incoming webhook on this machine is a stand-in for Slack, and answers go where it is.
  const standIns = settings.channels.filter(({ kind }) => kind === "slack").map(({ url }) => new URL(url).origin).filter((origin) => LOOPBACK.test(origin));
  return { ...settings, slackOrigins: [...settings.slackOrigins, ...standIns] };
}

function secretOf(env: NodeJS.ProcessEnv, name: string): string | undefined {
  const value = env[`${PREFIX}${name}`];
  const file = env[`${PREFIX}${name}_FILE`];
  if (file === undefined || file === "") return value;
  if (value !== undefined && value !== "") throw new Problem("config_invalid", `${PREFIX}${name} and ${PREFIX}${name}_FILE are both set`, { hint: "keep one" });
  return read(file, `${PREFIX}${name}_FILE`);
}

function read(file: string, from: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new Problem("config_invalid", `${from} names ${file}, which cannot be read: ${error instanceof Error && "code" in error ? String(error.code) : String(error)}`, { hint: "docs/notices.md" });
  }
}
