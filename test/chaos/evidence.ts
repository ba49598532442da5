/** Owns: what a chaos run leaves to be judged: everything the outside saw or kept, as data. Nothing here asks Docket what it thinks. */
import type { Accepted } from "../../src/contracts/api.js";
import type { JournalEntry } from "../../src/contracts/journal.js";
import type { OpenSession } from "../../src/session/core/state.js";
import type { PlannedEvent } from "./stories.js";

/** An event that a client sent until it had a 202. */
export interface SentEvent { readonly round: number; readonly sessionId: string; readonly story: string; readonly planned: PlannedEvent; accepted?: Accepted; acceptedAtMs?: number }

/** A row of the tools' own book. */
export interface BookRow { readonly key: string; readonly tool: string; readonly session: string; readonly token: string; readonly args: string; readonly phase: "start" | "effect"; readonly worker: string; readonly atMs: number }

export interface Letter { readonly sessionId: string | undefined; readonly kind: string; readonly reason: string; readonly message: string }

/** One fault that was done, and what it met. */
export interface Struck {
  readonly round: number; readonly fault: string;
  /** Pieces of work that it met in flight; 0 says that the fault tried nothing. */
  readonly hits: number;
  readonly fromMs: number; readonly untilMs: number;
  /** A tool run may have been cut short or overtaken by it. */
  readonly touchesWorkers: boolean;
  recoveredMs?: number;
}

export interface Evidence {
  readonly sent: readonly SentEvent[];
  readonly struck: readonly Struck[];
  readonly states: ReadonlyMap<string, OpenSession>;
  readonly journals: ReadonlyMap<string, readonly JournalEntry[]>;
  readonly inboxRows: readonly string[];
  readonly shown: ReadonlyMap<string, { readonly rev: number; readonly status: string }>;
  readonly letters: readonly Letter[];
  readonly book: readonly BookRow[];
  readonly modelCalls: readonly { readonly token: string; readonly step: number }[];
  /** What a person decided, by event. */
  readonly decided: ReadonlyMap<string, { readonly kind: string; readonly args: string }>;
  /** Events about whose unknown outcome a person was asked through the console. */
  readonly asked: ReadonlySet<string>;
  readonly streams: readonly { readonly sessionId: string; readonly revs: readonly number[] }[];
  readonly reminders: readonly string[];
  readonly folds: readonly string[];
  /** How long after the last fault everything was at rest; undefined: it was not, within the limit. */
  readonly restMs: number | undefined;
}
