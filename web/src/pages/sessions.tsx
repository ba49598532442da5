/** Owns: the list of sessions. Filter and search are in the address; rows stay where they are while somebody points at them. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { sessionsPath } from "../../../src/contracts/first-reads.js";
import type { SessionSummary } from "../../../src/contracts/journal.js";
import { oddChoice } from "../lib/address.js";
import { get } from "../lib/api.js";
import { heldOrder } from "../lib/held-order.js";
import { useKeys } from "../lib/keys.js";
import { usePoll } from "../lib/poll.js";
import { go, to, withQuery } from "../lib/router.js";
import { count, dollars, plural, STATUSES, STATUS_WORDS } from "../lib/words.js";
import { Broken, Empty, Loading, OddAddress, RiskMark, Status, Tabs, Time } from "../parts/basics.js";
import { SavedViews } from "../parts/saved-views.js";

interface Page { readonly items: readonly SessionSummary[]; readonly nextCursor?: string }

const EVERY_MS = 3_000;
const idOf = (row: SessionSummary): string => row.actorId;

export function Sessions({ query, counts }: { query: URLSearchParams; counts: Readonly<Record<string, number>> | undefined }): JSX.Element {
  const status = STATUSES.find((name) => name === query.get("status"));
  const text = query.get("q") ?? "";
  const agent = query.get("agent") ?? "";
  const path = sessionsPath(query);
  const { value, error, refresh } = usePoll<Page>(path, EVERY_MS);
  const [more, setMore] = useState<{ path: string; items: readonly SessionSummary[]; cursor: string | undefined }>({ path, items: [], cursor: undefined });
  const [pointed, setPointed] = useState(false);
  const [at, setAt] = useState(-1);
  const shown = useRef<{ path: string; rows: readonly SessionSummary[] }>({ path, rows: [] });
  const { rows, waiting } = heldOrder(shown.current.path === path ? shown.current.rows : [], value?.items ?? [], idOf, pointed || at >= 0);
  shown.current = { path, rows };
  const older = more.path === path ? more.items.filter((row) => !rows.some((one) => one.actorId === row.actorId)) : [];
  const all = [...rows, ...older];
  const cursor = more.path === path && more.items.length > 0 ? more.cursor : value?.nextCursor;
  const move = (next: number): void => { setAt(Math.max(0, Math.min(all.length - 1, next))); };
  useKeys({ j: () => { move(at + 1); }, k: () => { move(at - 1); }, Escape: () => { setAt(-1); }, ...(at < 0 ? {} : { Enter: () => { const row = all[at]; if (row !== undefined) go(to.session(row.sessionId)); } }) });
  useEffect(() => { document.querySelector("tr.at")?.scrollIntoView({ block: "nearest" }); }, [at]);
  const release = (): void => { setPointed(false); setAt(-1); };
  const load = async (): Promise<void> => {
    if (cursor === undefined) return;
    const page = await get<Page>(`${path}&cursor=${encodeURIComponent(cursor)}`).catch(() => undefined);
    if (page !== undefined) setMore({ path, items: [...older, ...page.items], cursor: page.nextCursor });
  };
  const total = counts === undefined ? undefined : Object.values(counts).reduce((sum, n) => sum + n, 0);

  return <div class="page">
    <header class="page-head"><h1>Sessions</h1>
      <search class="filters"><label class="sr" for="q">Search ids and messages</label><input id="q" type="search" placeholder="Search ids and messages" value={text} onInput={(event) => { go(withQuery({ q: event.currentTarget.value }), "replace"); }} />
        {agent === "" ? null : <a class="chip" href={withQuery({ agent: "" })}>agent {agent} ×</a>}</search></header>
    <SavedViews page="/sessions" />
    <OddAddress odd={[oddChoice(query, "status", { expected: STATUSES, shown: "sessions of every status" })]} />
    <Tabs label="Status" tabs={[{ href: withQuery({ status: "" }), name: "All", open: status === undefined, count: total }, ...STATUSES.map((name) => ({ href: withQuery({ status: name }), name: STATUS_WORDS[name], open: status === name, count: counts?.[name] ?? (counts === undefined ? undefined : 0) }))]} />
    {waiting === 0 ? null : <button type="button" class="waiting" onClick={release}>{plural(waiting, "more session")}: show</button>}
    {value === undefined ? (error === undefined ? <Loading /> : <Broken error={error} again={refresh} />)
      : all.length === 0 ? <Nothing filtered={status !== undefined || text !== "" || agent !== ""} />
      : <div class="table-box" onMouseEnter={() => { setPointed(true); }} onMouseLeave={() => { setPointed(false); }} tabIndex={0} role="region" aria-label="Sessions"><table class="list">
        <thead><tr><th>Session</th><th>Status</th><th>Waits for</th><th>Agent</th><th class="number">Queue</th><th class="number">Tokens</th><th class="number">Cost</th><th class="number">Changed</th></tr></thead>
        <tbody>{all.map((row, index) => <tr key={row.actorId} class={index === at ? "at" : ""}>
          <td class="clip-cell"><a href={to.session(row.sessionId)}><bdi>{row.sessionId}</bdi></a></td>
          <td><Status status={row.status} /></td>
          <td class="clip-cell wide-cell" title={row.waitingFor}>{row.risk === undefined ? null : <><RiskMark risk={row.risk} /> </>}{row.waitingFor}</td>
          <td><a class="quiet-link" href={withQuery({ agent: row.agent })}>{row.agent}</a></td>
          <td class="number">{row.mailboxLength === 0 ? <span class="quiet">0</span> : count(row.mailboxLength)}</td>
          <td class="number">{count(row.inputTokens + row.outputTokens)}</td><td class="number">{dollars(row.costUsd)}</td><td class="number"><Time at={row.updatedAtMs} /></td>
        </tr>)}</tbody></table></div>}
    {cursor === undefined ? null : <p class="pad"><button type="button" onClick={() => { void load(); }}>Show older</button></p>}
  </div>;
}

function Nothing({ filtered }: { filtered: boolean }): JSX.Element {
  return filtered ? <Empty title="No session fits"><p><a href="/sessions">Take the filters away</a></p></Empty>
    : <Empty title="No session yet"><p>A session begins with its first event. To make one:</p><pre class="code">docket session send my-session "Hello"</pre></Empty>;
}

