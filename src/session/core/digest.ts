/** Owns: the chain of digests over the journal, so that a changed entry is seen. */
import { AS_STORED, type ReadEntry, type SessionEvent } from "../../contracts/journal.js";
import { sha256Hex } from "../../contracts/ids.js";
import { canonicalText } from "../../contracts/json.js";

/** Digest of an entry: SHA-256 over the previous entry's digest ("" before the first) and the canonical events. */
export function entryDigest(previousDigest: string, events: readonly SessionEvent[]): string {
  return sha256Hex(`${previousDigest}\n${canonicalText(events)}`);
}

/** The entry is the one that was written behind the one with that digest. */
export function continuesFrom(previousDigest: string, entry: ReadEntry): boolean {
  return entryDigest(previousDigest, entry[AS_STORED] ?? entry.events) === entry.digest;
}
