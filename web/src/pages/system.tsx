/** Owns: the System page: what the console can see of the installation. Each part is asked by itself: what is down hides nothing. */
import type { JSX } from "preact";
import { usePoll } from "../lib/poll.js";
import { count, plural } from "../lib/words.js";
import { Broken, Fields, Id, Loading, Notice, Time, Words } from "../parts/basics.js";

interface SystemAnswer {
  readonly startedAtMs: number; readonly node: string;
  readonly parts: readonly { readonly name: string; readonly about: string; readonly ok: boolean; readonly detail: string; readonly tookMs: number }[];
  readonly projection: { readonly journals: number; readonly gaps: number; readonly entriesMissing: number; readonly overdue: number; readonly newestAtMs: number | null } | null;
  readonly installed: { readonly agents: number; readonly tools: number; readonly policy: string; readonly rules: number };
}

const FIXES: Readonly<Record<string, string>> = {
  sidecar: "The console's daprd is down or cannot reach the broker: docket doctor names it, and daprd's log says why.",
  channels: "The sidecar does not say what it has loaded: look at its log.",
  "session host": "No session host answers through placement: is a `sessions` app running? Sessions keep their state; they go on when one is back.",
  "read model": "The console's database does not answer: look at the disk. Lists are rebuilt from the journals; dead letters and the audit live only there.",
};

export function System(): JSX.Element {
  const { value, error, refresh } = usePoll<SystemAnswer>("/v1/system", 5_000);
  if (value === undefined) return <div class="page">{error === undefined ? <Loading /> : <Broken error={error} again={refresh} />}</div>;
  const { projection, installed, parts } = value;
  const down = parts.filter((part) => !part.ok);
  return <div class="page">
    <header class="page-head"><h1>System</h1><span class="quiet">console started <Time at={value.startedAtMs} />, Node {value.node}</span></header>
    {down.length === 0 ? <Notice tone="good">Everything that the console can see answers.</Notice> : down.map((part) => <Notice key={part.name} tone="bad"><b>{part.name} is down.</b> {FIXES[part.name] ?? ""}</Notice>)}
    {projection !== null && projection.gaps > 0 ? <Notice tone="bad"><b>The lists are behind.</b> {plural(projection.entriesMissing, "journal entry", "journal entries")} of {plural(projection.gaps, "session")} are missing here; they are fetched from the sessions at every look (10 s).</Notice> : null}
    {projection !== null && projection.overdue > 0 ? <Notice tone="info">{plural(projection.overdue, "session has", "sessions have")} passed their due time; the console nudges them.</Notice> : null}
    <h2>Parts</h2>
    <ul class="parts">{parts.map((part) => <li key={part.name} class={part.ok ? "up" : "down"}><p><b>{part.name}</b> <span class={part.ok ? "up-word" : "down-word"}><span aria-hidden="true">{part.ok ? "✓" : "✗"}</span> {part.ok ? "up" : "down"}</span> <span class="quiet">{part.tookMs} ms</span></p><p class="quiet">{part.about}</p><p><Words text={part.detail} max={500} /></p></li>)}</ul>
    <div class="two"><section><h2>Projection</h2><p class="quiet">Journals of sessions, folded into the lists.</p>{projection === null ? <p class="fault">not known: the read model does not answer</p> : <Fields rows={[
      ["sessions", count(projection.journals)], ["with a gap", count(projection.gaps)], ["missing", count(projection.entriesMissing)], ["overdue", count(projection.overdue)], ["newest", projection.newestAtMs === null ? "none yet" : <Time at={projection.newestAtMs} />],
    ]} />}</section>
    <section><h2>Installed</h2><Fields rows={[["agents", <a href="/agents">{count(installed.agents)}</a>], ["tools", count(installed.tools)], ["policy", <span><Id id={installed.policy} whole /> <span class="quiet">{plural(installed.rules, "rule")}</span></span>]]} /></section></div>
  </div>;
}
