/**
 * Owns: the remaining payloads: commands on the tasks channel, receipts and responses, live deltas, dead letters.
 */
import { z } from "zod";
import { EnvelopeAttributes } from "./cloudevent.js";
import { BusyMode, JournalEntry, RunOutcome } from "./journal.js";

/** Types under this prefix are Docket's own. From outside only PROMPT_RECEIVED may come in. */
export const RESERVED_TYPE_PREFIX = "com.docket.";

export const PROMPT_RECEIVED = "com.docket.prompt.received.v1";
export const SESSION_CANCEL = "com.docket.session.cancel.v1";
export const SESSION_CLOSE = "com.docket.session.close.v1";
/** Data: SessionOrder. Ends a quarantine: the session goes on with what is stored. */
export const SESSION_RELEASE = "com.docket.session.release.v1";
/** Data: SessionDelete. */
export const SESSION_DELETE = "com.docket.session.delete.v1";
/** Data: SessionCompact. */
export const SESSION_COMPACT = "com.docket.session.compact.v1";
export const SESSION_NUDGE = "com.docket.session.nudge.v1";
export const SESSION_REDRIVE = "com.docket.session.redrive.v1";

/** Data of PROMPT_RECEIVED. */
export const PromptReceived = z.object({ text: z.string().min(1).max(100_000), attributes: z.record(z.string(), z.string()).optional() });
export type PromptReceived = z.infer<typeof PromptReceived>;

/** Data of SESSION_CANCEL (cancels the open run; `runId` guards against a stale click) and SESSION_CLOSE. */
export const SessionCancel = z.object({ runId: z.string().optional(), reason: z.string().max(2000).default("") });
export type SessionCancel = z.infer<typeof SessionCancel>;

/** Data of SESSION_RELEASE. */
export const SessionOrder = z.object({ reason: z.string().max(2000).default("") });
export type SessionOrder = z.infer<typeof SessionOrder>;

/** Data of SESSION_DELETE. `idleForMs`: by retention, and only if nothing has happened in it for so long. */
export const SessionDelete = z.object({ reason: z.string().max(2000).default(""), idleForMs: z.number().int().min(0).optional() });
export type SessionDelete = z.infer<typeof SessionDelete>;

/**
 * Data of SESSION_COMPACT: journal entries of ended runs may go that are older than `olderThanMs` and not among the newest `keepEntries`.
 * `projectedRev`: the console has shown that it has every entry up to there; what is behind it stays.
 */
export const SessionCompact = z.object({ projectedRev: z.number().int().min(0), keepEntries: z.number().int().min(1), olderThanMs: z.number().int().min(0) });
export type SessionCompact = z.infer<typeof SessionCompact>;

/**
 * Data of SESSION_REDRIVE. A dead event comes as a new one (new id, expiry, causation). A dead tool result or decision is delivered
 * again as it was: it is signed, so it proves itself, and the session takes it only if it still fits.
 */
export const SessionRedrive = z.object({
  deadLetterId: z.string(), event: z.string(), redrive: z.number().int().min(1), reason: z.string().max(2000).default(""),
  as: z.enum(["event", "tool_result", "decision"]).default("event"),
});
export type SessionRedrive = z.infer<typeof SessionRedrive>;

export const EVENT_ACCEPTED = "com.docket.event.accepted.v1";
export const RUN_ENDED = "com.docket.run.ended.v1";

/** Data of EVENT_ACCEPTED, the session's receipt: the gateway drops its inbox row on it. */
export const EventAccepted = z.object({
  tenant: z.string(), sessionId: z.string(), actorId: z.string(), key: z.string(), runId: z.string().optional(), rev: z.number().int(),
  /** `accepted`, `duplicate`, or the problem code of a refusal: recorded in the journal, or as the dead letter that is named. */
  verdict: z.string(),
  deadLetterId: z.string().optional(),
});
export type EventAccepted = z.infer<typeof EventAccepted>;

