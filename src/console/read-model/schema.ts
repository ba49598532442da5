/**
 * Owns: the tables themselves, in one text that SQLite and PostgreSQL both read, and bringing an older database up to it. Everything but
 * `dead_letters` (the topic is drained into it), the audit (audit-schema.ts), who is signed in, and notices with their links is derived from topics and journals.
 */
import { sql, type Kysely } from "kysely";
import { DeadLetter } from "../../contracts/messages.js";
import { fingerprintOf } from "../fingerprint.js";
import { ensureAuditChain, type Dialect } from "./audit-schema.js";
import type { Tables } from "./database.js";

/** Raised when what is derived from journals means something else than before: every journal is then read again. */
const VERSION = 2;

/** Whole numbers are `bigint`, which SQLite takes for its integer; words are compared by their bytes, also where PostgreSQL has another order of letters. */
function tables(dialect: Dialect): string {
  const bytes = dialect === "postgres" ? ` collate "C"` : "";
  const keyed = dialect === "sqlite" ? " without rowid" : "";
  // SQLite numbers its rows by itself.
  const rowid = dialect === "postgres" ? ", rowid bigint generated always as identity" : "";
  return `
create table if not exists meta (name text primary key, value text not null);
create table if not exists sessions (actor_id text primary key, tenant text not null, session_id text not null, agent text not null, status text not null, rev bigint not null,
  updated_at bigint not null, next_due_at bigint, nudged_at bigint, nudges bigint not null default 0, summary text not null, quarantined bigint not null default 0, cost_usd double precision not null default 0,
  created_at bigint not null default 0, journal_from_rev bigint not null default 1, agent_version text not null default '');
create table if not exists approvals (approval_id text primary key, tenant text, session_id text, actor_id text not null, version bigint not null default 0,
  opened_pos bigint not null default 0, closed_pos bigint not null default 0, closed_as text, closed_at bigint, decided_by text, decision text,
  opened_at bigint, sort_at bigint not null default 0, record text, pending text, pending_version bigint not null default 0, tool text, rule text,
  assigned_to text, assigned_pos bigint not null default 0, snoozed_until bigint, snoozed_pos bigint not null default 0);
create table if not exists approval_events (approval_id text not null, pos bigint not null, event text not null, primary key (approval_id, pos))${keyed};
create table if not exists dead_letters (dead_letter_id text primary key, tenant text, session_id text, kind text not null, reason text not null, state text not null,
  received_at bigint not null, redrive_count bigint not null default 0, settled_at bigint, letter text not null, fingerprint text not null default ''${rowid});
create table if not exists redrives (command_id text primary key, dead_letter_id text not null, actor_id text not null, event_key text not null, command text not null, attempts bigint not null, due_at bigint not null);
create table if not exists redrives_made (dead_letter_id text not null, redrive bigint not null, content text not null, principal_id text not null, at bigint not null, primary key (dead_letter_id, redrive))${keyed};
create table if not exists journal_heads (actor_id text primary key, head_rev bigint not null, max_rev bigint not null, tried_at bigint not null default 0);
create table if not exists journal_checks (actor_id text primary key, due_at bigint not null);
create table if not exists browsers (token_hash text primary key, key_id text not null, signed_in_at bigint not null, expires_at bigint not null, person text);
create table if not exists sign_in_attempts (state_hash text primary key, browser_hash text not null, nonce text not null, verifier text not null, return_to text not null, expires_at bigint not null);
create table if not exists runs (actor_id text not null, run_id text not null, tenant text not null, started_at bigint, ended_at bigint, outcome text, code text, requested_by text, input text, primary key (actor_id, run_id))${keyed};
create table if not exists steps (actor_id text not null, run_id text not null, step bigint not null, attempt bigint not null, tenant text not null, started_at bigint, ended_at bigint, outcome text, model text,
  input_tokens bigint, output_tokens bigint, cost_usd double precision, primary key (actor_id, run_id, step, attempt))${keyed};
create table if not exists tool_calls (actor_id text not null, call_id text not null, tenant text not null, run_id text, tool text, args_digest text, proposed_at bigint, verdict text, rule text,
  dispatched_at bigint, claimed_at bigint, tries bigint, ended_at bigint, status text, primary key (actor_id, call_id))${keyed};
create table if not exists cost_days (tenant text not null, day bigint not null, agent text not null, model text not null, calls bigint not null, unpriced bigint not null,
  input_tokens bigint not null, output_tokens bigint not null, usd double precision not null, primary key (tenant, day, agent, model))${keyed};
create table if not exists rule_days (tenant text not null, day bigint not null, rule text not null, verdict text not null, hits bigint not null, primary key (tenant, day, rule, verdict))${keyed};
create table if not exists words (tenant text not null, word text${bytes} not null, actor_id text not null, primary key (tenant, word, actor_id))${keyed};
create table if not exists app_reports (app text not null, instance text not null, at bigint not null, received_at bigint not null, report text not null, primary key (app, instance))${keyed};
create table if not exists saved_views (tenant text not null, principal_id text not null, name text not null, address text not null, saved_at bigint not null, primary key (tenant, principal_id, name))${keyed};
create table if not exists notice_todo (approval_id text primary key, mark text not null);
create table if not exists notices (notice_id text primary key, approval_id text not null, tenant text not null, session_id text not null, channel text not null, event text not null, version bigint not null, pos bigint not null,
  state text not null, attempts bigint not null, refusals bigint not null, created_at bigint not null, due_at bigint not null, settled_at bigint, note text not null, receipt text, target text);
create table if not exists one_time_links (link_id text primary key, tenant text not null, approval_id text not null, principal_id text not null, made_by text not null, created_at bigint not null, expires_at bigint not null,
  used_at bigint, decision_id text, verdict text);
create table if not exists taken_callbacks (call_hash text primary key, expires_at bigint not null);
`;
}

