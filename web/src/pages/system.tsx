/** Owns: the System page: what the console can see of the installation. Each part is asked by itself, and apps say how they are: what is down hides nothing. */
import type { JSX } from "preact";
import { visible } from "../lib/json.js";
import type { App, Diagnosis } from "../lib/diagnosis.js";
import { usePoll } from "../lib/poll.js";
import { count, plural } from "../lib/words.js";
import { Broken, Fields, Id, Loading, Notice, Time, Words } from "../parts/basics.js";
import { Diagnoses } from "../parts/diagnoses.js";

interface SystemAnswer {
  readonly startedAtMs: number; readonly node: string;
  readonly parts: readonly { readonly name: string; readonly about: string; readonly ok: boolean; readonly detail: string; readonly tookMs: number }[];
  readonly projection: { readonly journals: number; readonly gaps: number; readonly entriesMissing: number; readonly overdue: number; readonly due: number; readonly nextDueAtMs: number | null; readonly newestAtMs: number | null; readonly lagMs: number | null } | null;
  readonly installed: { readonly agents: number; readonly tools: number; readonly policy: string; readonly rules: number };
  readonly apps: readonly App[]; readonly diagnosis: readonly Diagnosis[];
}

const FIXES: Readonly<Record<string, string>> = {
  channels: "The sidecar does not say what it has loaded: look at its log.",
  "session host": "No session host answers through placement: is a `sessions` app running? Sessions keep their state; they go on when one is back.",
  "read model": "The console's database does not answer: look at the disk. Lists are rebuilt from the journals; dead letters and the audit live only there.",
};

export function System(): JSX.Element {
  const { value, error, refresh } = usePoll<SystemAnswer>("/v1/system", 5_000);
  if (value === undefined) return <div class="page">{error === undefined ? <Loading /> : <Broken error={error} again={refresh} />}</div>;
  const { projection, installed, parts, apps, diagnosis } = value;
  // The sidecar has its diagnosis.
  const down = parts.filter((part) => !part.ok && part.name in FIXES);
  return <div class="page">
    <header class="page-head"><h1>System</h1><span class="quiet">console started <Time at={value.startedAtMs} />, Node {value.node}</span></header>
    {parts.every((part) => part.ok) && !diagnosis.some(({ tone }) => tone === "bad") ? <Notice tone="good">Everything that the console can see answers.</Notice> : null}
    {down.map((part) => <Notice key={part.name} tone="bad"><b>{part.name} is down.</b> {FIXES[part.name] ?? ""}</Notice>)}
    <Diagnoses items={diagnosis} />
    <h2>Parts</h2>
    <ul class="parts">{parts.map((part) => <li key={part.name} class={part.ok ? "up" : "down"}><p><b>{part.name}</b> <UpDown ok={part.ok} words={part.ok ? "up" : "down"} /> <span class="quiet">{part.tookMs} ms</span></p><p class="quiet">{part.about}</p><p><Words text={part.detail} max={500} /></p></li>)}</ul>
    <h2>Apps and their sidecars</h2>
    <p class="quiet">What each process has reported last; it does so every few seconds.</p>
    {apps.length === 0 ? <p class="pad">None has reported yet.</p> : <div class="table-box" tabIndex={0} role="region" aria-label="Apps"><table class="list"><thead><tr><th>App</th><th>Process</th><th>State</th><th>Last report</th><th>Since</th><th class="number">Actors</th><th>Dapr</th><th>Loaded</th></tr></thead>
      <tbody>{apps.map((app) => <tr key={`${app.app} ${app.instance}`}><td><b>{app.app}</b></td><td class="clip-cell"><Id id={app.instance} /></td><td><UpDown ok={!app.silent && app.checks.every(({ status }) => status !== "fail")} words={app.silent ? "silent" : app.checks.some(({ status }) => status === "fail") ? "unwell" : "well"} /></td>
        <td><Time at={app.receivedAtMs} /></td><td><Time at={app.startedAtMs} /></td><td class="number">{app.actors === undefined ? <span class="quiet">–</span> : count(app.actors)}</td><td>{visible(app.runtime ?? "")}<span class="quiet"> Node {visible(app.node)}</span></td>
        <td><details class="in-cell"><summary>{plural(app.components?.length ?? 0, "component")}, {plural(app.subscriptions?.length ?? 0, "subscription")}</summary><p class="code wrap">{(app.components ?? []).map(visible).join(", ") || "not known"}</p><p class="quiet">subscribed to</p><p class="code wrap">{(app.subscriptions ?? []).map(visible).join(", ") || "nothing"}</p></details></td></tr>)}</tbody></table></div>}
    <h2>Doctor</h2>
    <p class="quiet">What the apps find out about themselves. On a machine of the installation, <span class="code">docket doctor</span> looks further: ports, files, keys, clocks.</p>
    <ul class="checks">{apps.filter((app) => !app.silent).flatMap((app) => app.checks.map((check) => <li key={`${app.app} ${app.instance} ${check.name}`}><UpDown ok={check.status === "ok"} words={check.status} /> <b>{app.app}</b> <span class="quiet">{visible(check.name)}</span> <Words text={check.detail} max={300} />{check.fix === "" ? null : <span class="fix"> {visible(check.fix)}</span>}</li>))}</ul>
    <div class="two"><section><h2>Projection and reminders</h2><p class="quiet">Journals of sessions, folded into the lists; times at which sessions are to be looked at again.</p>{projection === null ? <p class="fault">not known: the read model does not answer</p> : <Fields rows={[
      ["sessions", count(projection.journals)], ["with a gap", count(projection.gaps)], ["missing", count(projection.entriesMissing)], ["behind", projection.lagMs === null ? "nothing came since the start" : `${count(projection.lagMs)} ms at the latest entry`], ["newest", projection.newestAtMs === null ? "none yet" : <Time at={projection.newestAtMs} />],
      ["reminders due", count(projection.due)], ["the next", projection.nextDueAtMs === null ? "none" : <Time at={projection.nextDueAtMs} />], ["overdue", count(projection.overdue)],
    ]} />}</section>
    <section><h2>Installed</h2><Fields rows={[["agents", <a href="/agents">{count(installed.agents)}</a>], ["tools", count(installed.tools)], ["policy", <span><Id id={installed.policy} whole /> <span class="quiet">{plural(installed.rules, "rule")}</span></span>]]} /></section></div>
  </div>;
}

function UpDown({ ok, words }: { ok: boolean; words: string }): JSX.Element { return <span class={ok ? "up-word" : "down-word"}><span aria-hidden="true">{ok ? "✓" : "✗"}</span> {words}</span>; }
