/**
 * Owns: what can be asked of a session, and what a decision looks like. Commands carry everything that is not pure:
 * time, ids, random, policy verdicts, sealed arguments, the agent's limits.
 */
import type { Principal } from "../../contracts/cloudevent.js";
import type { ApprovalTend, DecisionClaims, OnExpiry } from "../../contracts/decisions.js";
import type { BusyMode, QuarantineReason, RepairKind, SessionEvent, StoredText, Usage } from "../../contracts/journal.js";
import type { ProblemCode } from "../../contracts/problems.js";
import type { DecisionKind, Risk, ToolFailureKind } from "../../contracts/tools.js";

/** Limits of the agent that the session runs (from its definition). */
export interface AgentLimits {
  readonly maxSteps: number;
  readonly budgetUsd: number;
  readonly maxReflections: number;
  readonly maxMailbox: number;
  readonly runTimeoutMs: number;
  readonly approvalTtlMs: number;
  readonly windowRounds: number;
  readonly windowBytes: number;
}

/** In every command. `random` in [0,1) feeds jitter. */
export interface CommandBase { readonly atMs: number; readonly host: string; readonly random: number; readonly limits: AgentLimits;
  /** The policy of the host that decides; a call that was permitted under another one does not go out any more. */ readonly policyVersion?: string }

/** What the session host found out about an event before the turn (plain functions of the agent). */
export interface PreparedInput {
  /** The agent's business check; a refusal ends the run `rejected` without a model call. */
  readonly check: { readonly ok: true } | { readonly ok: false; readonly code: string; readonly message: string };
  /** The user message the model gets. */
  readonly input: string;
  /** USD reserved for the first model call. */
  readonly reserveUsd: number;
  /** Version of the agent that this is for, and that does the run. Left out where none is installed. */
  readonly agentVersion?: string;
}

export interface IncomingEvent {
  readonly key: string; readonly runId: string; readonly source: string; readonly id: string; readonly eventType: string;
  readonly mode: BusyMode; readonly principal?: Principal; readonly correlationId: string; readonly causationId?: string; readonly traceparent?: string;
  readonly expiresAtMs?: number; readonly data: StoredText;
}

/** Verdict of policy on one sealed call. */
export interface Verdict {
  readonly verdict: "allow" | "ask" | "deny";
  readonly rule: string;
  readonly policyVersion: string;
  readonly reason: string;
  readonly risk: Risk;
  readonly allowed: readonly DecisionKind[];
  readonly approvers: { readonly roles: readonly string[]; readonly groups?: readonly string[] | undefined; readonly quorum: number; readonly excludeRequester: boolean };
  readonly onExpiry: OnExpiry;
  readonly expiresInMs?: number;
  /** In order of time. */
  readonly chain?: readonly { readonly afterMs: number; readonly to?: { readonly roles: readonly string[]; readonly groups: readonly string[] } }[];
  /** A person may allow the tool for the session. */
  readonly allowSession?: boolean;
  readonly consentForMs?: number;
}

/** A call of a model answer after sealing and policy. `invalid` calls go back to the model as an error result. */
export type JudgedCall =
  | { readonly ok: true; readonly callId: string; readonly providerCallId: string; readonly tool: string; readonly args: string; readonly argsDigest: string;
      readonly effects: "none" | "idempotent" | "once"; readonly critical: boolean; readonly timeoutMs: number; readonly maxTries: number; readonly verdict: Verdict; /** Of what is known of the tool. */ readonly toolDigest?: string }
  | { readonly ok: false; readonly callId: string; readonly providerCallId: string; readonly tool: string; readonly args: string; readonly message: string };

/** One thing that a check-up found and put right, and what it is about (a call, an approval, a run, a revision). */
export interface Repair { readonly what: RepairKind; readonly subject: string }

