-- What examples/ledger-tool needs, once per database: psql "$DOCKET_TOOL_SECRET_LEDGER_URL" -f examples/ledger-tool/schema.sql

-- One row per call: the proof that its effect happened (output is not null), or the fence that forbids older runs to bring it about.
create table if not exists docket_once (
  key text primary key,
  fence bigint not null,
  output jsonb,
  at timestamptz not null default now()
);
-- Keep rows for longer than a grant lives (12 h): delete from docket_once where at < now() - interval '7 days';

-- The effect of the example.
create table if not exists ledger_entries (
  entry_id bigint generated always as identity primary key,
  account text not null,
  amount_cents bigint not null,
  memo text not null,
  at timestamptz not null default now()
);
create index if not exists ledger_entries_account on ledger_entries (account);
