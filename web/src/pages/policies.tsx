/** Owns: the Policies page: the rules as this console read them, and "try it", which runs the code that judges calls in production. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { hitsOf } from "../../../src/contracts/rule-hits.js";
import type { PolicyRule } from "../../../src/session/core/policy/policy.js";
import { ApiError, post } from "../lib/api.js";
import type { Installed } from "../lib/installed.js";
import { usePoll } from "../lib/poll.js";
import { count, wordFor } from "../lib/words.js";
import { Broken, Empty, Fields, Id, Json, Loading, Notice, RiskMark, Words } from "../parts/basics.js";
import type { Risk } from "../../../src/contracts/tools.js";
import { rowsOfRule, rowsOfVerdict, type Asking, type RuleRow } from "../lib/rule-words.js";

type Rule = PolicyRule & { readonly file: string; readonly line: number };
interface PolicyAnswer { readonly version: string; readonly rules: readonly Rule[]; readonly hits: readonly { readonly rule: string; readonly verdict: string; readonly hits: number }[]; readonly warnings: readonly { readonly file: string; readonly line: number; readonly rule: string; readonly message: string }[] }
interface Verdict extends Asking { readonly verdict: "allow" | "ask" | "deny"; readonly rule: string; readonly reason: string; readonly risk: Risk; readonly policyVersion: string; readonly args: string; readonly argsDigest: string }

const EVERY_MS = 60_000;

export function Policies(): JSX.Element {
  const { value, error, refresh } = usePoll<PolicyAnswer>("/v1/policy", EVERY_MS);
  const installed = usePoll<Installed>("/v1/agents", EVERY_MS);
  if (value === undefined) return <div class="page">{error === undefined ? <Loading /> : <Broken error={error} again={refresh} />}</div>;
  return <div class="page">
    <header class="page-head"><h1>Policies</h1><span class="quiet">version <Id id={value.version} whole /></span></header>
    <p class="lead">For each tool call all rules that match are collected, and the strictest wins: deny, then ask, then allow. Where none matches, the tool's own default counts; without one a person is asked.</p>
    <div class="two">
      <section aria-label="Rules"><h2>Rules, in the order of the files</h2>
        {value.rules.length === 0 ? <Empty title="No rules"><p>Every call asks a person, unless its tool says otherwise.</p></Empty> : <ol class="rules">{value.rules.map((rule) => <RuleItem key={rule.id} rule={rule} hits={hitsOf(rule.id, value.hits)} warnings={value.warnings.filter((one) => one.rule === rule.id).map((one) => one.message)} />)}</ol>}
      </section>
      <TryIt installed={installed.value} />
    </div>
  </div>;
}

function RuleItem({ rule, hits, warnings }: { rule: Rule; hits: number; warnings: readonly string[] }): JSX.Element {
  return <li class="rule" id={rule.id}>
    <p><span class={`verdict verdict-${rule.verdict}`}>{rule.verdict}</span> <b class="code">{rule.id}</b> {rule.risk === undefined ? null : <RiskMark risk={rule.risk} />} <span class="quiet rule-place">{rule.file}:{rule.line}</span></p>
    <p class="hits"><b>{count(hits)}</b> <span class="quiet">{wordFor(hits, "call")} decided in the last 30 days</span></p>
    <p>{rule.reason}</p>
    <Rows rows={rowsOfRule(rule)} />
    {warnings.map((warning) => <p key={warning} class="fault">{warning}</p>)}
  </li>;
}

function Rows({ rows }: { rows: readonly RuleRow[] }): JSX.Element {
  return <Fields rows={rows.map(({ name, words, code }) => [name, code === true ? <code>{words}</code> : words])} />;
}

function TryIt({ installed }: { installed: Installed | undefined }): JSX.Element {
  const [tool, setTool] = useState("");
  const [agent, setAgent] = useState("");
  const [kind, setKind] = useState("person");
  const [args, setArgs] = useState("{}");
  const [result, setResult] = useState<Verdict | ApiError>();
  const chosen = tool === "" ? installed?.tools[0]?.name ?? "" : tool;
  const run = async (): Promise<void> => {
    try {
      setResult(await post<Verdict>("/v1/policy/try", { tool: chosen, args, agent, principal: { class: kind } }));
    } catch (error) {
      setResult(error instanceof ApiError ? error : new ApiError(String(error), 0));
    }
  };
  return <section class="try" aria-label="Try it"><h2>Try it</h2><form onSubmit={(event) => { event.preventDefault(); void run(); }}>
    <label class="field"><span>Tool</span><select value={chosen} onChange={(event) => { setTool(event.currentTarget.value); }}>{installed?.tools.map((one) => <option key={one.name} value={one.name}>{one.name}</option>)}</select></label>
    <label class="field"><span>Arguments, JSON</span><textarea class="code" rows={6} spellcheck={false} value={args} onInput={(event) => { setArgs(event.currentTarget.value); }} /></label>
    <div class="pair"><label class="field"><span>Agent</span><select value={agent} onChange={(event) => { setAgent(event.currentTarget.value); }}><option value="">any</option>{installed?.agents.map((one) => <option key={one.name} value={one.name}>{one.name}</option>)}</select></label>
      <label class="field"><span>Asked for by a</span><select value={kind} onChange={(event) => { setKind(event.currentTarget.value); }}>{["person", "machine", "webhook", "agent", "system"].map((name) => <option key={name}>{name}</option>)}</select></label></div>
    <button type="submit" class="go" disabled={chosen === ""}>Judge</button>
  </form>
    {result === undefined ? <p class="quiet">Nothing is run and nothing is recorded.</p> : result instanceof ApiError ? <Notice tone="bad"><Words text={result.message} max={600} /></Notice> : <Judged verdict={result} />}
  </section>;
}

function Judged({ verdict }: { verdict: Verdict }): JSX.Element {
  return <div class="judged" role="status"><p><span class={`verdict verdict-${verdict.verdict}`}>{verdict.verdict}</span> by <b class="code">{verdict.rule}</b> <RiskMark risk={verdict.risk} /></p><p>{verdict.reason}</p>
    {verdict.verdict !== "ask" ? null : <Rows rows={rowsOfVerdict(verdict)} />}
    <h3>Sealed arguments</h3><Json text={verdict.args} label="Sealed arguments" /><p class="digest"><Id id={verdict.argsDigest} /></p></div>;
}
