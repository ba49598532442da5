/**
 * Owns: folding the journal to the state (I7). Everything in the state comes from events and from the entry they are
 * in; bounds of lists (I9) are enforced here. What an event *means* is decided in `decide`; here it only takes effect.
 */
import type { JournalEntry, SessionEvent, SessionEventOf } from "../../contracts/journal.js";
import { STORED_VERSION, upcastDocument } from "../../contracts/stored-version.js";
import type { Applier } from "./evolve/applier.js";
import { allowanceAppliers } from "./evolve/allowances.js";
import { approvalAppliers } from "./evolve/approvals.js";
import { bookAppliers } from "./evolve/books.js";
import { callAppliers } from "./evolve/calls.js";
import { modelAppliers } from "./evolve/model.js";
import { runAppliers } from "./evolve/run.js";
import { assemble, partsOf, type EntryAt } from "./parts.js";
import { NEW_SESSION, type OpenSession, type SessionState } from "./state.js";

const appliers: { readonly [T in SessionEvent["type"]]: Applier<T> } = {
  SessionOpened: (parts) => parts, // of a session that is open: changes nothing
  SessionDeleted: (parts) => parts, // these take the place of the whole state, below
  JournalCompacted: (parts) => parts,
  ...runAppliers, ...modelAppliers, ...callAppliers, ...approvalAppliers, ...allowanceAppliers, ...bookAppliers,
};

/** One event. The first event of a journal must be SessionOpened, or SessionDeleted or JournalCompacted where what was before is erased. */
export function evolve(state: SessionState, event: SessionEvent, entry: EntryAt): SessionState {
  if (event.type === "SessionDeleted") return tombstone(event, entry);
  if (event.type === "JournalCompacted") return compacted(event);
  if (event.type === "SessionOpened" && (state.status === "NEW" || state.status === "DELETED")) return openedSession(event, entry);
  if (state.status === "NEW") {
    throw new Error(`journal entry ${String(entry.rev)} begins a session with ${event.type}; expected SessionOpened, SessionDeleted or JournalCompacted`);
  }
  // The table is indexed by the event's own type, so the applier fits the event.
  const apply = appliers[event.type] as Applier<SessionEvent["type"]>;
  return assemble(apply(partsOf(state), event, entry));
}

/** One journal entry: its events, then revision, time and the head of the digest chain. */
export function evolveAll(state: SessionState, events: readonly SessionEvent[], entry: { rev: number; atMs: number; digest: string }): SessionState {
  const next = events.reduce((folded, event) => evolve(folded, event, entry), state);
  return next.status === "NEW" ? next : { ...next, rev: entry.rev, updatedAtMs: entry.atMs, journalDigest: entry.digest };
}

/** The state that a whole journal folds to. */
export function fold(entries: readonly JournalEntry[]): SessionState {
  return entries.reduce((state, entry) => evolveAll(state, entry.events, entry), NEW_SESSION);
}

function openedSession(event: SessionEventOf<"SessionOpened">, entry: EntryAt): OpenSession {
  return {
    v: STORED_VERSION, status: "IDLE", tenant: event.tenant, sessionId: event.sessionId, actorId: event.actorId, agent: event.agent, agentVersion: event.agentVersion,
    rev: entry.rev, journalDigest: "", createdAtMs: entry.atMs, updatedAtMs: entry.atMs,
    mailbox: [], outbox: [], approvals: [], window: { fromRev: entry.rev, rounds: [] }, unknownCalls: [], unbooked: [],
    recentRuns: [], recentDecisions: [], recentCommands: [],
    totals: { modelCalls: 0, toolCalls: 0, inputTokens: 0, outputTokens: 0, costUsd: 0, deduplicated: 0 },
    // A generation is never used twice: its reminder may still be there.
    guard: { generation: event.again?.generation ?? 0, armed: false, periodMs: 0 },
    ...(event.again === undefined ? {} : { baseRev: entry.rev }), ...(event.again?.erase === undefined ? {} : { erase: event.again.erase }),
  };
}

/** All that is left of a deleted session. Made of the event alone, so that it can be folded without the entries before. */
function tombstone(event: SessionEventOf<"SessionDeleted">, entry: EntryAt): OpenSession {
  const { tenant, sessionId, actorId, agent, agentVersion, createdAtMs, generation, erase, reason } = event;
  const opened = openedSession({ type: "SessionOpened", tenant, sessionId, actorId, agent, agentVersion, again: { generation, erase } }, entry);
  return { ...opened, status: "DELETED", createdAtMs, deleted: reason };
}

/** The state as it was before the entry, which the event carries whole: it can be folded without the entries before. */
function compacted({ state, toRev, erase }: SessionEventOf<"JournalCompacted">): OpenSession {
  // What `decide` has put in; a document is trusted in the same way when it is loaded.
  return { ...(upcastDocument(state) as unknown as OpenSession), keptFromRev: toRev + 1, erase };
}
