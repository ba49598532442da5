/**
 * Owns: what else there is like an approval: earlier decisions on the same tool, and open ones of the same tool and rule, which may be decided together where
 * the risk is below high. Each is shown with its exact arguments, is ticked by hand, and is a decision of its own; the server checks that they are alike.
 */
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { ApprovalListItem, DecisionAnswer } from "../../../src/contracts/api.js";
import { ApiError, post } from "../lib/api.js";
import { DOUBLE_CLICK_MS, newId } from "../lib/decision.js";
import { inline, parseLossless, visible } from "../lib/json.js";
import { pastOf } from "../lib/past.js";
import { usePoll } from "../lib/poll.js";
import { to } from "../lib/router.js";
import type { Me } from "../lib/urgency.js";
import { obstacleOf } from "../lib/who-may.js";
import { plural } from "../lib/words.js";
import { Dialog, Json, Notice, Time, Words } from "../parts/basics.js";

interface Page { readonly items: readonly ApprovalListItem[] }

/** Earlier decisions on the same tool. */
export function Similar({ item }: { item: ApprovalListItem }): JSX.Element | null {
  const { approvalId, tool } = item.pending.record;
  const { value } = usePoll<Page>(tool === undefined ? undefined : `/v1/approvals/${encodeURIComponent(approvalId)}/similar`, 30_000);
  if (value === undefined) return null;
  return <section><h3>Decided before on this tool</h3>{value.items.length === 0 ? <p class="quiet">Nothing yet.</p> : <ul class="similar">{value.items.map((one) => <li key={one.pending.record.approvalId}>
    <Before item={one} /></li>)}</ul>}</section>;
}

/** Who, when and why; what was let run, and what was asked for where it was something else. */
function Before({ item }: { item: ApprovalListItem }): JSX.Element {
  const { verb, who, ran, asked, changed } = pastOf(item);
  return <><p><a href={to.approval(item.pending.record.approvalId)}>{verb}</a> <span class="quiet">by <bdi>{visible(who)}</bdi> <Time at={item.decidedAtMs} /></span>{item.reason === undefined ? null : <> <q><Words text={item.reason} max={200} /></q></>}</p>
    {ran === undefined ? null : <p><bdi class="code" title={visible(ran)}>{oneLine(ran)}</bdi></p>}
    {asked === undefined ? null : <p class="quiet">asked: <bdi class="code" title={visible(asked)}>{oneLine(asked)}</bdi>{changed === true ? " (changed: its session's journal has how)" : ""}</p>}</>;
}

/** Open approvals that may be decided together with this one, this one first. */
export function alikeOf(item: ApprovalListItem, open: readonly ApprovalListItem[], me: Me): ApprovalListItem[] {
  const { record } = item.pending;
  if (record.kind !== "tool_call" || record.risk === "high" || !record.allowed.includes("approve")) return [];
  return open.filter((one) => {
    const other = one.pending.record;
    return one.state === "open" && other.kind === "tool_call" && other.risk !== "high" && other.tool === record.tool && other.rule === record.rule && obstacleOf(other, me) === undefined;
  }).sort((a, b) => Number(b.pending.record.approvalId === record.approvalId) - Number(a.pending.record.approvalId === record.approvalId)).slice(0, 50);
}

export function Together({ item, me, onDone }: { item: ApprovalListItem; me: Me; onDone: () => void }): JSX.Element | null {
  const { value } = usePoll<Page>(item.state === "open" ? "/v1/approvals?state=open&limit=200" : undefined, 5_000);
  const [asking, setAsking] = useState<readonly ApprovalListItem[]>();
  const alike = alikeOf(item, value?.items ?? [], me);
  // The dialog stays when this one is decided meanwhile: its verdicts have to be read.
  if (asking === undefined && alike.length < 2) return null;
  return asking === undefined ? <p class="together"><button type="button" onClick={() => { setAsking(alike); }}>{plural(alike.length - 1, "more approval")} of the same tool and rule: decide together…</button></p>
    : <TogetherDialog items={asking} onClose={() => { setAsking(undefined); onDone(); }} />;
}

