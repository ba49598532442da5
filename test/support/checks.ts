/** Owns: what must hold of every session that a test made, checked from the outside after the test (I1, I3, I7). */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import type { JournalEntry } from "../../src/contracts/journal.js";
import { REPO_ROOT } from "./cluster.js";
import { eventsOf, type Docket } from "./docket.js";

export interface FoldReport { readonly sessions: number; readonly entries: number; readonly problems: readonly string[] }

/** fold(journal) = state for every session in the store (by default the data folder's SQLite file), by a process that is not Docket's. `dist`: the build whose fold it is. */
export function foldCheck(docket: Pick<Docket, "dataDir">, store = join(docket.dataDir, "state", "sessions.db"), dist = join(REPO_ROOT, "dist")): FoldReport {
  const output = execFileSync(process.execPath, [join(REPO_ROOT, "test/support/fold-check.mjs"), store, dist], { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
  return JSON.parse(output) as FoldReport;
}

/** Every accepted event has at most one outcome, and all that were accepted have one once the session is at rest (I1). */
export function outcomeProblems(entries: readonly JournalEntry[]): string[] {
  const received = eventsOf(entries, "EventReceived").map((event) => event.key);
  const ended = [...eventsOf(entries, "RunEnded").map((event) => event.key), ...eventsOf(entries, "EventRejected").map((event) => event.key)];
  return [
    ...received.filter((key) => ended.filter((other) => other === key).length !== 1).map((key) => `event ${key} has ${String(ended.filter((other) => other === key).length)} outcomes`),
    ...received.filter((key, index) => received.indexOf(key) !== index).map((key) => `event ${key} was received twice`),
  ];
}

/** Runs never overlap: each ends before the next one starts (I3). */
export function overlapProblems(entries: readonly JournalEntry[]): string[] {
  const problems: string[] = [];
  let open: string | undefined;
  for (const event of entries.flatMap((entry) => entry.events)) {
    if (event.type === "RunStarted") {
      if (open !== undefined) problems.push(`run ${event.runId} started while ${open} was open`);
      open = event.runId;
    }
    if (event.type === "RunEnded" && event.runId === open) open = undefined;
  }
  return problems;
}
