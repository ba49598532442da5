/** Owns: the Approvals page: the queue, and the card of the one that is open. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApprovalListItem } from "../../../src/contracts/api.js";
import { APPROVALS_ALL, APPROVALS_OPEN } from "../../../src/contracts/first-reads.js";
import { oddChoice } from "../lib/address.js";
import { heldOrder } from "../lib/held-order.js";
import { visible } from "../lib/json.js";
import { useKeys } from "../lib/keys.js";
import { useNow, usePoll } from "../lib/poll.js";
import { go, to } from "../lib/router.js";
import { byUrgency, type Me } from "../lib/urgency.js";
import { isMyTurn, isSnoozed, missingOf, obstacleOf } from "../lib/who-may.js";
import { decisionWords, plural } from "../lib/words.js";
import { Broken, Empty, Loading, OddAddress, RiskMark, Tabs, Time } from "../parts/basics.js";
import { Left } from "../parts/left.js";
import { ApprovalCard } from "./approval-card.js";

const EVERY_MS = 2_000;
const VIEWS = ["mine", "all", "snoozed", "decided"] as const;
type View = (typeof VIEWS)[number];
interface Page { readonly items: readonly ApprovalListItem[]; readonly nextCursor?: string }

const idOf = (item: ApprovalListItem): string => item.pending.record.approvalId;

export function Approvals({ me, id, query }: { me: Me; id: string | undefined; query: URLSearchParams }): JSX.Element {
  const view: View = VIEWS.find((name) => name === query.get("view")) ?? "mine";
  const odd = oddChoice(query, "view", { expected: VIEWS, shown: "what waits for you" });
  const { value, error, refresh } = usePoll<Page>(view === "decided" ? APPROVALS_ALL : APPROVALS_OPEN, EVERY_MS);
  const [pointed, setPointed] = useState(false);
  const shown = useRef<{ view: View; rows: readonly ApprovalListItem[] }>({ view, rows: [] });
  const open = value?.items.filter((item) => item.state === "open") ?? [];
  const nowMs = useNow(1_000);
  const snoozed = open.filter((item) => isSnoozed(item.pending.record, nowMs));
  const mine = open.filter((item) => !snoozed.includes(item) && isMyTurn(item.pending.record, me) && obstacleOf(item.pending.record, me) === undefined);
  const fresh = view === "decided" ? value?.items.filter((item) => item.state !== "open") ?? [] : byUrgency({ mine, all: open, snoozed }[view], nowMs);
  const { rows, waiting } = heldOrder(shown.current.view === view ? shown.current.rows : [], fresh, idOf, pointed);
  shown.current = { view, rows };
  const at = rows.findIndex((item) => idOf(item) === id);
  const suffix = view === "mine" ? "" : `?view=${view}`;
  const show = (index: number): void => {
    const item = rows[Math.max(0, Math.min(rows.length - 1, index))];
    if (item !== undefined) go(to.approval(idOf(item)) + suffix, "replace");
  };
  useKeys({ j: () => { show(at + 1); }, k: () => { show(at < 0 ? 0 : at - 1); } });
  useEffect(() => {
    // On a wide screen the most urgent one is open from the start; nothing happens to it without two presses.
    if (id === undefined && odd === undefined && rows.length > 0 && window.matchMedia("(min-width: 900px)").matches) show(0);
  }, [id, odd, rows.length, view]);

  return <div class={`split ${id === undefined ? "" : "has-open"}`}>
    <section class="queue" aria-label="Approvals" onMouseEnter={() => { setPointed(true); }} onMouseLeave={() => { setPointed(false); }}>
      <header class="page-head"><h1>Approvals</h1>
        <Tabs label="Which approvals" tabs={[
          { href: "/approvals", name: "Mine", open: view === "mine", count: view === "decided" ? undefined : mine.length },
          { href: "/approvals?view=all", name: "All", open: view === "all", count: view === "decided" ? undefined : open.length },
          ...(snoozed.length === 0 && view !== "snoozed" ? [] : [{ href: "/approvals?view=snoozed", name: "Snoozed", open: view === "snoozed", count: view === "decided" ? undefined : snoozed.length }]),
          { href: "/approvals?view=decided", name: "Decided", open: view === "decided" },
        ]} />
      </header>
      <OddAddress odd={[odd]} />
      {waiting === 0 ? null : <button type="button" class="waiting" onClick={() => { setPointed(false); }}>{plural(waiting, "more approval")}: show</button>}
      {value === undefined ? (error === undefined ? <Loading /> : <Broken error={error} again={refresh} />)
        : rows.length === 0 ? <Nothing view={view} others={open.length} />
        : <ul class="rows">{rows.map((item) => <Row key={idOf(item)} item={item} open={idOf(item) === id} query={suffix} />)}</ul>}
      {value?.nextCursor === undefined ? null : <p class="quiet pad">Only the first 200 are shown; decide some, or use <span class="code">docket approval list --cursor</span>.</p>}
    </section>
    <section class="detail" aria-label="The open approval">
      {id === undefined ? <div class="state quiet"><p>Choose an approval: <kbd>j</kbd> <kbd>k</kbd></p></div> : <ApprovalCard key={id} id={id} me={me} back={`/approvals${query}`} onSettled={refresh} />}
    </section>
  </div>;
}

function Row({ item, open, query }: { item: ApprovalListItem; open: boolean; query: string }): JSX.Element {
  const { record, sessionId } = item.pending;
  const element = useRef<HTMLAnchorElement>(null);
  useEffect(() => { if (open) element.current?.scrollIntoView({ block: "nearest" }); }, [open]);
  return <li><a ref={element} class={`row ${item.state === "open" ? "" : "settled"}`} href={to.approval(record.approvalId) + query} aria-current={open ? "true" : undefined}>
    <span class="row-top"><b class="code">{record.tool ?? record.kind}</b>{item.state === "open" ? <Left item={item} /> : <span class="quiet"><Time at={item.decidedAtMs ?? record.openedAtMs} /></span>}</span>
    <span class="row-middle"><bdi>{item.pending.args === "" ? visible(record.question) : visible(item.pending.args)}</bdi></span>
    <span class="row-bottom"><RiskMark risk={record.risk} /><bdi class="quiet clip">{sessionId}</bdi>{item.state === "open" ? <Marks item={item} /> : null}{item.state === "open" ? null : <span>{item.state === "decided" ? `${decisionWords(item.decision ?? "")} by ${item.decidedBy ?? "somebody"}` : item.state}</span>}</span>
  </a></li>;
}

/** Whose turn, how many are missing, and whether somebody has put it off. */
function Marks({ item: { pending: { record } } }: { item: ApprovalListItem }): JSX.Element {
  const nowMs = useNow(5_000);
  return <>{record.assignedTo === undefined ? null : <bdi class="mark clip" title={`turn of ${visible(record.assignedTo)}`}>{visible(record.assignedTo)}</bdi>}
    {record.approvers.quorum <= 1 ? null : <span class="mark">{record.signatures.length} of {record.approvers.quorum}<span class="sr"> signatures, {missingOf(record)} missing</span></span>}
    {isSnoozed(record, nowMs) ? <span class="mark">snoozed</span> : null}</>;
}

function Nothing({ view, others }: { view: View; others: number }): JSX.Element {
  if (view === "decided") return <Empty title="Nothing was decided yet"><p>What people decide appears here, with who and when.</p></Empty>;
  if (view === "snoozed") return <Empty title="Nothing is snoozed"><p>What somebody puts off waits here, and comes back by itself.</p></Empty>;
  if (view === "mine" && others > 0) return <Empty title="Nothing waits for you"><p><a href="/approvals?view=all">{plural(others, "approval waits", "approvals wait")} for somebody else, or later.</a></p></Empty>;
  return <Empty title="Nothing waits for a decision"><p>When policy asks for a person, the call appears here. To see one:</p><pre class="code">docket session send demo "refund 1200 cents of order 1001"</pre></Empty>;
}
