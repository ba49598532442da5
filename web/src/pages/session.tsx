/** Owns: one session: what it is doing and what happens next; its story, waterfall, journal and the state at any revision. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { JournalPage, SessionView } from "../../../src/contracts/api.js";
import type { JournalEntry } from "../../../src/contracts/journal.js";
import { numberIn, oddChoice, oddNumber } from "../lib/address.js";
import { get } from "../lib/api.js";
import { inline, visible } from "../lib/json.js";
import { useNow, usePoll } from "../lib/poll.js";
import { to } from "../lib/router.js";
import { storyOf, type Line } from "../lib/story.js";
import { useSubject } from "../lib/title.js";
import type { Me } from "../lib/urgency.js";
import { count, dollars, iso, nextWords, plural, STATUS_WORDS, wordFor } from "../lib/words.js";
import { Broken, Fields, Id, Json, Loading, Notice, OddAddress, RiskMark, Status, Tabs, Time, Words } from "../parts/basics.js";
import { Allowances } from "./allowances.js";
import { Escalation } from "./escalation.js";
import { SessionActions } from "./session-actions.js";
import { SessionOrders } from "./session-orders.js";
import { StateAt } from "./state-at.js";
import { Waterfall } from "./waterfall.js";

type View = SessionView & { readonly stale: boolean };

const EVERY_MS = 2_000;
const PAGE = 500;
const TABS = [["story", "Story"], ["waterfall", "Waterfall"], ["journal", "Journal"], ["state", "State"]] as const;

export function SessionPage({ id, query, me }: { id: string; query: URLSearchParams; me: Me }): JSX.Element {
  const path = `/v1/sessions/${encodeURIComponent(id)}`;
  const { value: view, error, refresh } = usePoll<View>(path, EVERY_MS);
  const { entries, from, earlier } = useJournal(path, view?.summary.rev);
  useSubject(view === undefined ? id : `${id}: ${STATUS_WORDS[view.summary.status]}`);
  if (view === undefined) return <div class="page">{error === undefined ? <Loading /> : <Broken error={error} again={refresh} />}</div>;
  const here = to.session(id);
  const readableFrom = view.summary.journalFromRev ?? 1;
  const shown = TABS.find(([name]) => name === query.get("tab"))?.[0] ?? "story";
  const headRev = view.summary.rev;
  return <div class="page session">
    <Head view={view} />
    {view.stale ? <Notice tone="bad"><b>The session itself does not answer.</b> This is what the console knew last. The System page says what is down.</Notice> : null}
    {view.approvals.filter((record) => record.kind === "escalation").map(({ approvalId }) => <Escalation key={approvalId} approvalId={approvalId} me={me} onDone={refresh} />)}
    <Allowances view={view} me={me} onDone={refresh} />
    <SessionActions view={view} me={me} onDone={refresh} />
    <SessionOrders view={view} me={me} onDone={refresh} />
    <div class="tab-line"><Tabs label="Session" tabs={[...TABS.map(([name, words]) => ({ href: name === "story" ? here : `${here}?tab=${name}`, name: words, open: shown === name, ...(name === "journal" ? { count: view.summary.rev } : {}) }))]} />
      <a class="quiet-link" href={`${path}/export`} download>Export the journal</a></div>
    <OddAddress odd={[oddChoice(query, "tab", { expected: TABS.map(([name]) => name), shown: "the story" }), oddNumber(query, "rev", { from: 1, to: headRev, shown: shown === "state" ? `the state at revision ${String(headRev)}, the latest` : `the whole ${shown}` })]} />
    {from >= readableFrom ? <p class="pad"><button type="button" onClick={earlier}>Show {plural(Math.min(from - readableFrom + 1, PAGE), "earlier revision")}</button></p> : null}
    {from < readableFrom && readableFrom > 1 ? <p class="pad quiet">Revisions before #{readableFrom} are no longer kept.</p> : null}
    {shown === "journal" ? <Journal entries={entries} /> : shown === "waterfall" ? <Waterfall entries={entries} sessionId={id} />
      : shown === "state" ? <StateAt path={path} headRev={headRev} asked={numberIn(query, "rev", 1, headRev) ?? headRev} entries={entries} /> : <Story lines={storyOf(entries)} here={here} />}
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
    <p class="next"><b>Next</b> {nextWords(view, nowMs)}{summary.mailboxLength === 0 ? "" : ` ${plural(summary.mailboxLength, "event waits", "events wait")} in the mailbox.`}</p>
    {approvals.filter((record) => record.kind === "tool_call").map((record) => <p key={record.approvalId} class="ask"><RiskMark risk={record.risk} /> <a href={to.approval(record.approvalId)}>Decide on <span class="code">{record.tool ?? record.kind}</span></a> <span class="quiet">opened <Time at={record.openedAtMs} /></span></p>)}
    {unknownCalls.map((call) => <p key={call.callId} class="fault">It is not known whether <span class="code">{call.tool}</span> has had its effect (call <Id id={call.callId} />).</p>)}
    <div class="numbers">
      <Amount name="cost" value={dollars(summary.costUsd)} /><Amount name="tokens in" value={count(summary.inputTokens)} /><Amount name="tokens out" value={count(summary.outputTokens)} />
      <Amount name={wordFor(summary.modelCalls, "model call")} value={count(summary.modelCalls)} /><Amount name={wordFor(summary.toolCalls, "tool call")} value={count(summary.toolCalls)} /><Amount name="mailbox" value={count(summary.mailboxLength)} />
    </div>
    <Fields rows={[
      ["agent", `${summary.agent} (version ${summary.agentVersion})`], summary.runId === undefined ? undefined : ["run", <Id id={summary.runId} />],
      last === undefined ? undefined : ["last run", <span>{last.outcome}{last.code === undefined ? "" : ` (${last.code})`} <Time at={last.endedAtMs} /></span>],
      ["began", <Time at={summary.createdAtMs} />], ["changed", <Time at={summary.updatedAtMs} />], ["actor", <Id id={summary.actorId} />],
    ]} />
  </header>;
}

function Amount({ name, value }: { name: string; value: string }): JSX.Element { return <div><b>{value}</b><span>{name}</span></div>; }

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

function Story({ lines, here }: { lines: readonly Line[]; here: string }): JSX.Element {
  if (lines.length === 0) return <Loading />;
  return <ol class="story">{lines.map((line) => <li key={line.key} class={`line line-${line.tone}`} id={`r${line.key}`}>
    <span class="line-who"><bdi>{visible(line.who)}</bdi></span>
    <div class="line-what"><Words text={line.text} max={4_000} />{line.approvalId === undefined ? null : <> <a href={to.approval(line.approvalId)}>look at it</a></>}
      {line.detail === undefined || line.detail === "" ? null : <Json text={line.detail} label={`${line.who}, revision ${String(line.rev)}`} />}</div>
    <span class="line-when quiet" title={iso(line.atMs)}>{iso(line.atMs).slice(11, 19)} <a class="rev" href={`${here}?tab=state&rev=${String(line.rev)}`} title="the state after this revision">#{line.rev}</a></span>
  </li>)}</ol>;
}

function Journal({ entries }: { entries: readonly JournalEntry[] }): JSX.Element {
  return <ol class="journal">{entries.map((entry) => <li key={entry.rev}><details><summary><b>#{entry.rev}</b> <span class="code">{entry.events.map((event) => event.type).join(", ")}</span> <span class="quiet">{entry.command} · {iso(entry.atMs)}</span></summary>
    {entry.events.map((event, index) => <Json key={index} text={inline(event)} label={event.type} />)}
    <p class="quiet">digest <Id id={entry.digest} /> commit <Id id={entry.commitId} /> host <Id id={entry.host} /></p></details></li>)}</ol>;
}
