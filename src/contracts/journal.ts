/**
 * Owns: the session's append-only record. One entry per commit; `evolve` folds the events of all entries to the
 * state (I7). These shapes are stored for years: a released one never changes (stored-version.ts).
 */
import { z } from "zod";
import { Principal } from "./cloudevent.js";
import { ApprovalRecord, ApproverRule, EscalationReason, SessionAllowance } from "./decisions.js";
import { STORED_VERSION, upcastEntry } from "./stored-version.js";
import { DecisionKind, Risk, ToolEffects, ToolFailureKind } from "./tools.js";

export const BusyMode = z.enum(["enqueue", "reject", "interrupt", "steer", "withdraw"]);
export type BusyMode = z.infer<typeof BusyMode>;

export const RunOutcome = z.enum(["completed", "rejected", "failed", "cancelled", "expired", "escalated"]);
export type RunOutcome = z.infer<typeof RunOutcome>;

/** What one call came to, as the model is told. Exactly one per call. */
export const CallStatus = z.enum([
  "succeeded", "failed", "denied", "rejected", "responded", "expired", "withdrawn", "cancelled", "timed_out", "outcome_unknown",
]);
export type CallStatus = z.infer<typeof CallStatus>;

export const Usage = z.object({
  inputTokens: z.number().int(), outputTokens: z.number().int(),
  cacheReadTokens: z.number().int().default(0), cacheWriteTokens: z.number().int().default(0),
});
export type Usage = z.infer<typeof Usage>;

export { EscalationReason } from "./decisions.js";

/** Text that may be large: `text` is what is kept inline; the whole is in the blob where one is named. */
export const StoredText = z.object({
  text: z.string(),
  truncated: z.boolean().default(false),
  blob: z.object({ key: z.string(), bytes: z.number().int(), digest: z.string() }).optional(),
});
export type StoredText = z.infer<typeof StoredText>;

/** A tool call as the model proposed it, sealed: canonical arguments, defaults applied. */
export const ProposedCall = z.object({
  callId: z.string(),
  /** The provider's own id of the call, needed to pair the result in the transcript. */
  providerCallId: z.string(),
  tool: z.string(),
  args: z.string(),
  argsDigest: z.string(),
  effects: ToolEffects,
  critical: z.boolean(),
  timeoutMs: z.number().int(),
  maxTries: z.number().int(),
});
export type ProposedCall = z.infer<typeof ProposedCall>;

/** What a check-up repairs. `document_*`: the document was folded anew from its whole journal; the others: nothing was outstanding for it any more. */
export const RepairKind = z.enum(["document_lost", "document_stale", "call_unjudged", "question_lost", "request_lost", "approval_orphaned", "row_orphaned", "run_stuck"]);
export type RepairKind = z.infer<typeof RepairKind>;

/** Why a session is quarantined: entries of its journal are missing, do not continue the chain of digests, or its state stays untrue after a repair. */
export const QuarantineReason = z.enum(["journal_gap", "journal_digest", "unrepairable"]);
export type QuarantineReason = z.infer<typeof QuarantineReason>;
export const Quarantine = z.object({ reason: QuarantineReason, message: z.string(), sinceMs: z.number().int() });
export type Quarantine = z.infer<typeof Quarantine>;

/** Journal entries (and their blobs) of a deleted session, or of a compacted journal, that are to be erased when the last of them is a day old. */
export const Erase = z.object({ fromRev: z.number().int(), toRev: z.number().int(), dueAtMs: z.number().int() });
export type Erase = z.infer<typeof Erase>;

const event = <T extends string, S extends z.ZodRawShape>(type: T, shape: S) => z.object({ type: z.literal(type), ...shape });

