/**
 * Owns: how data is printed. `table` is for people, `json` is what the API gave, `jsonl` one item per line. Text that came from a
 * model or from outside is shown with its control and direction characters spelled out: it must not move the
 * cursor, recolour, or re-order what a person is about to approve (what-users-ask 69).
 */
import Table from "cli-table3";
import picocolors from "picocolors";
import type { CliIo } from "./io.js";

export const FORMATS = ["table", "json", "jsonl"] as const;
export type Format = (typeof FORMATS)[number];
export type Colors = ReturnType<typeof picocolors.createColors>;

export interface Page<T> { readonly items: readonly T[]; readonly nextCursor?: string | undefined }
/** Heads and cells of a table. */
export type Columns<T> = Readonly<Record<string, (item: T) => string>>;

export interface Printer {
  readonly format: Format;
  readonly colors: Colors;
  /** A list: the page in json, its items in jsonl, rows in table. */
  list<T>(page: Page<T>, columns: Columns<T>, empty: string): void;
  /** One thing: as it is in json and jsonl, as `lines` gives it in table. */
  one(value: unknown, lines: () => string): void;
  /** Talk, unless --quiet. */
  say(text: string): void;
}

export function createPrinter(io: CliIo, options: { format: Format; color: "auto" | "always" | "never"; quiet: boolean }): Printer {
  const noColor = (io.env["NO_COLOR"] ?? "") !== "";
  const colors = picocolors.createColors(options.color === "always" || (options.color === "auto" && io.interactive && !noColor));
  const say = (text: string): void => { if (!options.quiet) io.err(`${text}\n`); };
  return {
    format: options.format, colors, say,
    list(page, columns, empty) {
      if (options.format === "json") io.out(`${JSON.stringify(page, null, 2)}\n`);
      else if (options.format === "jsonl") io.out(page.items.map((item) => `${JSON.stringify(item)}\n`).join(""));
      else if (page.items.length === 0) say(empty);
      else {
        io.out(`${renderTable(page.items, columns, colors)}\n`);
        if (page.nextCursor !== undefined) say(`more: --cursor ${page.nextCursor}`);
      }
    },
    one(value, lines) {
      if (options.format === "table") io.out(lines());
      else io.out(`${JSON.stringify(value, null, options.format === "json" ? 2 : undefined)}\n`);
    },
  };
}

/** Rows below their heads, without a last line end. */
export function renderTable<T>(items: readonly T[], columns: Columns<T>, colors: Colors): string {
  return tableOf(Object.keys(columns).map((name) => colors.bold(name)), items.map((item) => Object.values(columns).map((cell) => plain(cell(item)))));
}

function tableOf(head: string[], rows: string[][]): string {
  const none = { top: "", "top-mid": "", "top-left": "", "top-right": "", bottom: "", "bottom-mid": "", "bottom-left": "", "bottom-right": "", left: "", "left-mid": "", mid: "", "mid-mid": "", right: "", "right-mid": "", middle: "  " };
  const table = new Table({ head, chars: none, style: { "padding-left": 0, "padding-right": 0, head: [], border: [] } });
  table.push(...rows);
  return table.toString().split("\n").map((line) => line.trimEnd()).join("\n");
}

/** Control, format and separator characters spelled out, so that what is read is what is there. */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (char) => char === "\n" ? char : `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`);
}

/** The same on one line. */
export function plain(text: string): string { return visible(text).replaceAll("\n", "\\n"); }

/** `1 row`, `2 rows`. */
export function counted(count: number, what: string): string { return `${String(count)} ${what}${count === 1 ? "" : "s"}`; }

/** `once`, `2 times`. */
export function times(count: number): string { return count === 1 ? "once" : `${String(count)} times`; }

export function clip(text: string, length: number): string { return text.length > length ? `${text.slice(0, length - 1)}…` : text; }

/** `3m ago`, `in 2h`. */
export function relative(ms: number | undefined, nowMs: number): string {
  if (ms === undefined) return "-";
  const seconds = Math.round(Math.abs(ms - nowMs) / 1000);
  const text = seconds < 60 ? `${String(seconds)}s` : seconds < 3600 ? `${String(Math.round(seconds / 60))}m` : seconds < 86_400 ? `${String(Math.round(seconds / 3600))}h` : `${String(Math.round(seconds / 86_400))}d`;
  return ms <= nowMs ? `${text} ago` : `in ${text}`;
}

/** `key   value` lines, keys in one column. */
export function fields(rows: readonly (readonly [string, string | undefined])[]): string {
  const shown = rows.filter((row): row is readonly [string, string] => row[1] !== undefined);
  const width = Math.max(...shown.map(([key]) => key.length));
  return shown.map(([key, value]) => `${key.padEnd(width)}  ${visible(value).replaceAll("\n", `\n${" ".repeat(width + 2)}`)}\n`).join("");
}
