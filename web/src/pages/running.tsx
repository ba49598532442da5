/** Owns: which versions of an agent live sessions run, and which hosts offer which. */
import type { JSX } from "preact";
import { visible } from "../lib/json.js";
import { count, plural } from "../lib/words.js";
import { Id } from "../parts/basics.js";

export interface Running {
  readonly live: readonly { readonly agent: string; readonly version: string; readonly sessions: number; readonly busy: number }[];
  readonly hosts: readonly { readonly instance: string; readonly policy: string | null; readonly actors: number; readonly agents: readonly { readonly name: string; readonly version: string }[] }[];
  readonly workers: readonly { readonly instance: string; readonly tools: readonly string[] }[];
}

/** Rows of one agent: what sessions run, and what hosts offer that no session runs yet. */
export function Versions({ agent, installed, running }: { agent: string; installed: string; running: Running }): JSX.Element {
  const offered = (version: string): string[] => running.hosts.filter((host) => host.agents.some((one) => one.name === agent && one.version === version)).map(({ instance }) => instance);
  const live = running.live.filter((row) => row.agent === agent);
  const others = [...new Set([installed, ...running.hosts.flatMap(({ agents }) => agents.filter(({ name }) => name === agent).map(({ version }) => version))])].filter((version) => !live.some((row) => row.version === version));
  const rows = [...live, ...others.map((version) => ({ agent, version, sessions: 0, busy: 0 }))];
  return <table class="list versions"><thead><tr><th>Version</th><th class="number">Live sessions</th><th class="number">Busy</th><th>Offered by</th></tr></thead><tbody>{rows.map(({ version, sessions, busy }) => {
    const hosts = offered(version);
    return <tr key={version}><td><b>{version === "" ? "not known" : visible(version)}</b>{version === installed ? <span class="quiet"> installed</span> : null}</td><td class="number">{count(sessions)}</td><td class="number">{count(busy)}</td>
      <td>{hosts.length > 0 ? <span title={hosts.map(visible).join("\n")}>{plural(hosts.length, "host")}</span> : sessions > 0 ? <span class="quiet">no host any more: its sessions go on under the version that is offered</span> : <span class="quiet">no host</span>}</td></tr>;
  })}</tbody></table>;
}

export function Hosts({ hosts, workers }: Running): JSX.Element {
  const policies = new Set(hosts.flatMap(({ policy }) => policy ?? []));
  return <><h2>Hosts</h2>
    {policies.size > 1 ? <p class="fault" role="alert">Session hosts run different policies: {[...policies].map(visible).join(", ")}. Which one judges a call depends on where its session lives.</p> : null}
    {hosts.length + workers.length === 0 ? <p class="quiet">None has reported yet.</p> : <div class="table-box" tabIndex={0} role="region" aria-label="Hosts"><table class="list"><thead><tr><th>Process</th><th>Is</th><th class="number">Actors</th><th>Offers</th></tr></thead><tbody>
      {hosts.map((host) => <tr key={host.instance}><td><Id id={host.instance} /></td><td>session host</td><td class="number">{count(host.actors)}</td><td class="wide-cell">{host.agents.map(({ name, version }) => `${visible(name)} ${visible(version)}`).join(", ")}</td></tr>)}
      {workers.map((worker) => <tr key={worker.instance}><td><Id id={worker.instance} /></td><td>worker</td><td class="number"><span class="quiet">–</span></td><td class="wide-cell code">{worker.tools.map(visible).join(", ")}</td></tr>)}</tbody></table></div>}</>;
}