export const SessionEvent = z.discriminatedUnion("type", [
  event("SessionOpened", { tenant: z.string(), sessionId: z.string(), actorId: z.string(), agent: z.string(), agentVersion: z.string(),
    /** A deleted session is opened anew: what goes over from its tombstone. */
    again: z.object({ generation: z.number().int(), erase: Erase.optional() }).optional() }),
  event("EventReceived", {
    key: z.string(), source: z.string(), id: z.string(), eventType: z.string(), mode: BusyMode, runId: z.string(),
    principal: Principal.optional(), correlationId: z.string(), causationId: z.string().optional(), traceparent: z.string().optional(),
    expiresAtMs: z.number().int().optional(), data: StoredText,
    /** Mode `interrupt` took effect: the event waits at the front of the mailbox. */
    front: z.boolean().optional(),
  }),
  /** Accepted but not to be run now: session busy and mode `reject`, closed … The event's one outcome (I1). */
  event("EventRejected", { key: z.string(), runId: z.string(), code: z.string(), message: z.string() }),
  event("RunStarted", { runId: z.string(), key: z.string(), eventRev: z.number().int(), input: z.string(), requestedBy: z.string(), correlationId: z.string(), expiresAtMs: z.number().int().optional(), maxSteps: z.number().int().optional(), budgetUsd: z.number().optional(),
    /** The session goes over to this version of its agent. */
    agentVersion: z.string().optional() }),
  event("ModelCallStarted", { runId: z.string(), step: z.number().int(), attempt: z.number().int(), host: z.string(), reservedUsd: z.number() }),
  event("ModelAnswered", { runId: z.string(), step: z.number().int(), attempt: z.number().int(), model: z.string(), text: z.string(), calls: z.array(ProposedCall), stop: z.enum(["end", "tool_use", "max_tokens", "refusal"]), usage: Usage, costUsd: z.number().nullable(),
    /** The provider's own state of the answer, handed back unchanged with the transcript. */
    carry: z.string().optional() }),
  event("ModelCallFailed", { runId: z.string(), step: z.number().int(), attempt: z.number().int(), kind: z.enum(["transient", "permanent", "aborted", "lost", "not_sent"]), message: z.string(), retryAtMs: z.number().int().optional() }),
  /** An answer that came too late to count: only its cost is booked. */
  event("ModelCostBooked", { runId: z.string(), step: z.number().int(), attempt: z.number().int(), usage: Usage, costUsd: z.number().nullable() }),
  /** `interrupt` or `cancel` cut an answer: what had been said stays as context. */
  event("PartialAnswerKept", { runId: z.string(), step: z.number().int(), text: z.string() }),
  event("ToolCallAllowed", { callId: z.string(), rule: z.string(), policyVersion: z.string(),
    /** Policy asks for a person, and one has allowed the tool for this session. */
    allowanceId: z.string().optional() }),
  event("ToolCallDenied", { callId: z.string(), rule: z.string(), policyVersion: z.string(), reason: z.string() }),
  event("ApprovalOpened", { record: ApprovalRecord }),
  event("ApprovalReceived", { approvalId: z.string() }),
  event("DecisionRecorded", {
    approvalId: z.string(), decisionId: z.string(), kind: DecisionKind, principal: Principal, via: z.string(), final: z.boolean(),
    /** `modify`: the new sealed arguments. */
    args: z.string().optional(), argsDigest: z.string().optional(), text: z.string().optional(),
    raise: z.object({ budgetUsd: z.number().optional(), maxSteps: z.number().int().optional() }).optional(),
    /** `modify` under a stricter rule, or another policy: who has to decide from now on. */
    approvers: ApproverRule.optional(),
    /** The policy that this decision was checked against, where it is another than when the approval was opened; signatures given before are void. */
    policyVersion: z.string().optional(),
    /** The call must go out before (see ApprovalRecord.consentForMs). */
    validUntilMs: z.number().int().optional(),
  }),
  /** A decision that changed nothing (I10), kept for the audit. */
  event("DecisionRefused", { approvalId: z.string(), decisionId: z.string(), code: z.string(), principal: Principal.optional(), via: z.string(),
    /** Why, for the person who made it: what was there, and what was expected. */
    message: z.string().optional() }),
  /** A step of its chain was due: those who may decide are told again, and with `to` more people may. */
  event("ApprovalReminded", { approvalId: z.string(), step: z.number().int(), to: z.object({ roles: z.array(z.string()), groups: z.array(z.string()) }).optional() }),
  /** The tool is another than when it was asked: asked once more, under the next version, with nobody's signature. */
  event("ApprovalAskedAgain", { approvalId: z.string(), toolDigest: z.string() }),
  event("ApprovalAssigned", { key: z.string(), approvalId: z.string(), to: z.string().optional(), principal: Principal.optional(), reason: z.string().optional() }),
  event("ApprovalSnoozed", { key: z.string(), approvalId: z.string(), untilMs: z.number().int().optional(), principal: Principal.optional(), reason: z.string().optional() }),
  event("AllowanceGranted", { allowance: SessionAllowance }),
  event("AllowanceEnded", { allowanceId: z.string(), reason: z.enum(["revoked", "expired", "used_up", "policy_changed"]), key: z.string().optional(), principal: Principal.optional(), note: z.string().optional() }),
  event("ApprovalExpired", { approvalId: z.string(), action: z.enum(["reject", "stop", "escalate"]) }),
  event("ApprovalWithdrawn", { approvalId: z.string(), reason: z.string() }),
  event("ToolCallDispatched", { callId: z.string(), try: z.number().int(), deadlineAtMs: z.number().int(), grantIssuedAtMs: z.number().int(), grantExpiresAtMs: z.number().int() }),
  event("ToolCallClaimed", { callId: z.string(), try: z.number().int(), worker: z.string() }),
  event("ToolTryFailed", { callId: z.string(), try: z.number().int(), kind: ToolFailureKind, message: z.string(), retryAtMs: z.number().int().optional() }),
  event("ToolOutcomeUnknown", { callId: z.string(), try: z.number().int(), reason: z.string() }),
  /** The one result of a call, as the model sees it. */
  event("ToolResultRecorded", { callId: z.string(), providerCallId: z.string(), tool: z.string(), status: CallStatus, content: StoredText }),
  /** A result for a call that had been given up as unknown: closes the question. */
  event("LateResultRecorded", { callId: z.string(), outcome: z.string(), content: StoredText }),
  event("Escalated", { runId: z.string(), reason: EscalationReason, message: z.string(), record: ApprovalRecord }),
  event("MessageSteered", { runId: z.string(), key: z.string(), text: z.string(), /** Who sent it. */ requestedBy: z.string().optional() }),
  event("LimitsRaised", { runId: z.string(), budgetUsd: z.number().optional(), maxSteps: z.number().int().optional() }),
  /** Somebody asked the open run (or a waiting event) to stop. `key` makes the request idempotent. */
  event("CancelRequested", { key: z.string(), runId: z.string(), reason: z.string(), principal: Principal.optional() }),
  /** The run is to end thus, but calls with effects are still out: it ends when the last of them is settled. */
  event("RunEnding", { runId: z.string(), outcome: RunOutcome, code: z.string().optional(), text: z.string() }),
  event("RunEnded", { runId: z.string(), key: z.string(), outcome: RunOutcome, code: z.string().optional(), text: z.string() }),
  event("DeadLetterRecorded", { deadLetterId: z.string(), kind: z.string(), reason: z.string(), tries: z.number().int(), key: z.string().optional(), callId: z.string().optional(), payload: z.string(), /** The last error, for people. */ message: z.string().optional(),
    /** Journal entry of the dead event, and of the dead call's arguments (`payload` is then empty). */ eventRev: z.number().int().optional(), argsRev: z.number().int().optional() }),
  event("PublicationsCleared", { rowIds: z.array(z.string()) }),
  event("PublicationRepeated", { rowId: z.string(), publication: z.number().int() }),
  event("WindowAdvanced", { fromRev: z.number().int() }),
  event("GuardArmed", { generation: z.number().int(), periodMs: z.number().int(), /** First tick; default one period from now. */ dueAtMs: z.number().int().optional() }),
  event("GuardReleased", { generation: z.number().int() }),
  /** The session's check-up on activation found these and put them right: what it says is synthetic, not reported by anybody. */
  event("SessionRepaired", { found: z.array(z.object({ what: RepairKind, subject: z.string() })) }),
  /** The session cannot trust what is stored of it: it takes nothing until an operator releases or closes it. */
  event("SessionQuarantined", { reason: QuarantineReason, message: z.string() }),
  event("SessionReleased", { key: z.string(), reason: z.string(), principal: Principal.optional() }),
  /** Whole in itself: a journal may begin with it, or with a SessionOpened behind it, once the entries before are erased. */
  event("SessionDeleted", { tenant: z.string(), sessionId: z.string(), actorId: z.string(), agent: z.string(), agentVersion: z.string(), createdAtMs: z.number().int(), generation: z.number().int(), erase: Erase, reason: z.string(), principal: Principal.optional() }),
  /**
   * Entries up to `toRev` are no longer needed and are to be erased. `state` is the whole document before this entry, so that a journal may
   * begin here; `toDigest` is the digest of entry `toRev`, which the oldest entry that stays continues. All of it is under this entry's own digest.
   */
  event("JournalCompacted", { toRev: z.number().int(), toDigest: z.string(), state: z.record(z.string(), z.unknown()), erase: Erase }),
  event("SessionErased", { toRev: z.number().int() }),
  event("SessionClosed", { reason: z.string(), principal: Principal.optional() }),
]);
export type SessionEvent = z.infer<typeof SessionEvent>;
export type SessionEventOf<T extends SessionEvent["type"]> = Extract<SessionEvent, { type: T }>;

