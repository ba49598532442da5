/** Owns: a session's state at any revision: its journal folded up to there, by the code that runs in production. */
import type { JSX } from "preact";
import type { JournalEntry } from "../../../src/contracts/journal.js";
import { inline } from "../lib/json.js";
import { usePoll } from "../lib/poll.js";
import { go, withQuery } from "../lib/router.js";
import { iso } from "../lib/words.js";
import { Broken, Fields, Id, Json, Loading, Status } from "../parts/basics.js";
import type { SessionStatus } from "../../../src/contracts/journal.js";

interface StateAnswer { readonly rev: number; readonly state: Readonly<Record<string, unknown>> & { readonly status: SessionStatus; readonly updatedAtMs: number; readonly journalDigest: string; readonly mailbox: readonly unknown[]; readonly outbox: readonly unknown[] } }

const EVERY_MS = 3_600_000; // a revision never changes

export function StateAt({ path, headRev, asked, entries }: { path: string; headRev: number; asked: number; entries: readonly JournalEntry[] }): JSX.Element {
  const rev = Math.min(headRev, Math.max(1, asked));
  const { value, error, refresh } = usePoll<StateAnswer>(`${path}/state?rev=${String(rev)}`, EVERY_MS);
  const show = (next: number): void => { go(withQuery({ tab: "state", rev: String(Math.min(headRev, Math.max(1, next))) }), "replace"); };
  const entry = entries.find((one) => one.rev === rev);
  return <section class="state-at" aria-label="State at a revision">
    <p class="steps"><button type="button" disabled={rev <= 1} onClick={() => { show(rev - 1); }} aria-label="Revision before">←</button>
      <label>Revision <input type="number" min={1} max={headRev} value={rev} onChange={(event) => { const next = Number(event.currentTarget.value); if (Number.isInteger(next)) show(next); }} /></label> <span class="quiet">of {headRev}</span>
      <button type="button" disabled={rev >= headRev} onClick={() => { show(rev + 1); }} aria-label="Next revision">→</button>
      <input type="range" min={1} max={headRev} value={rev} aria-label="Revision" onInput={(event) => { show(Number(event.currentTarget.value)); }} /></p>
    {entry === undefined ? null : <p class="quiet">{iso(entry.atMs)} · <span class="code">{entry.events.map((event) => event.type).join(", ")}</span></p>}
    {value === undefined ? (error === undefined ? <Loading /> : <Broken error={error} again={refresh} />) : <>
      <p><Status status={value.state.status} /></p>
      <Fields rows={[["mailbox", String(value.state.mailbox.length)], ["outbox", String(value.state.outbox.length)], ["digest", <Id id={value.state.journalDigest} />]]} />
      <Json text={inline(value.state)} label={`State at revision ${String(rev)}`} /></>}
  </section>;
}
