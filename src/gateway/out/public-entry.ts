/**
 * Owns: what of a journal entry leaves through the stream. Every event does, in order; left out are fields that say how
 * Docket runs inside: hosts, workers, storage keys, commit ids and digests, provider call ids, the snapshot of a compaction, and people's roles.
 */
import type { JournalEntry } from "../../contracts/journal.js";

/** Fields that stay inside, wherever in an event they are. Arguments, texts and results are strings, so nothing of them is touched. */
const INTERNAL = new Set(["host", "worker", "providerCallId", "actorId"]);

export interface PublicEntry { readonly rev: number; readonly atMs: number; readonly command: string; readonly events: readonly unknown[] }

export function publicEntry(entry: JournalEntry): PublicEntry {
  return { rev: entry.rev, atMs: entry.atMs, command: entry.command, events: entry.events.map((event) => (event.type === "JournalCompacted" ? { type: event.type, toRev: event.toRev } : strip(event))) };
}

function strip(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(strip);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).filter(([name]) => !INTERNAL.has(name)).map(([name, inner]) => [name, stripNamed(name, inner)]));
}

function stripNamed(name: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (name === "principal") return omit(value, "roles");
  if (name === "blob") return omit(value, "key");
  return strip(value);
}

function omit(value: object, field: string): unknown {
  return Object.fromEntries(Object.entries(value).filter(([name]) => name !== field));
}