export const SESSION_STATUSES = ["IDLE", "PLANNING", "EXECUTING_TOOL", "SUMMARIZING", "AWAITING_APPROVAL", "ESCALATED", "CLOSED", "DELETED"] as const;
export const SessionStatus = z.enum(SESSION_STATUSES);
export type SessionStatus = z.infer<typeof SessionStatus>;

/** One commit. `rev` counts from 1 without a gap; `commitId` lets a commit whose reply was lost meet itself. Older ones are upcast, a newer one throws Problem `newer_version`. */
export const JournalEntry = z.preprocess((stored) => upcastEntry(stored), z.object({
  v: z.literal(STORED_VERSION),
  actorId: z.string(),
  rev: z.number().int().min(1),
  commitId: z.string(),
  atMs: z.number().int(),
  command: z.string(),
  host: z.string(),
  /** SHA-256 over the previous entry's `digest` and this entry's events: a chain, so that a change is seen. */
  digest: z.string(),
  events: z.array(SessionEvent),
}));
export type JournalEntry = z.infer<typeof JournalEntry>;

/** Where an entry was upcast, its events as they are stored: the digests are over these. No member that JSON would show. */
export const AS_STORED = Symbol("events as stored");
export type ReadEntry = JournalEntry & { readonly [AS_STORED]?: readonly SessionEvent[] };

