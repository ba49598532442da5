/** Owns: one session: what it is doing, what happens next, its story and its journal; sending it a message, cancelling its run. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { JournalPage, SessionView } from "../../../src/contracts/api.js";
import type { JournalEntry } from "../../../src/contracts/journal.js";
import { get } from "../lib/api.js";
import { inline, visible } from "../lib/json.js";
import { useNow, usePoll } from "../lib/poll.js";
import { to } from "../lib/router.js";
import { storyOf, type Line } from "../lib/story.js";
import type { Me } from "../lib/urgency.js";
import { count, dollars, iso, nextWords, plural } from "../lib/words.js";
import { Broken, Fields, Id, Json, Loading, Notice, RiskMark, Status, Tabs, Time, Words } from "../parts/basics.js";
import { SessionActions } from "./session-actions.js";

type View = SessionView & { readonly stale: boolean };

const EVERY_MS = 2_000;
const PAGE = 500;

export function SessionPage({ id, tab, me }: { id: string; tab: string; me: Me }): JSX.Element {
  const path = `/v1/sessions/${encodeURIComponent(id)}`;
  const { value: view, error, refresh } = usePoll<View>(path, EVERY_MS);
  const { entries, from, earlier } = useJournal(path, view?.summary.rev);
  if (view === undefined) return <div class="page">{error === undefined ? <Loading /> : <Broken error={error} again={refresh} />}</div>;
  const here = to.session(id);
  return <div class="page session">
    <Head view={view} />
    {view.stale ? <Notice tone="bad"><b>The session itself does not answer.</b> This is what the console knew last. The System page says what is down.</Notice> : null}
    <SessionActions view={view} me={me} onDone={refresh} />
    <Tabs label="Session" tabs={[{ href: here, name: "Story", open: tab !== "journal" }, { href: `${here}?tab=journal`, name: "Journal", open: tab === "journal", count: view.summary.rev }]} />
    {from > 0 ? <p class="pad"><button type="button" onClick={earlier}>Show {count(Math.min(from, PAGE))} earlier revisions</button></p> : null}
    {tab === "journal" ? <Journal entries={entries} /> : <Story lines={storyOf(entries)} />}
  </div>;
}

function Head({ view }: { view: View }): JSX.Element {
  const { summary, approvals, recentRuns, unknownCalls } = view;
  const nowMs = useNow(5_000);
  const last = recentRuns.at(-1);
  return <header class="session-head">
    <p class="crumb"><a href="/sessions">Sessions</a></p>
    <h1><Id id={summary.sessionId} whole /> <Status status={summary.status} /></h1>
    <p class="waits"><b>Waits for</b> <Words text={summary.waitingFor} max={400} /></p>
    <p class="next"><b>Next</b> {nextWords(view, nowMs)}{summary.mailboxLength === 0 ? "" : ` ${plural(summary.mailboxLength, "event")} wait in the mailbox.`}</p>
    {approvals.map((record) => <p key={record.approvalId} class="ask"><RiskMark risk={record.risk} /> <a href={to.approval(record.approvalId)}>Decide on <span class="code">{record.tool ?? record.kind}</span></a> <span class="quiet">opened <Time at={record.openedAtMs} /></span></p>)}
    {unknownCalls.map((call) => <p key={call.callId} class="fault">It is not known whether <span class="code">{call.tool}</span> has had its effect (call <Id id={call.callId} />).</p>)}
    <div class="numbers">
      <Number name="cost" value={dollars(summary.costUsd)} /><Number name="tokens in" value={count(summary.inputTokens)} /><Number name="tokens out" value={count(summary.outputTokens)} />
      <Number name="model calls" value={count(summary.modelCalls)} /><Number name="tool calls" value={count(summary.toolCalls)} /><Number name="mailbox" value={count(summary.mailboxLength)} />
    </div>
    <Fields rows={[
      ["agent", `${summary.agent} (version ${summary.agentVersion})`], summary.runId === undefined ? undefined : ["run", <Id id={summary.runId} />],
      last === undefined ? undefined : ["last run", <span>{last.outcome}{last.code === undefined ? "" : ` (${last.code})`} <Time at={last.endedAtMs} /></span>],
      ["began", <Time at={summary.createdAtMs} />], ["changed", <Time at={summary.updatedAtMs} />], ["actor", <Id id={summary.actorId} />],
    ]} />
  </header>;
}

function Number({ name, value }: { name: string; value: string }): JSX.Element { return <div><b>{value}</b><span>{name}</span></div>; }

/** The newest entries, going on as the revision grows, and earlier ones when asked for. */
function useJournal(path: string, headRev: number | undefined): { entries: readonly JournalEntry[]; from: number; earlier: () => void } {
  const [state, setState] = useState<{ entries: readonly JournalEntry[]; from: number }>({ entries: [], from: -1 });
  const from = state.from >= 0 ? state.from : Math.max(0, (headRev ?? 0) - PAGE);
  const [failures, setFailures] = useState(0);
  const known = state.entries.at(-1)?.rev ?? from;
  useEffect(() => {
    if (headRev === undefined || known >= headRev) return;
    let ended = false;
    let timer: number | undefined;
    get<JournalPage>(`${path}/journal?after=${String(known)}&limit=${String(PAGE)}`).then((page) => {
      if (!ended) setState((before) => ({ from, entries: [...before.entries, ...page.entries.filter((entry) => entry.rev > (before.entries.at(-1)?.rev ?? from))] }));
    }, () => { if (!ended) timer = window.setTimeout(() => { setFailures(failures + 1); }, EVERY_MS); });
    return () => { ended = true; window.clearTimeout(timer); };
  }, [path, headRev, known, failures]);
  const earlier = (): void => {
    const start = Math.max(0, from - PAGE);
    get<JournalPage>(`${path}/journal?after=${String(start)}&limit=${String(PAGE)}`).then((page) => {
      setState((before) => ({ from: start, entries: [...page.entries.filter((entry) => entry.rev <= from), ...before.entries] }));
    }, () => undefined);
  };
  return { entries: state.entries, from, earlier };
}

function Story({ lines }: { lines: readonly Line[] }): JSX.Element {
  if (lines.length === 0) return <Loading />;
  return <ol class="story">{lines.map((line) => <li key={line.key} class={`line line-${line.tone}`} id={`r${line.key}`}>
    <span class="line-who"><bdi>{visible(line.who)}</bdi></span>
    <div class="line-what"><Words text={line.text} max={4_000} />{line.approvalId === undefined ? null : <> <a href={to.approval(line.approvalId)}>open</a></>}
      {line.detail === undefined || line.detail === "" ? null : <Json text={line.detail} label={`${line.who}, revision ${String(line.rev)}`} />}</div>
    <span class="line-when quiet" title={iso(line.atMs)}>{iso(line.atMs).slice(11, 19)} <span class="rev">#{line.rev}</span></span>
  </li>)}</ol>;
}

function Journal({ entries }: { entries: readonly JournalEntry[] }): JSX.Element {
  return <ol class="journal">{entries.map((entry) => <li key={entry.rev}><details><summary><b>#{entry.rev}</b> <span class="code">{entry.events.map((event) => event.type).join(", ")}</span> <span class="quiet">{entry.command} · {iso(entry.atMs)}</span></summary>
    {entry.events.map((event, index) => <Json key={index} text={inline(event)} label={event.type} />)}
    <p class="quiet">digest <Id id={entry.digest} /> commit <Id id={entry.commitId} /> host <Id id={entry.host} /></p></details></li>)}</ol>;
}