const INDEXES = `
create index if not exists sessions_newest on sessions (tenant, updated_at desc, actor_id, status);
create index if not exists sessions_by_status on sessions (tenant, status, updated_at desc, actor_id);
create index if not exists sessions_of_agent on sessions (tenant, agent, updated_at desc, actor_id, status);
create index if not exists sessions_by_version on sessions (tenant, agent, agent_version, status);
create index if not exists sessions_by_cost on sessions (tenant, cost_usd desc, actor_id);
create index if not exists sessions_quarantined on sessions (tenant, updated_at desc, actor_id) where quarantined = 1;
create index if not exists sessions_at_rest on sessions (status, updated_at);
create index if not exists sessions_due on sessions (next_due_at) where next_due_at is not null;
create index if not exists approvals_open on approvals (tenant, sort_at, approval_id);
create index if not exists approvals_recent on approvals (tenant, opened_at desc, approval_id);
create index if not exists approvals_session on approvals (actor_id);
create index if not exists approvals_unshown on approvals (opened_at) where pending is null and closed_pos <= opened_pos;
create index if not exists approvals_alike on approvals (tenant, tool, closed_at desc);
create index if not exists dead_letters_recent on dead_letters (received_at desc, dead_letter_id);
create index if not exists dead_letters_alike on dead_letters (fingerprint);
create index if not exists redrives_due on redrives (due_at);
create index if not exists tool_calls_waiting on tool_calls (dispatched_at) where claimed_at is null and ended_at is null;
create index if not exists journal_gaps on journal_heads (tried_at) where head_rev < max_rev;
create index if not exists journal_checks_due on journal_checks (due_at);
create index if not exists sign_in_attempts_due on sign_in_attempts (expires_at);
create index if not exists words_of on words (actor_id);
create index if not exists notices_due on notices (channel, due_at) where state = 'waiting';
create index if not exists notices_of on notices (approval_id, created_at);
create index if not exists notices_by_state on notices (channel, state, created_at);
create index if not exists taken_callbacks_due on taken_callbacks (expires_at);
create index if not exists one_time_links_due on one_time_links (expires_at);
`;

/** Of older versions. Those that came after them have `status` too, so that a list by words need not read every session's row. */
const REPLACED_INDEXES = ["sessions_recent", "sessions_by_agent"] as const;

