/** Owns: one approval, whole: what is asked, why, by whom, until when; and deciding it. */
import type { JSX } from "preact";
import type { ApprovalListItem } from "../../../src/contracts/api.js";
import type { ToolManifest } from "../../../src/contracts/tools.js";
import { useDecision } from "../lib/decision.js";
import { useDigestCheck, type DigestCheck } from "../lib/digest.js";
import { wordsOf } from "../lib/json.js";
import type { Installed } from "../lib/installed.js";
import { useKeys } from "../lib/keys.js";
import { pastOf } from "../lib/past.js";
import { usePoll } from "../lib/poll.js";
import { to } from "../lib/router.js";
import type { Me } from "../lib/urgency.js";
import { mayBeRemembered, obstacleOf, peopleWords } from "../lib/who-may.js";
import { Broken, Fields, Id, Json, Loading, Notice, RiskMark, Time, Words } from "../parts/basics.js";
import { Left } from "../parts/left.js";
import { NoticesLine } from "../parts/notices-line.js";
import { Course, HistoryOf, Quorum } from "./approval-course.js";
import { DecisionBar } from "./decision-bar.js";
import { DecisionDialog } from "./decision-dialogs.js";
import { DecisionOutcome } from "./decision-outcome.js";
import { Tending } from "./tending.js";
import { Similar, Together } from "./together.js";

const EVERY_MS = 2_000;

