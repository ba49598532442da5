/**
 * Owns: the session's state (the hot document): what `evolve` folds the journal to. Bounded (I9): everything that
 * grows lives in journal entries and blobs; here are only references, counters and short rings.
 *
 * Persisted contract: stored as `session:<actorId>`. A released shape never changes: see contracts/stored-version.ts.
 */
import type { ApprovalRecord, SessionAllowance } from "../../contracts/decisions.js";
import type { CallStatus, Erase, EscalationReason, Quarantine, RunOutcome } from "../../contracts/journal.js";
import type { ToolEffects } from "../../contracts/tools.js";

/** An accepted event that waits for the session to be free. Its data is in journal entry `rev`. */
export interface MailboxItem { readonly rev: number; readonly key: string; readonly runId: string; readonly expiresAtMs?: number;
  /** Came in by `interrupt`: before those that wait in order. */ readonly front?: true }

/** A publication that is committed but not yet confirmed. The host builds the message from state and journal. */
export interface OutboxRow {
  /** `tool:<callId>:<try>`, `approval:<approvalId>:<version>`, `response:<runId>`, `dead:<deadLetterId>`. */
  readonly rowId: string;
  readonly kind: "tool_request" | "approval_pending" | "response" | "dead_letter";
  /** Journal entry that holds what is to be published. */
  readonly rev: number;
  readonly subject: string; // call id, approval id, run id, dead letter id
  readonly publication: number;
  readonly publishedAtMs: number;
}

/** Life of one tool call of the current answer. */
export type CallState =
  /** Only inside one commit: judged in the same turn. */
  | { readonly phase: "proposed" }
  | { readonly phase: "awaiting_approval"; readonly approvalId: string }
  | { readonly phase: "dispatched"; readonly try: number; readonly deadlineAtMs: number; readonly claimedBy?: string;
      /** How often the try had been published when it was claimed. */ readonly publications?: number;
      /** Latest sign of life of a claimed call, or when the worker was last asked for one. */ readonly askedAtMs?: number }
  /** `try` is the one that failed; the next is `try + 1`. */
  | { readonly phase: "waiting_retry"; readonly try: number; readonly dueAtMs: number }
  | { readonly phase: "unknown"; readonly try: number; readonly approvalId: string }
  | { readonly phase: "escalated"; readonly try: number; readonly approvalId: string }
  | { readonly phase: "finished"; readonly status: CallStatus };

export interface ToolCall {
  readonly callId: string;
  readonly providerCallId: string;
  readonly tool: string;
  readonly argsDigest: string;
  /** Journal entry that holds the arguments (the answer, or the decision that modified them). */
  readonly argsRev: number;
  readonly effects: ToolEffects;
  readonly critical: boolean;
  readonly timeoutMs: number;
  readonly maxTries: number;
  readonly grant?: { readonly issuedAtMs: number; readonly expiresAtMs: number };
  /** How often an approval was opened for it (numbers the approval ids). */
  readonly openings: number;
  /** An earlier try timed out without proof that it had not started (effects idempotent). */
  readonly unproven?: true;
  /** What lets it run: an `allow`, or a decision. Asked again before each dispatch. Older sessions have none. */
  readonly permit?: { readonly policyVersion: string; readonly argsDigest: string; readonly validUntilMs?: number };
  readonly life: CallState;
}

export type ModelCall =
  | { readonly phase: "running"; readonly step: number; readonly attempt: number; readonly host: string; readonly startedAtMs: number; readonly reservedUsd: number }
  | { readonly phase: "waiting"; readonly step: number; readonly attempt: number; readonly dueAtMs: number };

/** The work from one accepted event to its response. */
export interface Run {
  readonly runId: string;
  readonly key: string;
  readonly eventRev: number;
  readonly correlationId: string;
  readonly requestedBy: string;
  readonly startedAtMs: number;
  readonly expiresAtMs?: number;
  /** Model calls that were answered. */
  readonly steps: number;
  readonly maxSteps: number;
  readonly budgetUsd: number;
  readonly spentUsd: number;
  /** Failures given back to the model in a row. */
  readonly reflections: number;
  readonly lostAttempts: number;
  /** Attempts started of the step that is not answered yet. */
  readonly attempt: number;
  /** Failed attempts of that step since a person last said `retry`. */
  readonly failedAttempts: number;
  /** Events steered into this run; they end with it. */
  readonly steered: readonly { readonly key: string; readonly runId: string; readonly eventRev: number; /** Who sent it. */ readonly by?: string }[];
  /** A steered message has not been part of a model call yet. */
  readonly steerPending: boolean;
  /** Calls that a person rejected in this run: proposing the same again is rejected at once. */
  readonly rejected: readonly { readonly tool: string; readonly argsDigest: string }[];
  /** How the run will end once its last call with effects is settled. */
  readonly ending?: { readonly outcome: RunOutcome; readonly code?: string; readonly text: string };
  /** Escalations opened so far (numbers their approval ids). */
  readonly escalations: number;
  /** Calls of the latest answer. */
  readonly calls: readonly ToolCall[];
}