/** What is shown is what was there when the dialog opened: versions and digests of these are sent. */
function TogetherDialog({ items, onClose }: { items: readonly ApprovalListItem[]; onClose: () => void }): JSX.Element {
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  const [armedAt, setArmedAt] = useState<number>();
  const [reason, setReason] = useState("");
  const [told, setTold] = useState<readonly DecisionAnswer[] | string>();
  const [sending, setSending] = useState(false);
  const click = useRef({ id: newId(), of: "" });
  const chosen = items.filter((item) => ticked.has(item.pending.record.approvalId));
  const tick = (id: string): void => {
    const next = new Set(ticked);
    if (!next.delete(id)) next.add(id);
    setTicked(next);
    setArmedAt(undefined);
  };
  const send = async (kind: "approve" | "reject"): Promise<void> => {
    setSending(true);
    setArmedAt(undefined);
    const of = `${kind} ${reason} ${[...ticked].sort().join()}`;
    if (click.current.of !== of) click.current = { id: newId(), of };
    try {
      const { items: answers } = await post<{ items: readonly DecisionAnswer[] }>("/v1/approvals/decisions", {
        kind, clickId: click.current.id, ...(reason.trim() === "" ? {} : { text: reason }), approvals: chosen.map(({ pending: { record } }) => ({ approvalId: record.approvalId, version: record.version, argsDigest: record.argsDigest })),
      });
      setTold(answers);
    } catch (error) {
      setTold(`${error instanceof ApiError ? error.message : String(error)} Pressing again sends the same decision, which counts once.`);
    }
    setSending(false);
  };
  const approve = (): void => {
    if (armedAt === undefined) { setArmedAt(Date.now()); return; }
    if (Date.now() - armedAt >= DOUBLE_CLICK_MS) void send("approve");
  };
  const first = items[0]?.pending.record;
  return <Dialog title={`Decide ${first?.tool ?? ""} together`} wide onClose={onClose}>
    <p class="quiet">All were asked for by rule <span class="code">{first?.rule ?? ""}</span>. Tick what you have read. Each is a decision of its own, and its session has the last word.</p>
    <ul class="ticks">{items.map(({ pending }) => { const { approvalId } = pending.record; const answer = Array.isArray(told) ? (told as readonly DecisionAnswer[]).find((one) => one.approvalId === approvalId) : undefined; return <li key={approvalId}>
      <label><input type="checkbox" checked={ticked.has(approvalId)} disabled={sending || Array.isArray(told)} onChange={() => { tick(approvalId); }} /> <bdi>{visible(pending.sessionId)}</bdi></label>{answer === undefined ? null : <b class="verdict-word">{answer.verdict.replaceAll("_", " ")}{answer.message === undefined ? "" : `: ${answer.message}`}</b>}
      <Json text={pending.args} label={`Arguments of ${approvalId}`} /></li>; })}</ul>
    {typeof told === "string" ? <Notice tone="bad">{told}</Notice> : null}
    {Array.isArray(told) ? <div class="dialog-buttons"><button type="button" class="go" onClick={onClose}>Close</button></div> : <>
      <label class="field"><span>Reason (needed to reject them)</span><input maxLength={2_000} value={reason} onInput={(event) => { setReason(event.currentTarget.value); }} /></label>
      <div class="dialog-buttons"><button type="button" onClick={() => { setTicked(new Set(items.map((item) => item.pending.record.approvalId))); setArmedAt(undefined); }}>Tick all</button>
        <button type="button" class="stop" disabled={chosen.length === 0 || reason.trim() === "" || sending} onClick={() => { void send("reject"); }}>Reject {chosen.length}</button>
        <button type="button" class={`go ${armedAt === undefined ? "" : "armed"}`} disabled={chosen.length === 0 || sending} onClick={approve} onKeyDown={(event) => { if (event.key === "Enter" && armedAt !== undefined) event.preventDefault(); }}>{sending ? "Sending…" : armedAt === undefined ? `Approve ${String(chosen.length)}` : `Press again to approve ${String(chosen.length)}`}</button></div></>}
  </Dialog>;
}

function oneLine(args: string): string {
  try {
    return inline(parseLossless(args));
  } catch {
    return visible(args);
  }
}
