/**
 * Owns: what the actor answers to readers, and the HTTP API of gateway and console. Times on HTTP are epoch
 * milliseconds in fields named `...AtMs`.
 */
import { z } from "zod";
import { ApprovalRecord, PendingApproval, Remember, SessionAllowance } from "./decisions.js";
import { JournalEntry, RunOutcome, SessionSummary } from "./journal.js";
import { DeadLetter, DeadLetterKind } from "./messages.js";
import { DecisionKind } from "./tools.js";

/** Actor method `readSession`. */
export const SessionView = z.object({
  summary: SessionSummary,
  approvals: z.array(ApprovalRecord),
  recentRuns: z.array(z.object({ runId: z.string(), key: z.string(), outcome: RunOutcome, code: z.string().optional(), endedAtMs: z.number(), rev: z.number() })),
  unknownCalls: z.array(z.object({ callId: z.string(), tool: z.string(), argsDigest: z.string(), runId: z.string() })),
  /** Tools that people have allowed for this session, as far as they have not ended. */
  allowances: z.array(SessionAllowance).optional(),
});
export type SessionView = z.infer<typeof SessionView>;

/**
 * Actor method `readJournal {afterRev, limit}`: entries with rev > afterRev, in order, and the session's head. `fromRev`: the oldest revision
 * that can be read, where what was before is gone (compacted, or of a deleted life); a reader that asked for an older one gets what is left.
 */
export const JournalPage = z.object({ entries: z.array(JournalEntry), headRev: z.number().int(), fromRev: z.number().int().optional() });
export type JournalPage = z.infer<typeof JournalPage>;

/** How an event ends: as its run does, or `dead_lettered`: no session took it, and the letter has the reason. */
export const EventEnd = z.enum([...RunOutcome.options, "dead_lettered"]);

/** Actor method `readOutcome {key}` (event key) and `readDecision {decisionId}`. `unknown`: nobody has heard of the event. */
export const EventOutcome = z.object({
  state: z.enum(["unknown", "accepted", "running", "ended"]),
  runId: z.string().optional(), outcome: EventEnd.optional(), code: z.string().optional(), rev: z.number().int().optional(), deadLetterId: z.string().optional(),
});
export type EventOutcome = z.infer<typeof EventOutcome>;
export const DecisionOutcome = z.object({ known: z.boolean(), verdict: z.string().optional(), rev: z.number().int().optional(),
  /** Where it was refused: why, in words. */
  message: z.string().optional() });
export type DecisionOutcome = z.infer<typeof DecisionOutcome>;

/** 202 of the gateway. */
export const Accepted = z.object({
  sessionId: z.string(), tenant: z.string(), runId: z.string(), eventId: z.string(), eventSource: z.string(), eventKey: z.string(),
  agent: z.string(), links: z.object({ session: z.string(), stream: z.string(), outcome: z.string().optional() }),
});
export type Accepted = z.infer<typeof Accepted>;

/** Body of POST /v1/prompts (sessionId optional: one is made) and, without sessionId, POST /v1/sessions/:id/events. */
export const PromptRequest = z.strictObject({
  text: z.string().min(1).max(100_000),
  sessionId: z.string().optional(),
  agent: z.string().optional(),
  mode: z.enum(["enqueue", "reject", "interrupt", "steer", "withdraw"]).optional(),
  expiresAt: z.iso.datetime({ offset: true }).optional(),
  attributes: z.record(z.string(), z.string()).optional(),
});
export type PromptRequest = z.infer<typeof PromptRequest>;

/** Body of POST /v1/approvals/:id/decisions on the console. `argsDigest` and `version` say what was seen. */
export const DecisionRequest = z.strictObject({
  kind: DecisionKind,
  version: z.number().int(),
  argsDigest: z.string(),
  /** `modify`: new arguments as JSON text (text, so that digits are kept). */
  args: z.string().optional(),
  /** `reject`: the reason, which the model reads. `respond`: the answer. Else a reason, for the audit and the next who looks. */
  text: z.string().max(20_000).optional(),
  raise: z.object({ budgetUsd: z.number().positive().optional(), maxSteps: z.number().int().positive().optional() }).optional(),
  /** `approve`: allow the tool for this session. `where` is JSON text of an object. */
  remember: z.strictObject(Remember.shape).optional(),
  /** Retries of the same click carry the same id. */
  decisionId: z.string().min(8).max(100).optional(),
});
export type DecisionRequest = z.infer<typeof DecisionRequest>;

/** Answer to a decision: the actor's verdict, or 202 `not_known_yet`. `message`: why the actor refused it. */
export const DecisionAnswer = z.object({ approvalId: z.string(), decisionId: z.string(), verdict: z.string(), rev: z.number().int().optional(), message: z.string().optional() });
export type DecisionAnswer = z.infer<typeof DecisionAnswer>;

