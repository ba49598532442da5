/**
 * Owns: lists, once or with `--watch`: what is there is asked for again and again. On a terminal the table is drawn in place, on a screen of its own that
 * is given back at the end; elsewhere a table is printed anew when its rows have changed; `-o jsonl` prints the rows that changed. A console that is away
 * is waited for, and both is said. It ends by Ctrl-C, by --timeout, or by what waiting cannot mend.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Command } from "commander";
import { failureOf } from "./client.js";
import type { CliContext } from "./context.js";
import { CliError, EXIT, type ExitCode } from "./exit.js";
import { plain, renderTable, type Columns, type Page, type Printer } from "./output.js";
import { transient } from "./stream.js";

export interface Listing<T> {
  readonly fetch: () => Promise<Page<T>>;
  readonly columns: (nowMs: number) => Columns<T>;
  /** What tells one row from another. */
  readonly id: (item: T) => string;
  /** Said where there is no row. */
  readonly empty: string;
}
export interface WatchOptions { readonly watch?: boolean; readonly every?: string }

/** Gives a list its `--watch`. */
export function watchable(command: Command): Command {
  return command.option("--watch", "go on, and show what changes, until Ctrl-C (or --timeout)").option("--every <SECONDS>", "with --watch: how often to look", "2");
}

/** Prints a list, or watches it. Throws CliError. */
export async function showList<T>(context: CliContext, options: WatchOptions, listing: Listing<T>): Promise<ExitCode> {
  if (options.watch === true) return watch(context, everyMs(options.every ?? "2"), listing);
  context.printer.list(await listing.fetch(), listing.columns(Date.now()), listing.empty);
  return EXIT.ok;
}

/** How a watched list is shown. `lost` comes with every look that failed, `back` once before the next page. */
interface View<T> {
  show(page: Page<T>): void;
  lost(reason: string, sinceMs: number, first: boolean): void;
  back(): void;
  /** Whatever happens, it is called at the end. */
  end(): void;
}

async function watch<T>(context: CliContext, pauseMs: number, listing: Listing<T>): Promise<ExitCode> {
  const { io, printer, timeoutMs } = context;
  if (printer.format === "json") throw new CliError(EXIT.usage, "usage", "--watch never comes to the end of a JSON document", "-o jsonl prints a line for each row that changes");
  const deadline = timeoutMs === undefined ? new AbortController().signal : AbortSignal.timeout(timeoutMs);
  const signal = AbortSignal.any([io.interrupted, deadline]);
  const view = printer.format === "jsonl" ? changesView(context, listing) : io.rows() === undefined ? pagesView(context, listing) : screenView(context, listing);
  let lostMs: number | undefined;
  try {
    for (;;) {
      try {
        const page = await listing.fetch();
        if (lostMs !== undefined) view.back();
        lostMs = undefined;
        view.show(page);
      } catch (error) {
        if (!signal.aborted) {
          const reason = transient(failureOf(error, io.interrupted, "the console"));
          const first = lostMs === undefined;
          lostMs ??= Date.now();
          view.lost(reason, lostMs, first);
        }
      }
      await pause(pauseMs, undefined, { signal }).catch(() => undefined);
      if (io.interrupted.aborted) throw new CliError(EXIT.interrupted, "interrupted", "interrupted");
      if (deadline.aborted) throw new CliError(EXIT.timeout, "timeout", "--timeout was over", "without it the list is watched until Ctrl-C");
    }
  } finally {
    view.end();
  }
}

/** A line for each row that is new or has changed, and `{"gone": id}` for one that has left the list. */
function changesView<T>({ io, printer }: CliContext, { id }: Listing<T>): View<T> {
  let known = new Map<string, string>();
  return {
    show(page) {
      const now = new Map(page.items.map((item) => [id(item), JSON.stringify(item)]));
      for (const [key, line] of now) if (known.get(key) !== line) io.out(`${line}\n`);
      // Where there is more than a page, a row that is not on it may only have been pushed down.
      if (page.nextCursor === undefined) for (const key of known.keys()) if (!now.has(key)) io.out(`${JSON.stringify({ gone: key })}\n`);
      known = now;
    },
    ...inWords(printer),
  };
}

function inWords(printer: Printer): Pick<View<never>, "lost" | "back" | "end"> {
  return {
    lost: (reason, _sinceMs, first) => { if (first) printer.say(`the console is away (${plain(reason)}); waiting for it`); },
    back: () => { printer.say("the console is back"); },
    end: () => undefined,
  };
}

/** Into a file or a pipe: the table anew when its rows have changed. */
function pagesView<T>({ printer }: CliContext, { columns, empty }: Listing<T>): View<T> {
  let last: string | undefined;
  return {
    show(page) {
      const rows = JSON.stringify(page.items);
      if (rows === last) return;
      printer.say(`${last === undefined ? "" : "\n"}${new Date().toISOString()}`);
      last = rows;
      printer.list(page, columns(Date.now()), empty);
    },
    ...inWords(printer),
  };
}

/** The other screen, no cursor, and long lines cut by the terminal, which knows best how wide they are. */
const TAKE = "\u001b[?1049h\u001b[?25l\u001b[?7l";
const GIVE_BACK = "\u001b[?7h\u001b[?25h\u001b[?1049l";
const HOME = "\u001b[H", CLEAR_LINE = "\u001b[K", CLEAR_REST = "\u001b[J";

function screenView<T>({ io, printer }: CliContext, { columns, empty }: Listing<T>): View<T> {
  const { colors } = printer;
  let last: Page<T> | undefined;
  let taken = false;
  const lines = (page: Page<T>): string[] => page.items.length === 0 ? [empty] : renderTable(page.items, columns(Date.now()), colors).split("\n");
  const draw = (status: string): void => {
    const rows = Math.max(4, io.rows() ?? 24);
    const all = last === undefined ? [] : lines(last);
    // The head of the table is a line, the status and the empty one below it two, and one says what did not fit.
    const room = rows - 2;
    const shown = all.length <= room ? all : [...all.slice(0, room - 1), colors.dim(`… ${String(all.length - room + 1)} more`)];
    io.out(`${taken ? "" : TAKE}${HOME}${[status, "", ...shown].map((line) => `${CLEAR_LINE}${line}`).join("\r\n")}${CLEAR_REST}`);
    taken = true;
  };
  return {
    show(page) {
      last = page;
      draw(colors.dim(`${timeOf(Date.now())}  Ctrl-C ends`));
    },
    lost(reason, sinceMs) {
      draw(colors.red(`the console is away since ${timeOf(sinceMs)}: ${plain(reason)}${last === undefined ? "" : "; what follows is from before"}`));
    },
    back: () => undefined,
    end() {
      if (taken) io.out(GIVE_BACK);
      if (last !== undefined) printer.list(last, columns(Date.now()), empty);
    },
  };
}

function timeOf(ms: number): string { return new Date(ms).toTimeString().slice(0, 8); }

function everyMs(text: string): number {
  const seconds = Number(text);
  if (text.trim() === "" || !(seconds >= 0.1 && seconds <= 3_600)) throw new CliError(EXIT.usage, "usage", `--every: got ${text}, expected seconds, from 0.1 to 3600`);
  return seconds * 1_000;
}
