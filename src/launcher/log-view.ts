/**
 * Owns: the one coloured, prefixed log of a stack. Apps write pino's JSON lines, daprd and friends logfmt, the broker its own
 * format; each becomes `name | LEVEL message`. Infrastructure is quiet unless --verbose: warnings and errors only, without
 * those that are known to mean nothing here.
 */
import pc from "picocolors";

export type LogLevel = "debug" | "info" | "warn" | "error";

export interface LogLine {
  readonly level: LogLevel;
  readonly text: string;
}

const RANK: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };
const COLOURS = [pc.cyan, pc.magenta, pc.green, pc.blue, pc.yellow];

/** Said on every healthy start or stop of a local stack. */
const NOISE = [
  /mTLS is disabled/,
  /etcd client http ports not set/,
  /Error receiving from connection/,
  // The scheduler's embedded etcd, alone on loopback.
  /grpc and http server on single port|http and grpc server on single port/i,
  /simple token is not cryptographically signed/,
  /insecure grpc server due to error/,
  /increasedCardinality/,
];

/** Fields of a pino line that the prefix already says, or that no reader at a terminal needs. */
const SAID_BY_PREFIX = new Set(["time", "pid", "hostname", "name", "app", "service"]);

/** Parses one line of any of the stack's processes. */
export function parseLogLine(line: string): LogLine {
  return parsePino(line) ?? parseLogfmt(line) ?? parseNats(line) ?? { level: "info", text: line };
}

/** True when the line should be seen without --verbose. */
export function isWorthShowing(isApp: boolean, line: LogLine): boolean {
  if (isApp) return RANK[line.level] >= RANK.info;
  return RANK[line.level] >= RANK.warn && !NOISE.some((pattern) => pattern.test(line.text));
}

/** Turns lines into what the terminal shows; one instance per stack, so that each process keeps its colour. */
export class LogView {
  private readonly colours = new Map<string, (text: string) => string>();

  constructor(
    private readonly verbose: boolean,
    private readonly write: (line: string) => void,
  ) {}

  /** Shows one line of a process, or not. */
  show(name: string, raw: string, isApp: boolean): void {
    const line = parseLogLine(raw);
    if (!this.verbose && !isWorthShowing(isApp, line)) return;
    this.write(`${this.prefix(name)} ${levelMark(line.level)}${line.text}`);
  }

  private prefix(name: string): string {
    let colour = this.colours.get(name);
    if (!colour) {
      colour = COLOURS[this.colours.size % COLOURS.length] ?? pc.cyan;
      this.colours.set(name, colour);
    }
    return colour(`${name.padEnd(14)} |`);
  }
}

function levelMark(level: LogLevel): string {
  if (level === "error") return pc.red("ERROR ");
  if (level === "warn") return pc.yellow("WARN ");
  return "";
}

function parsePino(line: string): LogLine | undefined {
  if (!line.startsWith("{")) return undefined;
  let record: unknown;
  try {
    record = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (typeof record !== "object" || record === null || !("msg" in record)) return undefined;
  const { level, msg, ...rest } = record as Record<string, unknown>;
  const details = Object.entries(rest).filter(([key]) => !SAID_BY_PREFIX.has(key)).map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  return { level: pinoLevel(level), text: [String(msg), ...(details.length > 0 ? [pc.dim(details.join(" "))] : [])].join(" ") };
}

function pinoLevel(level: unknown): LogLevel {
  const value = typeof level === "number" ? level : ({ debug: 20, trace: 10, info: 30, warn: 40, error: 50, fatal: 60 }[String(level)] ?? 30);
  if (value >= 50) return "error";
  if (value >= 40) return "warn";
  return value >= 30 ? "info" : "debug";
}

function parseLogfmt(line: string): LogLine | undefined {
  const match = /^time="[^"]*" level=(\w+) msg=(?:"((?:[^"\\]|\\.)*)"|(\S+))/.exec(line);
  if (!match) return undefined;
  const level = match[1] === "fatal" || match[1] === "panic" ? "error" : match[1];
  const text = (match[2] ?? match[3] ?? "").replaceAll('\\"', '"').replaceAll("\\n", " ");
  return { level: level === "warning" ? "warn" : level === "error" ? "error" : level === "debug" ? "debug" : "info", text };
}

function parseNats(line: string): LogLine | undefined {
  const match = /^\[\d+\] \d{4}\/\d\d\/\d\d [\d:.]+ \[(\w{3})\] (.*)$/.exec(line);
  if (!match) return undefined;
  const level = ({ ERR: "error", FTL: "error", WRN: "warn", DBG: "debug", TRC: "debug" } as const)[match[1] ?? ""] ?? "info";
  return { level, text: match[2] ?? "" };
}