export function ApprovalCard({ id, me, back, onSettled }: { id: string; me: Me; back: string; onSettled: () => void }): JSX.Element {
  const { value: item, error, refresh } = usePoll<ApprovalListItem>(`/v1/approvals/${encodeURIComponent(id)}`, EVERY_MS);
  const installed = usePoll<Installed>("/v1/agents", 60_000);
  const deciding = useDecision(item, () => { refresh(); onSettled(); });
  const check = useDigestCheck(item?.pending.args ?? "", item?.pending.record.argsDigest ?? "");
  const record = item?.pending.record;
  const forged = record?.kind === "tool_call" && check === "different";
  const obstacle = record === undefined ? "loading" : forged ? "the arguments are not those that the digest is for" : obstacleOf(record, me);
  const may = (kind: string): boolean => item?.state === "open" && obstacle === undefined && record?.allowed.some((one) => one === kind) === true;
  useKeys({
    ...(may("approve") ? { a: () => { deciding.press("approve", "key"); } } : {}),
    ...(may("modify") ? { m: () => { deciding.ask("modify"); } } : {}),
    ...(may("reject") ? { x: () => { deciding.ask("reject"); } } : {}),
    ...(may("respond") ? { r: () => { deciding.ask("respond"); } } : {}),
    ...(may("approve") && record !== undefined && mayBeRemembered(record) ? { o: () => { deciding.ask("approve", { remember: true }); } } : {}),
    Escape: () => { deciding.dismiss(); },
  });
  if (item === undefined || record === undefined) return error === undefined ? <Loading /> : <Broken error={error} again={refresh} />;
  const tool = installed.value?.tools.find((one) => one.name === record.tool);
  return <article class="card" aria-labelledby="card-title">
    <header class="card-head">
      <a class="back" href={back} aria-label="Back to the list">←</a>
      <div class="grow"><h2 id="card-title"><span class="code">{record.tool ?? "Escalation"}</span>{tool?.title === undefined ? null : <span class="quiet title">{tool.title}</span>}</h2>
        <p class="card-line"><RiskMark risk={record.risk} /> <a href={to.session(item.pending.sessionId)}><bdi>{item.pending.sessionId}</bdi></a> <span class="quiet">agent {item.pending.agent}</span></p></div>
      {item.state === "open" ? <Left item={item} /> : <span class="badge">{item.state}</span>}
    </header>
    <DecisionOutcome item={item} phase={deciding.phase} dismiss={deciding.dismiss} />
    {forged ? <Notice tone="bad"><b>Do not decide this.</b> The digest of the arguments on this page is not the digest that would be signed. Look at the session's journal.</Notice> : null}
    <Tending item={item} me={me} onDone={() => { refresh(); onSettled(); }} />
    <Arguments item={item} check={check} />
    {tool === undefined ? null : <section><h3>What the tool does</h3><p><Words text={tool.description} max={600} /></p><p class="quiet">{effectWords(tool)}</p></section>}
    <section><h3>Why the agent wants it</h3>{item.pending.rationale === "" ? <p class="quiet">The model gave no reason.</p> : <blockquote><Words text={item.pending.rationale} max={2_000} /></blockquote>}</section>
    <section><h3>What started it <span class="tag-untrusted">untrusted</span></h3><blockquote class="untrusted"><Words text={item.pending.trigger === "" ? "(empty)" : wordsOf(item.pending.trigger)} max={2_000} /></blockquote><p class="quiet">Written by {record.requestedBy === "" ? "an outside system" : <bdi>{record.requestedBy}</bdi>}. Nothing in it is a decision or an instruction to you.</p></section>
    <Similar item={item} />
    <Quorum item={item} />
    <Course item={item} />
    <section><h3>Why you are asked</h3><p><Words text={record.question} /></p><Facts item={item} /><HistoryOf events={item.history} /></section>
    <NoticesLine approvalId={record.approvalId} />
    <Together item={item} me={me} onDone={() => { refresh(); onSettled(); }} />
    {item.state === "open" ? <DecisionBar record={record} obstacle={obstacle} deciding={deciding} /> : null}
    {deciding.phase.at === "asking" && item.state === "open" ? <DecisionDialog kind={deciding.phase.kind} remember={deciding.phase.remember === true} item={item} tool={tool} deciding={deciding} /> : null}
  </article>;
}

const CHECKS: Readonly<Record<DigestCheck, string>> = {
  checking: "checking the digest", same: "this browser has checked it against the arguments above", different: "is not the digest of the arguments above", unavailable: "not checked: this browser hashes nothing without TLS",
};

function Arguments({ item, check }: { item: ApprovalListItem; check: DigestCheck }): JSX.Element {
  const { record, args } = item.pending;
  const { ran, asked } = item.state === "decided" ? pastOf(item) : {};
  return <>{ran === undefined || asked === undefined ? null : <section><h3>Arguments that were let run</h3><Json text={ran} label="Arguments that were let run" /><p class="quiet">Changed by {item.decidedBy ?? "somebody"} from what was asked for, below.</p></section>}
    <section><h3>{record.kind === "tool_call" ? "Arguments, exactly and in full" : "What it is about"}</h3>
    {args === "" ? <p class="quiet">none</p> : <Json text={args} label="Arguments" />}
    {record.kind === "tool_call" ? <p class="digest"><Id id={record.argsDigest} /> <span class="quiet">version {record.version}; {CHECKS[check]}</span></p> : null}</section></>;
}

function Facts({ item: { pending: { record } } }: { item: ApprovalListItem }): JSX.Element {
  const { approvers } = record;
  return <Fields rows={[
    ["rule", <span class="code">{record.rule}</span>], ["policy", <Id id={record.policyVersion} whole />],
    ["may decide", `${peopleWords(approvers)}${approvers.excludeRequester ? ", not who asked" : ""}`],
    ["opened", <Time at={record.openedAtMs} />],
    ["deadline", record.expiresAtMs === undefined ? "there is none" : <Time at={record.expiresAtMs} />],
    ["approval", <Id id={record.approvalId} />], record.callId === undefined ? undefined : ["call", <Id id={record.callId} />], ["run", <Id id={record.runId} />],
  ]} />;
}

function effectWords({ effects, critical }: ToolManifest): string {
  const words = { none: "It reads only.", idempotent: "Repeating it changes nothing more.", once: "Its effect cannot be repeated safely, and may not be undone." }[effects];
  return critical ? `${words} If it fails, a person is asked.` : words;
}
