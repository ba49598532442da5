/** Owns: the Agents page: what is installed, as manifests, and what runs. */
import type { JSX } from "preact";
import type { Installed } from "../lib/installed.js";
import { usePoll } from "../lib/poll.js";
import { inline } from "../lib/json.js";
import { plural, span } from "../lib/words.js";
import { Broken, Empty, Fields, Json, Loading, RiskMark, Words } from "../parts/basics.js";
import { Hosts, Versions, type Running } from "./running.js";

export function Agents(): JSX.Element {
  const { value, error, refresh } = usePoll<Installed>("/v1/agents", 60_000);
  const { value: running } = usePoll<Running>("/v1/agents/running", 10_000);
  if (value === undefined) return <div class="page">{error === undefined ? <Loading /> : <Broken error={error} again={refresh} />}</div>;
  return <div class="page">
    <header class="page-head"><h1>Agents</h1><span class="quiet">{plural(value.agents.length, "agent")}, {plural(value.tools.length, "tool")}</span></header>
    {value.agents.length === 0 ? <Empty title="No agent is installed"><p>An agent is a folder with <span class="code">agent.ts</span>; docs/writing-an-agent.md.</p></Empty> : null}
    <div class="tiles">{value.agents.map((agent) => <section key={agent.name} class="tile" aria-label={agent.name}>
      <h2><span class="code">{agent.name}</span> <span class="quiet">version {agent.version}</span></h2><p>{agent.description}</p>
      <Fields rows={[
        ["model", <span class="code">{agent.model}</span>], ["tools", <span class="code">{agent.tools.join(", ") || "none"}</span>], ["triggers", <span class="code">{agent.triggers.join(", ") || "none: prompts only"}</span>],
        ["limits", Object.entries(agent.limits).map(([name, amount]) => limitWords(name, amount)).join(" · ")],
      ]} />
      {running === undefined ? null : <Versions agent={agent.name} installed={agent.version} running={running} />}
      <details><summary>Instructions</summary><pre class="json" tabIndex={0}>{agent.instructions}</pre></details>
      <p><a href={`/sessions?agent=${encodeURIComponent(agent.name)}`}>Its sessions</a></p></section>)}</div>
    {running === undefined ? null : <Hosts {...running} />}
    <h2>Tools</h2>
    <div class="table-box" tabIndex={0} role="region" aria-label="Tools"><table class="list"><thead><tr><th>Tool</th><th>Risk</th><th>Effects</th><th>Without a rule</th><th>Answers</th><th class="number">Tries</th><th class="number">Time limit</th><th>What it does</th><th>Schema</th></tr></thead>
      <tbody>{value.tools.map((tool) => <tr key={tool.name}><td class="code">{tool.name}</td><td><RiskMark risk={tool.risk} /></td><td>{tool.effects}</td><td>{tool.defaultVerdict ?? "ask"}</td><td>{tool.allowedDecisions.join(", ")}</td><td class="number">{tool.maxTries}</td><td class="number">{span(tool.timeoutMs)}</td><td class="clip-cell wide-cell"><Words text={tool.description} max={120} /></td>
        <td><details class="in-cell"><summary>show</summary><Json text={inline(tool.inputSchema)} label={`Schema of ${tool.name}`} /></details></td></tr>)}</tbody></table></div>
  </div>;
}

function limitWords(name: string, amount: number): string {
  const words = name.replace(/(Ms|Usd)$/, "").replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return name.endsWith("Ms") ? `${words} ${span(amount)}` : name.endsWith("Usd") ? `${words} $${String(amount)}` : `${words} ${String(amount)}`;
}
