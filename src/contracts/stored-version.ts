/**
 * Owns: the versions of what is stored of a session (its document and its journal entries), and the way from each to the next
 * (I12). One number for both. Stored things are never rewritten for it: they are read through the chain, and a document is written
 * in the new version with the session's next commit.
 *
 *   V1 a step is pure, and stays for ever: sessions sleep for years.
 *   V2 a step takes the document to what the upcast journal folds to (I7).
 *   V3 what a newer version wrote is refused and left as it is: a host that is rolled back loses nothing.
 *   V4 a released shape never changes, not by an optional member either: an older host would drop it (test/unit/session/stored-versions.test.ts).
 */
import { Problem } from "./problems.js";

export type Stored = Readonly<Record<string, unknown>>;

/** From one version to the next. */
export interface UpcastStep {
  readonly document: (document: Stored) => Stored;
  /** The events of one entry. */
  readonly events: (events: readonly Stored[]) => readonly Stored[];
}

/** The first is from version 1 to 2. None so far. */
const STEPS: readonly UpcastStep[] = [];

/** What this build writes. */
export const STORED_VERSION: number = STEPS.length + 1;

/** A session's document of any version up to this build's as this build has it. Throws Problem `newer_version`, or `store_unavailable` where it has none. */
export function upcastDocument(stored: unknown, steps: readonly UpcastStep[] = STEPS): Stored {
  const document = stored as Stored;
  const missing = stepsFrom(versionOf(stored, "a session's document", steps), steps);
  return missing.length === 0 ? document : { ...missing.reduce((older, step) => step.document(older), document), v: steps.length + 1 };
}

/** The same of a journal entry. What has no version is no entry: that is for the schema to say. */
export function upcastEntry(stored: unknown, steps: readonly UpcastStep[] = STEPS): unknown {
  const entry = stored as (Stored & { readonly events?: unknown }) | null;
  if (!Number.isInteger(entry?.["v"]) || !Array.isArray(entry?.events)) return stored;
  const missing = stepsFrom(versionOf(stored, "a journal entry", steps), steps);
  return missing.length === 0 ? stored : { ...entry, v: steps.length + 1, events: missing.reduce<readonly Stored[]>((events, step) => step.events(events), entry.events) };
}

function stepsFrom(version: number, steps: readonly UpcastStep[]): readonly UpcastStep[] { return steps.slice(version - 1); }

function versionOf(stored: unknown, what: string, steps: readonly UpcastStep[]): number {
  const version = (stored as { readonly v?: unknown } | null)?.v;
  const own = steps.length + 1;
  if (typeof version !== "number" || !Number.isInteger(version) || version < 1) throw new Problem("store_unavailable", `${what} has version ${String(version)}; expected is a number from 1 to ${String(own)}`, { hint: "it was not written by Docket, or is damaged: restore it from a backup" });
  if (version > own) throw new Problem("newer_version", `${what} has version ${String(version)}; this build reads versions up to ${String(own)}`, { hint: "a newer Docket wrote it: run that version, or a newer one. Nothing was changed" });
  return version;
}
