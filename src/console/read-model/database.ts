/**
 * Owns: the tables of the read model and opening them. Everything here is derived from topics and journals, except
 * `dead_letters` (the topic is drained into it), `audit` and `browsers`. JSON columns hold the wire shapes of src/contracts as they came.
 */
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import SqliteDatabase from "better-sqlite3";
import { Kysely, SqliteDialect } from "kysely";
import { DeadLetter } from "../../contracts/messages.js";
import { fingerprintOf } from "../fingerprint.js";

export interface SessionRow {
  actor_id: string; tenant: string; session_id: string; agent: string; status: string; rev: number; updated_at: number;
  next_due_at: number | null; nudged_at: number | null; nudges: number; summary: string;
}

/** One approval. Positions are places in the journal (`positionOf`): it is closed when `closed_pos` is above `opened_pos`, so neither order nor repetition of entries matters. */
export interface ApprovalRow {
  approval_id: string; tenant: string | null; session_id: string | null; actor_id: string; version: number;
  opened_pos: number; closed_pos: number; closed_as: string | null; closed_at: number | null; decided_by: string | null; decision: string | null;
  opened_at: number | null; sort_at: number; record: string | null; pending: string | null;
}

export interface DeadLetterRow {
  dead_letter_id: string; tenant: string | null; session_id: string | null; kind: string; reason: string; state: string;
  received_at: number; redrive_count: number; settled_at: number | null; letter: string; fingerprint: string;
}

/** `head_rev`: every entry up to it was projected. `max_rev`: the highest one seen. Below a gap the two differ. */
export interface JournalHeadRow { actor_id: string; head_rev: number; max_rev: number }

/** A session whose head is compared with what was projected once it has been quiet until `due_at`: its last entry may have been lost on the way. */
export interface JournalCheckRow { actor_id: string; due_at: number }

/** Append-only: each write has a row before it is tried and one with its outcome. */
interface AuditRow {
  audit_id: string; at: number; tenant: string; principal_id: string; key_id: string; action: string; target: string; outcome: string; reason: string; detail: string; ip: string;
}

/** A redrive command that its session is not known to have. `event_key`: whose outcome shows that it has. */
export interface RedriveRow { command_id: string; dead_letter_id: string; actor_id: string; event_key: string; command: string; attempts: number; due_at: number }

/** A signed-in browser. The token itself is never stored. */
export interface BrowserRow { token_hash: string; key_id: string; signed_in_at: number; expires_at: number }

export interface Tables {
  browsers: BrowserRow; redrives: RedriveRow; sessions: SessionRow; approvals: ApprovalRow; dead_letters: DeadLetterRow; journal_heads: JournalHeadRow;
  journal_checks: JournalCheckRow; audit: AuditRow;
}
export type ReadModel = Kysely<Tables>;

const DDL = `
create table if not exists sessions (actor_id text primary key, tenant text not null, session_id text not null, agent text not null, status text not null, rev integer not null,
  updated_at integer not null, next_due_at integer, nudged_at integer, nudges integer not null default 0, summary text not null);
create index if not exists sessions_recent on sessions (tenant, updated_at desc, actor_id);
create index if not exists sessions_due on sessions (next_due_at) where next_due_at is not null;
create table if not exists approvals (approval_id text primary key, tenant text, session_id text, actor_id text not null, version integer not null default 0,
  opened_pos integer not null default 0, closed_pos integer not null default 0, closed_as text, closed_at integer, decided_by text, decision text,
  opened_at integer, sort_at integer not null default 0, record text, pending text);
create index if not exists approvals_open on approvals (tenant, sort_at, approval_id);
create index if not exists approvals_session on approvals (actor_id);
create table if not exists dead_letters (dead_letter_id text primary key, tenant text, session_id text, kind text not null, reason text not null, state text not null,
  received_at integer not null, redrive_count integer not null default 0, settled_at integer, letter text not null, fingerprint text not null default '');
create index if not exists dead_letters_recent on dead_letters (received_at desc, dead_letter_id);
create table if not exists redrives (command_id text primary key, dead_letter_id text not null, actor_id text not null, event_key text not null, command text not null, attempts integer not null, due_at integer not null);
create index if not exists redrives_due on redrives (due_at);
create table if not exists journal_heads (actor_id text primary key, head_rev integer not null, max_rev integer not null);
create index if not exists journal_gaps on journal_heads (actor_id) where head_rev < max_rev;
create table if not exists journal_checks (actor_id text primary key, due_at integer not null);
create index if not exists journal_checks_due on journal_checks (due_at);
create table if not exists audit (audit_id text primary key, at integer not null, tenant text not null, principal_id text not null, key_id text not null,
  action text not null, target text not null, outcome text not null, reason text not null, detail text not null, ip text not null);
create index if not exists audit_recent on audit (tenant, at desc, audit_id);
create table if not exists browsers (token_hash text primary key, key_id text not null, signed_in_at integer not null, expires_at integer not null);
`;

/** Opens the file, making it and its tables where they are missing. */
export function openReadModel(file: string): ReadModel {
  if (file !== ":memory:") mkdirSync(dirname(file), { recursive: true });
  const database = new SqliteDatabase(file);
  database.pragma("journal_mode = WAL");
  database.pragma("synchronous = FULL"); // dead letters are acked once they are here
  database.pragma("busy_timeout = 5000");
  database.exec(DDL);
  addFingerprints(database);
  return new Kysely<Tables>({ dialect: new SqliteDialect({ database }) });
}

/** Files of an older version lack the column, and their letters the value. */
function addFingerprints(database: SqliteDatabase.Database): void {
  const columns = database.pragma("table_info(dead_letters)") as { name: string }[];
  if (!columns.some(({ name }) => name === "fingerprint")) database.exec("alter table dead_letters add column fingerprint text not null default ''");
  database.exec("create index if not exists dead_letters_alike on dead_letters (fingerprint)");
  const fill = database.prepare("update dead_letters set fingerprint = ? where dead_letter_id = ?");
  for (const row of database.prepare("select dead_letter_id as id, letter from dead_letters where fingerprint = ''").all() as { id: string; letter: string }[]) {
    fill.run(fingerprintOf(DeadLetter.parse(JSON.parse(row.letter))), row.id);
  }
}
