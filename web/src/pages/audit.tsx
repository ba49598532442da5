/** Owns: the Audit page: who asked for what, when, why, and what came of it. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get } from "../lib/api.js";
import { inline } from "../lib/json.js";
import { usePoll } from "../lib/poll.js";
import { to } from "../lib/router.js";
import type { Me } from "../lib/urgency.js";
import { Broken, Empty, Json, Loading, Time, Words } from "../parts/basics.js";

interface Chain { readonly headSeq: number; readonly verifiedSeq: number; readonly verifiedAtMs: number | null; readonly signedSeq: number; readonly broken: { readonly seq: number; readonly reason: string } | null }
interface Row { readonly seq: number; readonly auditId: string; readonly atMs: number; readonly principalId: string; readonly keyId: string; readonly action: string; readonly target: string; readonly outcome: string; readonly reason: string; readonly detail: Readonly<Record<string, unknown>>; readonly ip: string }
interface Page { readonly items: readonly Row[]; readonly nextCursor?: string }

const PATH = "/v1/audit?limit=100";

export function Audit({ me }: { me: Me }): JSX.Element {
  const may = me.rights.includes("audit");
  const { value, error, refresh } = usePoll<Page>(may ? PATH : undefined, 5_000);
  const { value: chain } = usePoll<Chain>(may ? "/v1/audit/chain" : undefined, 10_000);
  const [older, setOlder] = useState<{ items: readonly Row[]; cursor: string | undefined }>();
  const cursor = older === undefined ? value?.nextCursor : older.cursor;
  const load = async (): Promise<void> => {
    if (cursor === undefined) return;
    const page = await get<Page>(`${PATH}&cursor=${encodeURIComponent(cursor)}`).catch(() => undefined);
    if (page !== undefined) setOlder({ items: [...(older?.items ?? []), ...page.items], cursor: page.nextCursor });
  };
  const newest = value?.items ?? [];
  const rows = [...newest, ...(older?.items ?? []).filter((row) => !newest.some((one) => one.auditId === row.auditId))];
  return <div class="page">
    <header class="page-head"><h1>Audit</h1>{chain === undefined ? null : <ChainState chain={chain} />}</header>
    {!may ? <Empty title="For administrators"><p>Your key has no right to read the audit.</p></Empty>
      : value === undefined ? (error === undefined ? <Loading /> : <Broken error={error} again={refresh} />)
      : rows.length === 0 ? <Empty title="Nothing was done yet"><p>Every write leaves two rows here: what was asked, and what came of it.</p></Empty>
      : <div class="table-box" tabIndex={0} role="region" aria-label="Audit"><table class="list"><thead><tr><th>When</th><th>Who</th><th>Action</th><th>Target</th><th>Outcome</th><th>Reason</th><th>Detail</th></tr></thead>
        <tbody>{rows.map((row) => <tr key={row.auditId}><td title={`row ${String(row.seq)}`}><Time at={row.atMs} /></td><td title={`key ${row.keyId}, from ${row.ip}`}><bdi>{row.principalId}</bdi></td><td class="code">{row.action}</td><td class="clip-cell"><Target row={row} /></td>
          <td><span class={`outcome ${row.outcome === "requested" ? "quiet" : ""}`}>{row.outcome}</span></td><td class="clip-cell wide-cell"><Words text={row.reason} max={200} /></td>
          <td>{Object.keys(row.detail).length === 0 ? null : <details class="in-cell"><summary>show</summary><Json text={inline(row.detail)} label="Detail" /></details>}</td></tr>)}</tbody></table></div>}
    {cursor === undefined ? null : <p class="pad"><button type="button" onClick={() => { void load(); }}>Show older</button></p>}
  </div>;
}

/** Whether the chain of rows holds, as far as the console has checked it. */
function ChainState({ chain: { broken, verifiedSeq, verifiedAtMs, signedSeq, headSeq } }: { chain: Chain }): JSX.Element {
  if (broken !== null) return <p class="fault" role="alert">The chain is broken at row {broken.seq}: {broken.reason}. Rows were changed outside of the console.</p>;
  if (verifiedAtMs === null) return <span class="quiet">{headSeq === 0 ? "no rows yet" : "not checked yet"}</span>;
  return <span class="quiet">Verified to row {verifiedSeq}, <Time at={verifiedAtMs} />; signed to row {signedSeq}. <a href="/v1/audit/export" download="docket-audit.jsonl">Take a copy</a></span>;
}

function Target({ row: { action, target } }: { row: Row }): JSX.Element {
  const href = action.startsWith("approval.") ? to.approval(target) : action.startsWith("session.") ? to.session(target) : action.startsWith("dead-letter.") ? to.letter(target) : undefined;
  return href === undefined ? <bdi>{target}</bdi> : <a href={href}><bdi>{target}</bdi></a>;
}
