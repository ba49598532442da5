/**
 * Owns: the page that a one-time link leads to. It shows the approval as it was sent and as it is; deciding takes two presses, like everywhere. The token is
 * behind the `#`, is taken out of the address at once, and goes to the console in bodies only; it survives the way to an identity provider and back in this tab.
 */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { DecisionAnswer } from "../../../src/contracts/api.js";
import type { LinkView } from "../../../src/contracts/notices.js";
import { ApiError, me as meStore, post } from "../lib/api.js";
import { useDigestCheck } from "../lib/digest.js";
import { wordsOf } from "../lib/json.js";
import { to } from "../lib/router.js";
import { useStore } from "../lib/use-store.js";
import { decisionWords } from "../lib/words.js";
import { Fields, Id, Json, Loading, Notice, RiskMark, Time, Words } from "../parts/basics.js";
import { SignIn } from "./sign-in.js";

const KEPT = "docket-link";
const DOUBLE_CLICK_MS = 500;

/** The token, once; the address is clean afterwards. */
function takeToken(): string {
  const given = location.hash.slice(1);
  if (given !== "") {
    sessionStorage.setItem(KEPT, given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(KEPT) ?? "";
}

export function Confirm(): JSX.Element {
  const [token] = useState(takeToken);
  const me = useStore(meStore);
  const [view, setView] = useState<LinkView>();
  const [error, setError] = useState<ApiError>();
  useEffect(() => {
    if (token === "") return;
    setError(undefined);
    void post<LinkView>("/v1/links/open", { token }).then(setView, (reason: unknown) => { setError(asError(reason)); });
  }, [token, me?.principal.id]);
  if (token === "") return <Alone title="No link"><p>This page is opened by a link that was sent to you.</p></Alone>;
  if (error?.code === "unauthenticated") return <SignIn />;
  if (error !== undefined) return <Alone title="This link decides nothing"><p role="alert"><Words text={error.message} max={400} /></p>{error.problem?.hint === undefined ? null : <p class="quiet">Next: {error.problem.hint}</p>}<p class="quiet code">{error.code}</p></Alone>;
  return view === undefined ? <main class="alone"><Loading /></main> : <Decide token={token} view={view} />;
}

function Decide({ token, view: { item, principal, expiresAtMs, used } }: { token: string; view: LinkView }): JSX.Element {
  const { record, args, rationale, trigger, sessionId } = item.pending;
  const check = useDigestCheck(args, record.argsDigest);
  const reason = useRef<HTMLTextAreaElement>(null);
  const [armed, setArmed] = useState<{ kind: "approve" | "reject"; atMs: number }>();
  const [outcome, setOutcome] = useState<DecisionAnswer | ApiError | "sending">();
  const forged = record.kind === "tool_call" && check === "different";
  const may = item.state === "open" && !used && !forged && outcome === undefined;
  const press = (kind: "approve" | "reject"): void => {
    if (armed?.kind !== kind) { setArmed({ kind, atMs: Date.now() }); return; }
    if (Date.now() - armed.atMs < DOUBLE_CLICK_MS) return;
    const text = reason.current?.value.trim() ?? "";
    setArmed(undefined);
    setOutcome("sending");
    void post<DecisionAnswer>("/v1/links/decisions", { token, approvalId: record.approvalId, version: record.version, argsDigest: record.argsDigest, kind, ...(text === "" ? {} : { text }) }).then(setOutcome, (failed: unknown) => { setOutcome(asError(failed)); });
  };
  return <main class="alone"><article class="card confirm" aria-labelledby="confirm-title">
    <header class="card-head"><div class="grow"><h1 id="confirm-title"><span class="code">{record.tool ?? "Escalation"}</span></h1><p class="card-line"><RiskMark risk={record.risk} /> <bdi>{sessionId}</bdi></p></div></header>
    <p>Sent to <bdi>{principal}</bdi>. The decision will be recorded under this name; the link ends <Time at={expiresAtMs} />.</p>
    {forged ? <Notice tone="bad"><b>Do not decide this.</b> The digest of the arguments on this page is not the digest that would be signed.</Notice> : null}
    {item.state !== "open" ? <Notice tone="info">No longer open: {item.state === "decided" ? `${item.decidedBy ?? "somebody"} ${decisionWords(item.decision ?? "decided")} it` : item.state}.</Notice> : used && outcome === undefined ? <Notice tone="info">This link was used before. <a href={to.approval(record.approvalId)}>Open the approval in the console.</a></Notice> : null}
    <section><h2>Arguments, exactly and in full</h2>{args === "" ? <p class="quiet">none</p> : <Json text={args} label="Arguments" />}<p class="digest"><Id id={record.argsDigest} /></p></section>
    <section><h2>Why the agent wants it</h2><blockquote><Words text={rationale === "" ? "The model gave no reason." : rationale} max={2_000} /></blockquote></section>
    <section><h2>What started it <span class="tag-untrusted">untrusted</span></h2><blockquote class="untrusted"><Words text={trigger === "" ? "(empty)" : wordsOf(trigger)} max={2_000} /></blockquote></section>
    <section><h2>Why you are asked</h2><p><Words text={record.question} /></p><Fields rows={[["rule", <span class="code">{record.rule}</span>], ["asked for by", record.requestedBy], ["until", record.expiresAtMs === undefined ? "no deadline" : <Time at={record.expiresAtMs} />]]} /></section>
    {outcome === undefined ? null : <Told outcome={outcome} />}
    {!may ? null : <footer class="bar" aria-label="Decide">
      <label class="field"><span>Reason (optional, for the audit; where you reject it is needed, and the model reads it)</span><textarea ref={reason} rows={2} maxLength={2_000} /></label>
      <div class="bar-buttons">{(["approve", "reject"] as const).filter((kind) => record.allowed.includes(kind)).map((kind) => <button key={kind} type="button" data-kind={kind} class={`decide ${kind === "approve" ? "go" : "stop"} ${armed?.kind === kind ? "armed" : ""}`} onClick={() => { press(kind); }}>{armed?.kind === kind ? `Press again to ${kind}` : kind === "approve" ? "Approve" : "Reject"}</button>)}</div>
    </footer>}
    <p class="quiet"><a href={to.approval(record.approvalId)}>More answers are in the console</a></p>
  </article></main>;
}

function Told({ outcome }: { outcome: DecisionAnswer | ApiError | "sending" }): JSX.Element {
  if (outcome === "sending") return <Notice tone="info">Sent. Waiting for the session's verdict…</Notice>;
  if (outcome instanceof ApiError) return <Notice tone="bad"><b>Nothing was decided.</b> <Words text={outcome.message} max={400} /> <span class="code quiet">{outcome.code}</span></Notice>;
  if (outcome.verdict === "not_known_yet") return <Notice tone="bad"><b>Not known yet.</b> It was sent, and the session has not said what it made of it. Look at the approval in the console.</Notice>;
  return <Notice tone="good"><b>{outcome.verdict === "signed" ? "Your signature counts" : `It is ${outcome.verdict}`}.</b> The session has confirmed it. You can close this page.</Notice>;
}

function Alone({ title, children }: { title: string; children: JSX.Element | (JSX.Element | null)[] }): JSX.Element { return <main class="alone"><div class="state"><h1>{title}</h1>{children}</div></main>; }

function asError(reason: unknown): ApiError { return reason instanceof ApiError ? reason : new ApiError(String(reason), 0); }
