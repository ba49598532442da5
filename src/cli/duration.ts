/** Owns: lengths of time and moments as people type them. */
import { CliError, EXIT } from "./exit.js";

/** The longest last. */
const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `90s`, `30m`, `24h`, `7d`. Throws CliError `usage`, also for more than `atMostMs`. */
export function durationMs(what: string, text: string, { atLeastMs = 0, atMostMs = Number.MAX_SAFE_INTEGER }: { readonly atLeastMs?: number; readonly atMostMs?: number } = {}): number {
  const match = /^([1-9]\d{0,4})([smhd])$/.exec(text);
  if (match === null) throw new CliError(EXIT.usage, "usage", `${what}: got ${text}, expected a number and s, m, h or d, such as 30m`);
  const ms = Number(match[1]) * (UNIT_MS[match[2] ?? ""] ?? 1);
  if (ms > atMostMs) throw new CliError(EXIT.usage, "usage", `${what}: got ${text}, expected ${spanOf(atMostMs)} at most`);
  if (ms < atLeastMs) throw new CliError(EXIT.usage, "usage", `${what}: got ${text}, expected ${spanOf(atLeastMs)} at least`);
  return ms;
}

/** `30m` is half an hour before now; anything else must be a time. Throws CliError `usage`. */
export function momentMs(what: string, text: string, nowMs: number): number {
  const ago = /^(\d{1,6})([smhd])$/.exec(text);
  const atMs = ago === null ? Date.parse(text) : nowMs - Number(ago[1]) * (UNIT_MS[ago[2] ?? ""] ?? 0);
  if (!Number.isFinite(atMs) || atMs < 0) throw new CliError(EXIT.usage, "usage", `${what}: got ${text}, expected 30m, 6h, 2d or a time like 2026-01-31T08:00:00Z`);
  return Math.floor(atMs);
}

/** The longest time that Node's timers keep; with more they would be over at once. */
const LONGEST_S = 2_147_483;

/** Seconds as `--timeout` has them, parts of one too. Throws CliError `usage`. */
export function secondsMs(what: string, text: string): number {
  const seconds = Number(text);
  if (!(seconds > 0 && seconds <= LONGEST_S)) throw new CliError(EXIT.usage, "usage", `${what}: got ${text}, expected seconds as a number, such as 30; ${String(LONGEST_S)} at most`);
  return seconds * 1_000;
}

function spanOf(ms: number): string {
  const [name, unitMs] = Object.entries(UNIT_MS).findLast(([, unit]) => ms % unit === 0) ?? ["s", 1_000];
  return `${String(ms / unitMs)}${name}`;
}