/** One thing that happened to an approval, from its session's journal. `by`: a person's id; `decisionId` where it was a decision, refused ones included. */
export const ApprovalEvent = z.object({
  atMs: z.number(), what: z.enum(["opened", "asked_again", "reminded", "assigned", "snoozed", "signed", "decided", "refused", "expired", "withdrawn"]),
  by: z.string().optional(), via: z.string().optional(), decisionId: z.string().optional(),
  /** The decision's kind, the refusal's code, who it was assigned to, why it was withdrawn, what expiry did. */
  detail: z.string().optional(), untilMs: z.number().optional(),
  /** `signed`, `decided`: the reason or answer that the person gave. `refused`: why the session did not take it. */
  text: z.string().optional(),
  /** `signed`, `decided` by modify: the arguments that the person made of those asked for. */
  args: z.string().optional(),
  /** `reminded`: roles and groups that may decide too from then on. */
  to: z.array(z.string()).optional(),
  /** `signed`: signatures before this one no longer count (other arguments, or another policy). */
  alone: z.boolean().optional(),
});
export type ApprovalEvent = z.infer<typeof ApprovalEvent>;

/** Body of POST /v1/approvals/:id/assign; `to` null: nobody. */
export const AssignRequest = z.strictObject({ to: z.string().min(1).max(200).nullable(), reason: z.string().max(2000).default("") });
/** An approval is put off for so long at most. */
export const MAX_SNOOZE_MS = 30 * 86_400_000;
/** Body of POST /v1/approvals/:id/snooze; `untilMs` null: no longer. */
export const SnoozeRequest = z.strictObject({ untilMs: z.number().int().nullable(), reason: z.string().max(2000).default("") });

export const ApprovalListItem = z.object({
  pending: PendingApproval,
  /** Only where one approval is asked for. */
  history: z.array(ApprovalEvent).optional(),
  state: z.enum(["open", "decided", "expired", "withdrawn"]),
  decidedBy: z.string().optional(), decidedAtMs: z.number().optional(), decision: z.string().optional(),
  /** What the person said with the decision. */
  reason: z.string().optional(),
  /** The arguments that a person made of those asked for (`modify`). */
  modifiedArgs: z.string().optional(),
});
export type ApprovalListItem = z.infer<typeof ApprovalListItem>;

export const DeadLetterItem = z.object({
  letter: DeadLetter, state: z.enum(["dead", "redriven", "discarded"]), receivedAtMs: z.number(), redriveCount: z.number().int(),
  /** Letters that died of the same thing share it. */
  fingerprint: z.string().default(""),
});
export type DeadLetterItem = z.infer<typeof DeadLetterItem>;

/** Dead letters of one fingerprint. `message` and the rest are those of the newest, `sampleId`. */
export const DeadLetterGroup = z.object({
  fingerprint: z.string(), kind: DeadLetterKind, reason: z.string(), app: z.string(), topic: z.string(), tool: z.string().optional(), message: z.string(), sampleId: z.string(),
  count: z.number().int(), dead: z.number().int(), firstAtMs: z.number(), lastAtMs: z.number(),
});
export type DeadLetterGroup = z.infer<typeof DeadLetterGroup>;

/** Which dead letters a bulk redrive means. Nothing given means all, and must be said by `all`. */
export const RedriveFilter = z.strictObject({
  kind: DeadLetterKind.optional(), reason: z.string().max(200).optional(), fingerprint: z.string().max(40).optional(), session: z.string().max(200).optional(),
  sinceMs: z.number().int().min(0).optional(), untilMs: z.number().int().min(0).optional(),
});
/** Body of POST /v1/dead-letters/redrive: one page of a bulk redrive, the oldest letters first. */
export const BulkRedriveRequest = z.strictObject({
  reason: z.string().min(1).max(2000), dryRun: z.boolean().default(false), all: z.boolean().default(false), filter: RedriveFilter.prefault({}),
  limit: z.number().int().min(1).max(500).default(100), cursor: z.string().max(2000).optional(),
});
/** `matched`: letters that were dead when this page began. `redriven`: of this page; with `dryRun` those that would have been. */
export const BulkRedriveAnswer = z.object({
  dryRun: z.boolean(), matched: z.number().int(), redriven: z.number().int(), byKind: z.record(z.string(), z.number().int()),
  skipped: z.array(z.object({ deadLetterId: z.string(), code: z.string(), message: z.string() })), nextCursor: z.string().optional(),
});
export type BulkRedriveAnswer = z.infer<typeof BulkRedriveAnswer>;

/** Body of POST /v1/dead-letters/discard: one page of a bulk discard, the oldest letters first. A dry run counts, and needs no reason. */
export const BulkDiscardRequest = z.strictObject({ ...BulkRedriveRequest.shape, reason: z.string().max(2000).default("") });
/** `matched`: letters that were dead when this page began. `discarded`: of this page; with `dryRun` those that would have been. */
export const BulkDiscardAnswer = z.object({ dryRun: z.boolean(), matched: z.number().int(), discarded: z.number().int(), nextCursor: z.string().optional() });
export type BulkDiscardAnswer = z.infer<typeof BulkDiscardAnswer>;

/** Every list: items and an opaque cursor where there is more. */
export const pageOf = <T extends z.ZodType>(item: T) => z.object({ items: z.array(item), nextCursor: z.string().optional() });
export const SessionPage = pageOf(SessionSummary);
export const ApprovalPage = pageOf(ApprovalListItem);
export const DeadLetterPage = pageOf(DeadLetterItem);
