/** Owns: what a chaos run says at its end: one table, every breach, and the same as JSON. Pure. */
import type { Breach } from "./checks.js";
import { sharedSessions, slowestMs, unknownsIn } from "./checks.js";
import type { Evidence } from "./evidence.js";

export interface Row {
  readonly fault: string; readonly rounds: number; readonly hits: number; readonly events: number;
  readonly lost: number; readonly doubled: number; readonly outOfOrder: number; readonly other: number; readonly unknown: number;
  /** Until a new piece of work was done, and until the slowest event that was in flight had ended. */
  readonly slowestRecoveryMs: number; readonly slowestEventMs: number;
}

export interface Report {
  readonly command: string; readonly seed: number; readonly profile: string; readonly ok: boolean;
  readonly sessions: number; readonly events: number; readonly effects: number; readonly onTwoWorkers: number; readonly restMs: number | undefined;
  /** Accepted events whose receipt the gateway has not seen. */
  readonly unreceipted: number;
  /** Of the fault that met least, and most. */
  readonly leastHits: number; readonly mostHits: number;
  readonly rows: readonly Row[]; readonly breaches: readonly Breach[]; readonly skipped: readonly string[];
}

export function reportOf(evidence: Evidence, breaches: readonly Breach[], about: Pick<Report, "command" | "seed" | "profile" | "skipped">): Report {
  const rows = [...new Set(evidence.struck.map((fault) => fault.fault))].sort().map((name) => rowOf(evidence, breaches, name));
  const onTwoWorkers = sharedSessions(evidence.book);
  return {
    ...about, ok: breaches.length === 0 && rows.length > 0, rows, breaches, onTwoWorkers, restMs: evidence.restMs, unreceipted: evidence.inboxRows.length,
    leastHits: Math.min(...evidence.struck.map((fault) => fault.hits)), mostHits: Math.max(...evidence.struck.map((fault) => fault.hits)),
    sessions: evidence.states.size, events: evidence.sent.filter((event) => event.accepted !== undefined).length, effects: evidence.book.filter((row) => row.phase === "effect").length,
  };
}

function rowOf(evidence: Evidence, breaches: readonly Breach[], name: string): Row {
  const struck = evidence.struck.filter((fault) => fault.fault === name);
  const events = evidence.sent.filter((event) => struck.some((fault) => fault.round === event.round));
  const sessions = new Set(events.map((event) => event.sessionId));
  const count = (...checks: string[]): number => breaches.filter((breach) => breach.sessionId !== undefined && sessions.has(breach.sessionId) && checks.includes(breach.check)).length;
  const named = ["lost", "doubled", "order"];
  return {
    fault: name, rounds: struck.length, hits: struck.reduce((sum, fault) => sum + fault.hits, 0), events: events.filter((event) => event.accepted !== undefined).length,
    lost: count("lost"), doubled: count("doubled"), outOfOrder: count("order"), other: breaches.filter((breach) => breach.sessionId !== undefined && sessions.has(breach.sessionId) && !named.includes(breach.check)).length,
    unknown: [...sessions].reduce((sum, id) => sum + unknownsIn(evidence.journals.get(id) ?? []), 0),
    slowestRecoveryMs: Math.max(...struck.map((fault) => fault.recoveredMs ?? 0)), slowestEventMs: Math.max(...struck.map((fault) => slowestMs(evidence, fault))),
  };
}

const HEAD = ["fault", "rounds", "hits", "events", "lost", "doubled", "out of order", "other", "unknown", "slowest recovery", "slowest event"];
const s = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

/** As markdown, so that it can go into a page as it is. */
export function render(report: Report): string {
  const cells = report.rows.map((row) => [row.fault, row.rounds, row.hits, row.events, row.lost, row.doubled, row.outOfOrder, row.other, row.unknown, s(row.slowestRecoveryMs), s(row.slowestEventMs)].map(String));
  const widths = HEAD.map((title, column) => Math.max(title.length, ...cells.map((line) => line[column]!.length)));
  const line = (texts: readonly string[]): string => `| ${texts.map((text, column) => (column === 0 ? text.padEnd(widths[column]!) : text.padStart(widths[column]!))).join(" | ")} |`;
  return [
    line(HEAD), `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`, ...cells.map(line), "",
    `${String(report.events)} events in ${String(report.sessions)} sessions, ${String(report.effects)} effects, ${String(report.onTwoWorkers)} sessions with calls on both workers; ${report.restMs === undefined ? "NOT AT REST" : `at rest ${s(report.restMs)} after the last fault`}.`,
    `${String(report.rows.reduce((sum, row) => sum + row.rounds, 0))} faults, each with ${String(report.leastHits)} to ${String(report.mostHits)} in flight; ${String(report.rows.reduce((sum, row) => sum + row.lost, 0))} lost, ${String(report.rows.reduce((sum, row) => sum + row.doubled, 0))} doubled, ${String(report.unreceipted)} without receipt.`,
    ...(report.skipped.length === 0 ? [] : [`Not in this plan: ${report.skipped.join(", ")}.`]),
    ...report.breaches.slice(0, MOST_BREACHES).map((breach) => `BREACH ${breach.check}: ${breach.text}`),
    ...(report.breaches.length > MOST_BREACHES ? [`… and ${String(report.breaches.length - MOST_BREACHES)} breaches more (--report has all)`] : []),
    report.ok ? `HELD: every invariant, seed ${String(report.seed)}` : `BROKEN: ${String(report.breaches.length)} breaches. Again: ${report.command}`,
  ].join("\n");
}

const MOST_BREACHES = 40;
