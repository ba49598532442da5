/** Owns: the Costs page: what models cost, by day, agent, model and session. */
import type { JSX } from "preact";
import { oddChoice } from "../lib/address.js";
import { usePoll } from "../lib/poll.js";
import { go, to, withQuery } from "../lib/router.js";
import { count, dollars, iso, plural, wordFor } from "../lib/words.js";
import { Broken, Empty, Loading, Notice, OddAddress, Time } from "../parts/basics.js";

interface Sum { readonly calls: number; readonly unpriced: number; readonly inputTokens: number; readonly outputTokens: number; readonly usd: number }
interface Answer {
  readonly fromMs: number; readonly days: readonly (Sum & { readonly day: number })[]; readonly agents: readonly (Sum & { readonly agent: string })[]; readonly models: readonly (Sum & { readonly model: string })[];
  readonly sessions: readonly { readonly sessionId: string; readonly agent: string; readonly usd: number; readonly updatedAtMs: number }[];
}

const EVERY_MS = 15_000;
const PERIODS = [7, 30, 90] as const;
const HEIGHT = 90;

export function Costs({ query }: { query: URLSearchParams }): JSX.Element {
  const days = PERIODS.find((one) => String(one) === query.get("days")) ?? 30;
  const { value, error, refresh } = usePoll<Answer>(`/v1/costs?days=${String(days)}`, EVERY_MS);
  if (value === undefined) return <div class="page">{error === undefined ? <Loading /> : <Broken error={error} again={refresh} />}</div>;
  const total = sumOf(value.days);
  return <div class="page">
    <header class="page-head"><h1>Costs</h1><label class="period"><span class="quiet">the last</span> <select value={String(days)} onChange={(event) => { go(withQuery({ days: event.currentTarget.value }), "replace"); }}>{PERIODS.map((one) => <option key={one} value={String(one)}>{one} days</option>)}</select></label></header>
    <OddAddress odd={[oddChoice(query, "days", { expected: PERIODS.map(String), shown: "the last 30 days" })]} />
    <div class="numbers"><div><b>{dollars(total.usd)}</b><span>models</span></div><div><b>{count(total.calls)}</b><span>{wordFor(total.calls, "model call")}</span></div><div><b>{count(total.inputTokens)}</b><span>tokens in</span></div><div><b>{count(total.outputTokens)}</b><span>tokens out</span></div></div>
    {total.unpriced === 0 ? null : <Notice tone="info">{plural(total.unpriced, "call has", "calls have")} no price here, so they count as $0: set the model's price in <span class="code">DOCKET_MODEL_PRICES</span>.</Notice>}
    {value.days.length === 0 ? <Empty title="No model was called in this time"><p>Days are counted in UTC.</p></Empty> : <>
      <h2>By day <span class="quiet">UTC</span></h2><Days days={value.days} fromMs={value.fromMs} length={days} />
      <div class="two"><Table title="By agent" name="Agent" rows={value.agents.map((row) => ({ ...row, name: row.agent, href: `/sessions?agent=${encodeURIComponent(row.agent)}` }))} all={total.usd} />
        <Table title="By model" name="Model" rows={value.models.map((row) => ({ ...row, name: row.model === "" ? "answers that came too late" : row.model }))} all={total.usd} /></div></>}
    {value.sessions.length === 0 ? null : <><h2>Most expensive sessions <span class="quiet">over their whole life</span></h2>
      <div class="table-box" tabIndex={0} role="region" aria-label="Most expensive sessions"><table class="list"><thead><tr><th>Session</th><th>Agent</th><th class="number">Cost</th><th class="number">Changed</th></tr></thead>
        <tbody>{value.sessions.map((row) => <tr key={row.sessionId}><td class="clip-cell"><a href={to.session(row.sessionId)}><bdi>{row.sessionId}</bdi></a></td><td>{row.agent}</td><td class="number">{dollars(row.usd)}</td><td class="number"><Time at={row.updatedAtMs} /></td></tr>)}</tbody></table></div></>}
  </div>;
}

/** Bars for the eye, the table for everybody. */
function Days({ days, fromMs, length }: { days: Answer["days"]; fromMs: number; length: number }): JSX.Element {
  const most = Math.max(...days.map((day) => day.usd), 0.000001);
  const at = (day: number): number => Math.round((day - fromMs) / 86_400_000);
  return <><svg class="days" viewBox={`0 0 ${String(length * 10)} ${String(HEIGHT)}`} preserveAspectRatio="none" aria-hidden="true">{days.map((day) => { const height = Math.max(1, (day.usd / most) * (HEIGHT - 4)); return <rect key={day.day} x={at(day.day) * 10 + 1} width="8" y={HEIGHT - height} height={height}><title>{iso(day.day).slice(0, 10)}: {dollars(day.usd)}</title></rect>; })}</svg>
    <details class="in-cell"><summary>as a table</summary><Table title="" name="Day" rows={[...days].reverse().map((day) => ({ ...day, name: iso(day.day).slice(0, 10) }))} all={days.reduce((sum, day) => sum + day.usd, 0)} /></details></>;
}

function Table({ title, name, rows, all }: { title: string; name: string; rows: readonly (Sum & { readonly name: string; readonly href?: string })[]; all: number }): JSX.Element {
  return <section>{title === "" ? null : <h2>{title}</h2>}<div class="table-box" tabIndex={0} role="region" aria-label={title === "" ? name : title}><table class="list"><thead><tr><th>{name}</th><th class="number">Cost</th><th class="number">Share</th><th class="number">Calls</th><th class="number">Tokens in</th><th class="number">out</th></tr></thead>
    <tbody>{rows.map((row) => <tr key={row.name}><td class="clip-cell">{row.href === undefined ? <bdi>{row.name}</bdi> : <a href={row.href}><bdi>{row.name}</bdi></a>}</td><td class="number">{dollars(row.usd)}</td><td class="number">{all === 0 ? "–" : `${String(Math.round((row.usd / all) * 100))} %`}</td><td class="number">{count(row.calls)}</td><td class="number">{count(row.inputTokens)}</td><td class="number">{count(row.outputTokens)}</td></tr>)}</tbody></table></div></section>;
}

function sumOf(rows: readonly Sum[]): Sum {
  return rows.reduce<Sum>((sum, row) => ({ calls: sum.calls + row.calls, unpriced: sum.unpriced + row.unpriced, inputTokens: sum.inputTokens + row.inputTokens, outputTokens: sum.outputTokens + row.outputTokens, usd: sum.usd + row.usd }), { calls: 0, unpriced: 0, inputTokens: 0, outputTokens: 0, usd: 0 });
}