export interface SessionCommon {
  /** Version of this shape. */
  readonly v: number;
  readonly tenant: string;
  readonly sessionId: string;
  readonly actorId: string;
  readonly agent: string;
  readonly agentVersion: string;
  readonly rev: number;
  /** Digest of the latest journal entry (the chain's head). */
  readonly journalDigest: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly mailbox: readonly MailboxItem[];
  readonly outbox: readonly OutboxRow[];
  readonly approvals: readonly ApprovalRecord[];
  /** Prompt window: rounds (runs) still shown to the model, each by its first journal entry and its size. */
  readonly window: { readonly fromRev: number; readonly rounds: readonly { readonly rev: number; readonly bytes: number }[] };
  /** Calls whose outcome is unknown: the same tool with the same digest is blocked until it is closed. */
  readonly unknownCalls: readonly { readonly callId: string; readonly tool: string; readonly argsDigest: string; readonly runId: string;
    /** More than one try is unproven: only a success closes the question. */ readonly unproven?: true }[];
  /** Model attempts given up (lost, aborted) whose real cost is not known yet; `usd` is charged to the run meanwhile. */
  readonly unbooked: readonly { readonly runId: string; readonly step: number; readonly attempt: number; readonly usd: number }[];
  /** Tools that people have allowed for this session. */
  readonly allowances?: readonly SessionAllowance[];
  /** Keys of the latest cancel and other requests of people (I2). */
  readonly recentCommands: readonly string[];
  /** The session was closed; it becomes CLOSED when the open run has ended. */
  readonly closing?: string;
  readonly recentRuns: readonly { readonly runId: string; readonly key: string; readonly outcome: RunOutcome; readonly code?: string; readonly endedAtMs: number; readonly rev: number }[];
  readonly recentDecisions: readonly { readonly approvalId: string; readonly decisionId: string; readonly verdict: string; readonly rev: number }[];
  readonly totals: { readonly modelCalls: number; readonly toolCalls: number; readonly inputTokens: number; readonly outputTokens: number; readonly costUsd: number; readonly deduplicated: number };
  /** What is stored of the session cannot be trusted: nothing moves it until an operator releases or closes it. */
  readonly quarantine?: Quarantine;
  /** First entry of this life: the session was deleted before. */
  readonly baseRev?: number;
  /** Oldest entry that can be read: the journal before it was compacted, but for the first entry of this life. */
  readonly keptFromRev?: number;
  /** What is left of the life before, of the deleted session, or of the journal that was compacted. */
  readonly erase?: Erase;
  /** The session was deleted, for this reason. */
  readonly deleted?: string;
  /** The check-up looks at no entry before this one: an operator has released the session over them. */
  readonly checkedFromRev?: number;
  readonly guard: { readonly generation: number; readonly armed: boolean; readonly periodMs: number; /** First tick of a parked session's guard. */ readonly dueAtMs?: number };
}

export type SessionState =
  /** No journal yet. */
  | { readonly status: "NEW"; readonly rev: 0 }
  | (SessionCommon & { readonly status: "IDLE" })
  | (SessionCommon & { readonly status: "PLANNING"; readonly run: Run; readonly model: ModelCall })
  | (SessionCommon & { readonly status: "SUMMARIZING"; readonly run: Run; readonly model: ModelCall })
  | (SessionCommon & { readonly status: "EXECUTING_TOOL"; readonly run: Run })
  | (SessionCommon & { readonly status: "AWAITING_APPROVAL"; readonly run: Run })
  | (SessionCommon & { readonly status: "ESCALATED"; readonly run: Run; readonly escalation: { readonly reason: EscalationReason; readonly approvalId: string; readonly message: string } })
  | (SessionCommon & { readonly status: "CLOSED"; readonly reason: string })
  /** A tombstone: it keeps the revision, so that no old writer or event begins again at revision 1. */
  | (SessionCommon & { readonly status: "DELETED" });

export type OpenSession = Exclude<SessionState, { status: "NEW" }>;

export const NEW_SESSION: SessionState = { status: "NEW", rev: 0 };
