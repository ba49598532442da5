/** Owns: the core's fixed numbers. Bounds of stored lists (I9) are part of the persisted contract: a change alters what `fold` gives. */

/** Allowances of a session. Each is under 1 KiB. */
export const MAX_ALLOWANCES = 10;
/** An approval whose policy says nothing else holds so long until its call goes out. */
export const CONSENT_MS = 12 * 3_600_000;

/** Entries of recentDecisions, recentCommands, unknownCalls and a run's rejected calls. */
export const RING = 50;
/** Ended runs kept in the document. Few: every turn writes them, and ledger and journal know the older ones. */
export const RECENT_RUNS = 6;
export const MAX_ROUNDS = 100;
export const MAX_UNBOOKED = 20;
/** More rows than this and the session takes no further events until some are out. */
export const MAX_OUTBOX = 64;
/** Calls of one answer that are looked at; the rest go back to the model. */
export const MAX_CALLS = 16;
/** Journal entries the prompt window may span (a turn's cost must not grow with the session). */
export const MAX_WINDOW_ENTRIES = 1000;

/** Time for queue and worker on top of a tool's own timeout; longer than the worker's lock (12 s). */
export const TOOL_GRACE_MS = 75_000;
/** A claimed call that is quiet for so long is asked for again; the worker's lock (12 s) has run out by then. Doubled each time. */
export const REASK_MS = 13_000;
export const REASK_CAP_MS = 300_000;
/** Once more so long before the deadline: whoever died before its timeout has lost its lock by then. */
export const REASK_BEFORE_MS = 35_000;
/** Minted once per call; expires before the worker forgets the call (24 h). */
export const GRANT_TTL_MS = 12 * 3_600_000;

export const REPUBLISH_MS = 30_000;
export const REPUBLISH_TOOL_MS = 15_000;

export const MAX_MODEL_ATTEMPTS = 6;
export const MAX_LOST_ATTEMPTS = 3;

export const BACKOFF_BASE_MS = 1000;
export const BACKOFF_CAP_MS = 60_000;

export const GUARD_MODEL_MS = 5000;
export const GUARD_BUSY_MS = 10_000;
export const GUARD_PARKED_MS = 60_000;

/** Newest journal entries that no compaction touches: more than a check-up reads. */
export const MIN_KEPT_ENTRIES = 16;
/** No younger journal entry is deleted. */
export const ERASE_AFTER_MS = 24 * 3_600_000;

/** Text kept in the state or said to the model about a failure. */
export const MAX_MESSAGE = 2000;
export const MAX_QUESTION = 600;
export const MAX_CODE = 100;