/** Columns that tables of an older version lack. */
const ADDED: readonly (readonly [table: string, column: string, type: string])[] = [
  ["dead_letters", "fingerprint", "text not null default ''"],
  ["sessions", "quarantined", "bigint not null default 0"], ["sessions", "cost_usd", "double precision not null default 0"],
  ["sessions", "created_at", "bigint not null default 0"], ["sessions", "journal_from_rev", "bigint not null default 1"], ["sessions", "agent_version", "text not null default ''"],
  ["approvals", "pending_version", "bigint not null default 0"], ["approvals", "tool", "text"], ["approvals", "rule", "text"],
  ["approvals", "assigned_to", "text"], ["approvals", "assigned_pos", "bigint not null default 0"], ["approvals", "snoozed_until", "bigint"], ["approvals", "snoozed_pos", "bigint not null default 0"],
  ["journal_heads", "tried_at", "bigint not null default 0"], ["browsers", "person", "text"],
];

/** Makes what is missing. Several consoles may do it at once. */
export async function migrate(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  await db.transaction().execute(async (trx) => {
    if (dialect === "postgres") await sql`select pg_advisory_xact_lock(7301)`.execute(trx);
    const fresh = !(await hasColumn(trx, dialect, "meta", "name")) && !(await hasColumn(trx, dialect, "sessions", "rev")) && !(await hasColumn(trx, dialect, "dead_letters", "letter"));
    await each(trx, tables(dialect));
    if (!fresh) for (const [table, column, type] of ADDED) if (!(await hasColumn(trx, dialect, table, column))) await sql.raw(`alter table ${table} add column ${column} ${type}`).execute(trx);
    if (dialect === "sqlite") await sql`drop index if exists journal_gaps`.execute(trx); // an older one had another column
    await each(trx, INDEXES);
    for (const old of REPLACED_INDEXES) await sql.raw(`drop index if exists ${old}`).execute(trx);
    await addFingerprints(trx);
    await addVersions(trx, dialect);
    await ensureAuditChain(trx, dialect);
    const [found] = (await sql<{ value: string }>`select value from meta where name = 'version'`.execute(trx)).rows;
    if (found?.value === String(VERSION)) return;
    await forgetHistory(trx);
    await sql`insert into meta (name, value) values ('version', ${String(VERSION)}) on conflict (name) do update set value = excluded.value`.execute(trx);
  });
}

/** What is folded from journals is dropped, and every journal is one gap: the projector reads it again. Lists of sessions, approvals and letters stay as they are meanwhile. */
export async function forgetHistory(db: Kysely<Tables>): Promise<void> {
  for (const table of ["runs", "steps", "tool_calls", "cost_days", "rule_days", "words"] as const) await db.deleteFrom(table).execute();
  await db.updateTable("journal_heads").set({ head_rev: 0, tried_at: 0 }).execute();
}

async function each(db: Kysely<Tables>, statements: string): Promise<void> {
  for (const statement of statements.split(";")) if (statement.trim() !== "") await sql.raw(statement).execute(db);
}

async function hasColumn(db: Kysely<Tables>, dialect: Dialect, table: string, column: string): Promise<boolean> {
  const { rows } = dialect === "sqlite" ? await sql<{ name: string }>`select name from pragma_table_info(${table})`.execute(db)
    : await sql<{ name: string }>`select column_name as name from information_schema.columns where table_schema = current_schema() and table_name = ${table}`.execute(db);
  return rows.some(({ name }) => name === column);
}

/** Rows of an older version have it in their summary only. */
async function addVersions(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  const version = dialect === "postgres" ? sql`summary::json->>'agentVersion'` : sql`json_extract(summary, '$.agentVersion')`;
  await sql`update sessions set agent_version = ${version} where agent_version = '' and ${version} <> ''`.execute(db);
}

/** Letters of an older version lack the value. */
async function addFingerprints(db: Kysely<Tables>): Promise<void> {
  const rows = await db.selectFrom("dead_letters").select(["dead_letter_id", "letter"]).where("fingerprint", "=", "").execute();
  for (const { dead_letter_id, letter } of rows) {
    await db.updateTable("dead_letters").set({ fingerprint: fingerprintOf(DeadLetter.parse(JSON.parse(letter))) }).where("dead_letter_id", "=", dead_letter_id).execute();
  }
}