export type SessionCommand = CommandBase & (
  | { readonly type: "ReceiveEvent"; readonly tenant: string; readonly sessionId: string; readonly actorId: string; readonly agent: string; readonly agentVersion: string; readonly event: IncomingEvent; readonly prepared: PreparedInput;
      /** The ledger already knows the key (read by the host after a create-only conflict). */ readonly seen: boolean }
  /** The session is free and the mailbox is not empty: `prepared` is for its head. */
  | { readonly type: "TakeNext"; readonly key: string; readonly prepared: PreparedInput; readonly requestedBy: string; readonly correlationId: string;
      /** Its journal entry is gone: there is nothing to run. */ readonly lost?: true }
  | { readonly type: "StartModelCall"; readonly step: number; readonly attempt: number; readonly reserveUsd: number }
  | { readonly type: "RecordAnswer"; readonly runId: string; readonly step: number; readonly attempt: number; readonly model: string; readonly text: string; readonly stop: "end" | "tool_use" | "max_tokens" | "refusal";
      readonly calls: readonly JudgedCall[]; readonly usage: Usage; readonly costUsd: number | null; /** The provider's own state of the answer. */ readonly carry?: string; /** for the next model call, if one follows at once */ readonly reserveUsd: number }
  | { readonly type: "RecordModelFailure"; readonly runId: string; readonly step: number; readonly attempt: number; readonly kind: "transient" | "permanent" | "aborted" | "lost" | "not_sent"; readonly message: string; readonly retryAfterMs?: number; readonly partialText?: string; readonly usage?: Usage; readonly costUsd?: number | null }
  | { readonly type: "RecordClaim"; readonly callId: string; readonly try: number; readonly worker: string }
  | { readonly type: "RecordToolResult"; readonly callId: string; readonly try: number; readonly outcome: "succeeded" | "failed" | "outcome_unknown" | "not_started"; readonly failure?: { readonly kind: ToolFailureKind; readonly message: string; readonly retryAfterMs?: number }; readonly content: StoredText; readonly reserveUsd: number }
  | { readonly type: "Decide"; readonly claims: DecisionClaims;
      /**
       * What the host found. For `modify` the new sealed arguments with their verdict, for `approve` the sealed arguments that are asked about, with
       * what the present policy says of them.
       */
      readonly judged: { readonly ok: true; /** Of what is known of the tool now. */ readonly toolDigest?: string; readonly modified?: { readonly args: string; readonly argsDigest: string; readonly verdict: Verdict }; readonly current?: { readonly args: string; readonly verdict: Verdict } } | { readonly ok: false; readonly code: ProblemCode;
        /** For the person who decided: what was there, and what was expected. */ readonly message?: string };
      readonly reserveUsd: number }
  | { readonly type: "AcknowledgeApproval"; readonly approvalId: string; readonly version: number }
  /** Whose turn an approval is, and when to look again: visible, and never a decision. */
  | { readonly type: "TendApproval"; readonly key: string; readonly tend: ApprovalTend; readonly principal?: Principal }
  | { readonly type: "RevokeAllowance"; readonly key: string; readonly allowanceId: string; readonly reason: string; readonly principal?: Principal }
  | { readonly type: "Cancel"; readonly key: string; readonly runId?: string; readonly reason: string; readonly principal?: Principal; readonly partialText?: string }
  | { readonly type: "Close"; readonly key: string; readonly reason: string; readonly principal?: Principal }
  /** Only a session at rest; `idleForMs`: only if nothing has happened in it for so long. */
  | { readonly type: "Delete"; readonly reason: string; readonly idleForMs?: number; readonly principal?: Principal }
  /** What the host found in the journal: entry `toRev` (its time, its digest), behind which no event was without its outcome. */
  | { readonly type: "Compact"; readonly toRev: number; readonly toDigest: string; readonly toAtMs: number }
  /** The host has erased what was to be erased. */
  | { readonly type: "RecordErased"; readonly toRev: number }
  /** An operator ends the quarantine. */
  | { readonly type: "Release"; readonly key: string; readonly reason: string; readonly principal?: Principal }
  /** The check-up on activation: repairs what is untrue in the state, or, where what is stored cannot be trusted, quarantines the session. */
  | { readonly type: "Heal"; readonly found: readonly Repair[]; readonly quarantine?: { readonly reason: QuarantineReason; readonly message: string }; readonly reserveUsd: number }
  /** Guard, nudge or due timer: do whatever is due at `atMs`. `deadHosts` are hosts whose heartbeat is stale. */
  | { readonly type: "Tick"; readonly deadHosts: readonly string[]; readonly reserveUsd: number;
      /** Rows that the host published and no commit has cleared: success is evidence enough for responses and dead letters, the others wait for their reader. */ readonly published: readonly string[];
      readonly guardGeneration?: number }
);

export type CommandOf<T extends SessionCommand["type"]> = Extract<SessionCommand, { type: T }>;

/** What the outside has to do after the commit. Derived from the events and the new state, never stored. */
export type Effect =
  | { readonly type: "CallModel"; readonly runId: string; readonly step: number; readonly attempt: number }
  | { readonly type: "AbortModel"; readonly runId: string; readonly step: number; readonly attempt: number }
  | { readonly type: "Publish"; readonly rowId: string }
  | { readonly type: "WakeAt"; readonly atMs: number }
  | { readonly type: "TakeNext" };

/** Refusals are values with a code. `recorded` events are committed all the same (DecisionRefused …). */
export type Decision =
  | { readonly ok: true; readonly events: readonly SessionEvent[] }
  | { readonly ok: false; readonly code: ProblemCode; readonly message: string; readonly events: readonly SessionEvent[] };
