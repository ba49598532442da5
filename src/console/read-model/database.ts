/**
 * Owns: the rows of the read model. The queries are the same for SQLite and PostgreSQL (schema.ts has the tables, open.ts opens them).
 * JSON columns hold the wire shapes of src/contracts as they came.
 */
import type { Kysely } from "kysely";

export interface SessionRow {
  actor_id: string; tenant: string; session_id: string; agent: string; status: string; rev: number; updated_at: number;
  next_due_at: number | null; nudged_at: number | null; nudges: number; summary: string; quarantined: number; cost_usd: number;
  created_at: number; journal_from_rev: number; agent_version: string;
}

/** One approval. Positions are places in the journal (`positionOf`): it is closed when `closed_pos` is above `opened_pos`, so neither order nor repetition of entries matters. */
export interface ApprovalRow {
  approval_id: string; tenant: string | null; session_id: string | null; actor_id: string; version: number;
  opened_pos: number; closed_pos: number; closed_as: string | null; closed_at: number | null; decided_by: string | null; decision: string | null;
  opened_at: number | null; sort_at: number; record: string | null; pending: string | null; pending_version: number; tool: string | null; rule: string | null;
  assigned_to: string | null; assigned_pos: number; snoozed_until: number | null; snoozed_pos: number;
}

/** What happened to an approval, one row for each event of the journal. `event` is an ApprovalEvent. */
export interface ApprovalEventRow { approval_id: string; pos: number; event: string }

export interface DeadLetterRow {
  dead_letter_id: string; tenant: string | null; session_id: string | null; kind: string; reason: string; state: string;
  received_at: number; redrive_count: number; settled_at: number | null; letter: string; fingerprint: string;
}

/** `head_rev`: every entry up to it was projected. `max_rev`: the highest one seen. Below a gap the two differ; `tried_at`: when closing it failed last. */
export interface JournalHeadRow { actor_id: string; head_rev: number; max_rev: number; tried_at: number }

/** A session whose head is compared with what was projected once it has been quiet until `due_at`: its last entry may have been lost on the way. */
export interface JournalCheckRow { actor_id: string; due_at: number }

/** A redrive command that its session is not known to have. `event_key`: whose outcome shows that it has. */
export interface RedriveRow { command_id: string; dead_letter_id: string; actor_id: string; event_key: string; command: string; attempts: number; due_at: number }

/** What each redrive of a letter sent. `content`: AS_IT_WAS, or the digest of the edited payload; who asked for it, and when (redrives.ts). */
export interface RedriveMadeRow { dead_letter_id: string; redrive: number; content: string; principal_id: string; at: number }

/** A signed-in browser. The token itself is never stored. */
export interface BrowserRow { token_hash: string; key_id: string; signed_in_at: number; expires_at: number; person: string | null }

/** A sign-in that has begun at the identity provider (sign-in-attempts.ts). */
export interface AttemptRow { state_hash: string; browser_hash: string; nonce: string; verifier: string; return_to: string; expires_at: number }

/** What a run, a model call and a tool call came to; a column is null until the journal has told it. */
export interface RunRow { actor_id: string; run_id: string; tenant: string; started_at: number | null; ended_at: number | null; outcome: string | null; code: string | null; requested_by: string | null; input: string | null }
export interface StepRow {
  actor_id: string; run_id: string; step: number; attempt: number; tenant: string; started_at: number | null; ended_at: number | null; outcome: string | null; model: string | null;
  input_tokens: number | null; output_tokens: number | null; cost_usd: number | null;
}
export interface ToolCallRow {
  actor_id: string; call_id: string; tenant: string; run_id: string | null; tool: string | null; args_digest: string | null; proposed_at: number | null; verdict: string | null; rule: string | null;
  dispatched_at: number | null; claimed_at: number | null; tries: number | null; ended_at: number | null; status: string | null;
}
/** Sums per day (UTC, its first millisecond). */
export interface CostDayRow { tenant: string; day: number; agent: string; model: string; calls: number; unpriced: number; input_tokens: number; output_tokens: number; usd: number }
export interface RuleDayRow { tenant: string; day: number; rule: string; verdict: string; hits: number }
/** The latest report of a process (contracts/reports.ts). */
interface AppReportRow { app: string; instance: string; at: number; received_at: number; report: string }
/** For text search: which words are in a session's id and messages. */
export interface WordRow { tenant: string; word: string; actor_id: string }
interface SavedViewRow { tenant: string; principal_id: string; name: string; address: string; saved_at: number }

/** `content`: the text that was hashed. The other columns repeat parts of it, to be searched by. `upto_seq`: only of checkpoints. */
export interface AuditRow {
  seq: number; prev: string; content_hash: string; hash: string; content: string;
  audit_id: string; at: number; tenant: string; action: string; upto_seq: number | null;
}
export interface AuditHeadRow { seq: number; hash: string; at: number; jws: string }
export interface AuditMetaRow { installation: string }

/** An approval that something has happened to since its notices were planned. `mark`: another one with each happening. */
interface NoticeTodoRow { approval_id: string; mark: string }

/**
 * A notice for one channel: the outbox of notices. `pos`: the place of its event in the journal, or 0. `due_at`: when it is to be tried (again); counted up
 * before each attempt, so that a crash neither loses nor resets it. `receipt`: what the receiver calls its copy. `target`: where a copy is to be replaced.
 */
export interface NoticeRow {
  notice_id: string; approval_id: string; tenant: string; session_id: string; channel: string; event: string; version: number; pos: number; state: string; attempts: number; refusals: number;
  created_at: number; due_at: number; settled_at: number | null; note: string; receipt: string | null; target: string | null;
}

/** A one-time link. `decision_id`: the one decision that it was used for; `verdict`: what came of it, once that is known. */
export interface LinkRow {
  link_id: string; tenant: string; approval_id: string; principal_id: string; made_by: string; created_at: number; expires_at: number; used_at: number | null; decision_id: string | null; verdict: string | null;
}

/** A callback that was taken: its signature's hash, for as long as its timestamp would be believed. */
interface CallbackRow { call_hash: string; expires_at: number }

export interface Tables {
  browsers: BrowserRow; redrives: RedriveRow; redrives_made: RedriveMadeRow; sessions: SessionRow; approvals: ApprovalRow; approval_events: ApprovalEventRow; dead_letters: DeadLetterRow; journal_heads: JournalHeadRow;
  journal_checks: JournalCheckRow; audit_chain: AuditRow; audit_heads: AuditHeadRow; audit_meta: AuditMetaRow; sign_in_attempts: AttemptRow; runs: RunRow; steps: StepRow; tool_calls: ToolCallRow; cost_days: CostDayRow; rule_days: RuleDayRow; words: WordRow;
  saved_views: SavedViewRow; app_reports: AppReportRow; notice_todo: NoticeTodoRow; notices: NoticeRow; one_time_links: LinkRow; taken_callbacks: CallbackRow;
}
export type ReadModel = Kysely<Tables>;