/** Data of RUN_ENDED. */
export const RunEndedMessage = z.object({
  tenant: z.string(), sessionId: z.string(), actorId: z.string(), agent: z.string(), runId: z.string(), key: z.string(),
  outcome: RunOutcome, code: z.string().optional(), text: z.string(), rev: z.number().int(), endedAtMs: z.number().int(),
});
export type RunEndedMessage = z.infer<typeof RunEndedMessage>;

export const LIVE_DELTA = "com.docket.live.delta.v1";
export const LIVE_ADVANCED = "com.docket.live.advanced.v1";

/** Data of LIVE_DELTA: text as it is produced. Lossy; the journal holds the whole answer. */
export const LiveDelta = z.object({ actorId: z.string(), runId: z.string(), step: z.number().int(), attempt: z.number().int(), index: z.number().int(), text: z.string() });
export type LiveDelta = z.infer<typeof LiveDelta>;
/** A journal has grown to `rev`; a stream that has all before it takes the entry, another one reads on. */
const LiveAdvance = z.object({ actorId: z.string(), rev: z.number().int(), /** left out where it is large */ entry: JournalEntry.optional() });
export type LiveAdvance = z.infer<typeof LiveAdvance>;
/** Data of LIVE_ADVANCED. */
export const LiveAdvanced = z.object({ advanced: z.array(LiveAdvance) });
export type LiveAdvanced = z.infer<typeof LiveAdvanced>;

export const DEAD_LETTERED = "com.docket.deadletter.recorded.v1";

/** What kind of thing died: decides what a redrive does. */
export const DeadLetterKind = z.enum(["event", "tool_request", "tool_result", "decision", "journal", "approval", "unreadable"]);
export type DeadLetterKind = z.infer<typeof DeadLetterKind>;

/** Data of DEAD_LETTERED. `payload` is what arrived, byte for byte as text (base64 where it was not UTF-8). `gzip` (as base64): on the way only. */
export const DeadLetter = z.object({
  deadLetterId: z.string(),
  kind: DeadLetterKind,
  /** A problem code, or a tool failure kind. Greppable. */
  reason: z.string(),
  message: z.string(),
  /** Topic it came from. */
  topic: z.string(),
  app: z.string(),
  tries: z.number().int().min(0),
  tenant: z.string().optional(), sessionId: z.string().optional(), actorId: z.string().optional(), runId: z.string().optional(), callId: z.string().optional(), tool: z.string().optional(),
  /** Attributes of the dead event, where it was readable. */
  envelope: EnvelopeAttributes.partial().optional(),
  payload: z.string(),
  payloadEncoding: z.enum(["utf8", "base64", "gzip"]),
  firstFailedAtMs: z.number().int(), lastFailedAtMs: z.number().int(),
});
export type DeadLetter = z.infer<typeof DeadLetter>;

/** The console's receipt for a letter. Comes on the tasks channel; a session host hands it on to the app that keeps the letter (platform/letter-box.ts). */
export const LETTER_RECEIVED = "com.docket.deadletter.received.v1";
/** Apps that send letters over the channel, and keep them until the console has them. */
const LetterKeeper = z.enum(["gateway", "sessions", "tools"]);
export type LetterKeeper = z.infer<typeof LetterKeeper>;
export function isLetterKeeper(app: string): app is LetterKeeper { return LetterKeeper.safeParse(app).success; }
/** Data of LETTER_RECEIVED. */
export const LetterReceived = z.object({ deadLetterId: z.string(), app: LetterKeeper });
export type LetterReceived = z.infer<typeof LetterReceived>;

/** How the app answers daprd for one delivery (HTTP pub/sub contract). */
export type DeliveryStatus = "SUCCESS" | "RETRY" | "DROP";

/** Mode asked for by an event; unknown words fall back to `enqueue`. */
export function busyModeOf(word: string | undefined): BusyMode {
  const parsed = BusyMode.safeParse(word);
  return parsed.success ? parsed.data : "enqueue";
}
