/**
 * Owns: what must hold of the bench's own sessions afterwards, read from the outside: PostgreSQL's rows, the model's and the
 * tools' books, the console's lists (I1, I2, I3, I6, I7).
 */
import { DeadLetterPage } from "../src/contracts/api.js";
import { actorIdOf } from "../src/contracts/ids.js";
import { JournalEntry } from "../src/contracts/journal.js";
import { foldCheck, outcomeProblems, overlapProblems } from "../test/support/checks.js";
import { eventually } from "../test/support/cluster.js";
import { eventsOf } from "../test/support/docket.js";
import type { Sent } from "./client.js";
import type { Rig } from "./rig.js";

export interface CheckReport { readonly sessions: number; readonly events: number; readonly problems: readonly string[] }

const REST_MS = 60_000;

/** `callsMayRepeat`: hosts have ended, and a model call that this cut off is made again. */
export async function checkSessions(rig: Rig, sent: readonly Sent[], { callsMayRepeat }: { readonly callsMayRepeat: boolean }): Promise<CheckReport> {
  const problems: string[] = [];
  await atRest(rig).catch((error: unknown) => { problems.push(String(error)); });
  const bySession = new Map<string, Sent[]>();
  for (const one of sent) bySession.set(one.sessionId, [...bySession.get(one.sessionId) ?? [], one]);
  for (const [sessionId, turns] of bySession) {
    const entries = await journalOf(rig, actorIdOf("default", sessionId));
    const mine = [...outcomeProblems(entries), ...overlapProblems(entries)];
    const received = eventsOf(entries, "EventReceived").map(({ key }) => key);
    if (received.join() !== turns.map(({ eventKey }) => eventKey).join()) mine.push(`received ${String(received.length)} events, not the ${String(turns.length)} that were sent, in their order`);
    problems.push(...mine.map((problem) => `${sessionId}: ${problem}`));
  }
  for (const { turn } of sent) {
    const [effects = [], calls = []] = [rig.outside.effects.get(turn)?.keys, rig.outside.modelCallsMs.get(turn)];
    if (effects.length !== 1) problems.push(`${turn}: ${String(effects.length)} effects`);
    if (callsMayRepeat ? calls.length < 2 : calls.length !== 2) problems.push(`${turn}: ${String(calls.length)} model calls`);
  }
  const fold = foldCheck({ dataDir: rig.test.dataDir }, rig.database.address);
  const letters = await fetch(`${rig.console}/v1/dead-letters?limit=200`, { headers: { authorization: `Bearer ${rig.test.stack.apiKey}` } });
  const dead = DeadLetterPage.parse(await letters.json()).items.map(({ letter }) => `a good event was dead-lettered: ${letter.reason} ${letter.message}`);
  return { sessions: bySession.size, events: sent.length, problems: [...problems, ...fold.problems, ...dead] };
}

/** Every session idle, nothing in an outbox or mailbox. */
async function atRest(rig: Rig): Promise<void> {
  await eventually("every session comes to rest", async () => {
    const { rows } = await rig.sql.query<{ busy: string }>(`SELECT count(*) AS busy FROM (SELECT convert_from(value, 'UTF8')::jsonb AS doc FROM docket_sessions_state WHERE key LIKE 'session:%') s
      WHERE doc->>'status' <> 'IDLE' OR jsonb_array_length(doc->'mailbox') > 0 OR jsonb_array_length(doc->'outbox') > 0`);
    return rows[0]?.busy === "0" ? true : undefined;
  }, REST_MS);
}

async function journalOf(rig: Rig, actorId: string): Promise<JournalEntry[]> {
  const { rows } = await rig.sql.query<{ text: string }>(
    "SELECT convert_from(value, 'UTF8') AS text FROM docket_sessions_state WHERE key COLLATE \"C\" >= $1 AND key COLLATE \"C\" < $2 ORDER BY key COLLATE \"C\"", [`journal:${actorId}:`, `journal:${actorId};`]);
  return rows.map(({ text }) => JournalEntry.parse(JSON.parse(text)));
}
