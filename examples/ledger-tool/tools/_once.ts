/**
 * Owns: an effect in PostgreSQL that happens once, however often its tool is run, killed or frozen, and whose outcome can always be
 * told. Copy it beside your tools; table `docket_once` is in schema.sql.
 *
 * - P1 the call's row and the effect are one transaction: both are there, or neither.
 * - P2 the row is locked before the effect begins. Runs of one call never overlap: the second waits, then finds the first one's answer.
 * - P3 every run and every question raises the row's fence to its own, and under an older fence nothing commits. So "it did not
 *   happen" stays true: a worker that stood still for longer than its lock can no longer bring it about.
 * - P4 a run that stands still inside its transaction is ended by the server, so that a question never waits for it for long.
 */
import pg from "pg";
import { ToolFailure, type Reconciled, type ToolContext } from "../../../src/agent/index.js";

const CONNECT_MS = 5_000;
/** P4: below the 15 s that `reconcile` gets. */
const IDLE_MS = 5_000;
const LOCK_MS = 10_000;

/** The open transaction, for the effect's statements. */
export type Transaction = Pick<pg.ClientBase, "query">;

/** Brings the effect about, or gives back what it answered when it happened. What the effect throws undoes it. */
export async function once<T>(address: string, context: ToolContext, effect: (tx: Transaction) => Promise<T>): Promise<T> {
  return await connected(address, context.signal, async (client) => {
    let committing = false;
    try {
      await client.query("begin");
      const row = await claim(client, context);
      if (row.fence > context.fence) throw ToolFailure.notStarted("a newer run of this call has taken its place");
      if (row.done) return row.output as T;
      const answer = await effect(client);
      // An effect that answers nothing has happened all the same: JSON's null, which is not SQL's.
      await client.query("update docket_once set output = $2, at = now() where key = $1", [context.idempotencyKey, JSON.stringify(answer ?? null)]);
      committing = true;
      await client.query("commit");
      return answer;
    } catch (error) {
      // A commit without an answer proves nothing. What `reconcile` finds does.
      if (committing || ToolFailure.is(error)) throw error;
      throw ToolFailure.transient(`the ledger did not take it: ${messageOf(error)}`, { cause: error });
    }
  });
}

/** Did it happen? From now on no older run can make it so. */
export async function happened(address: string, context: ToolContext): Promise<Reconciled> {
  return await connected(address, context.signal, async (client): Promise<Reconciled> => {
    const row = await claim(client, context);
    if (row.done) return { happened: true, output: row.output };
    return { happened: row.fence > context.fence ? "unknown" : false };
  });
}

/** P2, P3. Waits for whoever holds the row. */
async function claim(client: pg.Client, { idempotencyKey, fence }: ToolContext): Promise<{ fence: number; done: boolean; output: unknown }> {
  const { rows } = await client.query<{ fence: string; done: boolean; output: unknown }>(
    "insert into docket_once as mine (key, fence) values ($1, $2) on conflict (key) do update set fence = greatest(mine.fence, excluded.fence) returning fence, output is not null as done, output", [idempotencyKey, fence],
  );
  const row = rows[0];
  if (row === undefined) throw new Error(`no row came back for call ${idempotencyKey}`);
  return { fence: Number(row.fence), done: row.done, output: row.output };
}

/** One connection for one piece of work. Whatever was not committed when it ends is rolled back. */
async function connected<T>(address: string, signal: AbortSignal, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: address, application_name: "docket-once", connectionTimeoutMillis: CONNECT_MS,
    options: `-c idle_in_transaction_session_timeout=${String(IDLE_MS)} -c lock_timeout=${String(LOCK_MS)}`,
  });
  client.on("error", () => undefined); // a connection that breaks would end the process; the next statement says so
  const end = (): Promise<void> => client.end().catch(() => undefined);
  const onAbort = (): void => { void end(); };
  signal.addEventListener("abort", onAbort, { once: true }); // a call that is given up ends its transaction
  try {
    await client.connect().catch((error: unknown) => { throw ToolFailure.notStarted(`the ledger does not answer: ${messageOf(error)}`, { cause: error }); });
    return await work(client);
  } finally {
    signal.removeEventListener("abort", onAbort);
    await end();
  }
}

function messageOf(error: unknown): string { return error instanceof Error ? error.message : String(error); }