/** A stored entry as this build has it. */
export function readEntry(text: string): ReadEntry {
  const stored = JSON.parse(text) as { readonly v: unknown; readonly events: readonly SessionEvent[] };
  const entry = JournalEntry.parse(stored);
  return stored.v === STORED_VERSION ? entry : { ...entry, [AS_STORED]: stored.events };
}

/** The entry is whole in itself: what was before is not needed to fold from it. */
export function isCheckpoint({ events: [first] }: Pick<JournalEntry, "events">): boolean {
  return first?.type === "SessionDeleted" || first?.type === "JournalCompacted";
}

/** Keys of the large texts that an entry points to. */
export function blobKeysOf(entry: JournalEntry): string[] {
  return entry.events.flatMap((event) => ("data" in event ? [event.data] : "content" in event ? [event.content] : [])).flatMap(({ blob }) => (blob === undefined ? [] : [blob.key]));
}

/** What lists show of a session; travels with every journal event so that a projector needs no fold. */
export const SessionSummary = z.object({
  tenant: z.string(), sessionId: z.string(), actorId: z.string(), agent: z.string(), agentVersion: z.string(),
  status: SessionStatus, rev: z.number().int(), createdAtMs: z.number().int(), updatedAtMs: z.number().int(),
  runId: z.string().optional(), waitingFor: z.string(), mailboxLength: z.number().int(), openApprovals: z.number().int(),
  modelCalls: z.number().int(), toolCalls: z.number().int(), inputTokens: z.number().int(), outputTokens: z.number().int(), costUsd: z.number(),
  /** When the session must be looked at next; the console nudges it when that passed. */
  nextDueAtMs: z.number().int().optional(),
  risk: Risk.optional(),
  /** It takes nothing until an operator acts. */
  quarantine: Quarantine.optional(),
  /** Oldest revision that can still be read; default 1. */
  journalFromRev: z.number().int().optional(),
});
export type SessionSummary = z.infer<typeof SessionSummary>;

export const JOURNAL_APPENDED = "com.docket.journal.appended.v1";
/** An entry and what the session was after it. */
export const JournalAppended = z.object({ entry: JournalEntry, summary: SessionSummary });
export type JournalAppended = z.infer<typeof JournalAppended>;
/** Data of JOURNAL_APPENDED: entries of any sessions, each session's in order. */
export const JournalBatch = z.object({ appended: z.array(JournalAppended) });
export type JournalBatch = z.infer<typeof JournalBatch>;
