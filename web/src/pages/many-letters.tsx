/** Owns: settling all dead letters of one fingerprint, also those that the page does not show: counted first, then redriven or discarded, the oldest first. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { BulkDiscardAnswer, BulkRedriveAnswer } from "../../../src/contracts/api.js";
import { ApiError, post } from "../lib/api.js";
import type { LetterGroup } from "../lib/letters.js";
import { count, plural } from "../lib/words.js";
import { Dialog, Notice, Words } from "../parts/basics.js";

type How = "redrive" | "discard";
type Answer = { readonly matched: number; readonly nextCursor?: string | undefined } & (Pick<BulkRedriveAnswer, "redriven" | "skipped"> | Pick<BulkDiscardAnswer, "discarded">);

const WORDS: Readonly<Record<How, { readonly title: string; readonly verb: string; readonly done: string; readonly means: string }>> = {
  redrive: { title: "Redrive all like these", verb: "Redrive", done: "redriven", means: "Each is sent as a new event, with a new id and expiry. Policy judges every call anew." },
  discard: { title: "Discard all like these", verb: "Discard", done: "discarded", means: "They stay readable until retention takes them, and are not sent again." },
};

export function ManyDialog({ group, how, onClose }: { group: LetterGroup; how: How; onClose: () => void }): JSX.Element {
  const [reason, setReason] = useState("");
  const [counted, setCounted] = useState<Answer>();
  const [told, setTold] = useState<{ tone: "good" | "bad" | "info"; text: string }>();
  const [busy, setBusy] = useState(false);
  const words = WORDS[how];
  const page = (dryRun: boolean, cursor: string | undefined): Promise<Answer> => post<Answer>(`/v1/dead-letters/${how}`, { reason: reason.trim() === "" ? "counting" : reason, dryRun, filter: { fingerprint: group.fingerprint }, ...(cursor === undefined ? {} : { cursor }) });
  const ask = async (dryRun: boolean): Promise<void> => {
    setBusy(true);
    let settled = 0;
    let left = 0;
    try {
      for (let cursor: string | undefined, more = true; more;) {
        const answer = await page(dryRun, cursor);
        settled += doneOf(answer);
        left += leftOf(answer);
        if (dryRun) setCounted(answer);
        cursor = answer.nextCursor;
        more = !dryRun && cursor !== undefined;
      }
      setTold(dryRun ? undefined : { tone: left === 0 ? "good" : "info", text: `${plural(settled, "letter")} ${words.done}${left === 0 ? "" : `; ${plural(left, "letter")} cannot be, and stay`}.` });
      if (!dryRun) setCounted(undefined);
    } catch (error) {
      setTold({ tone: "bad", text: `${error instanceof ApiError ? error.message : String(error)} ${plural(settled, "letter")} ${words.done} before that; the same again goes on behind them.` });
    }
    setBusy(false);
  };
  return <Dialog title={words.title} onClose={onClose}>
    <p><span class="code">{group.reason}</span> <span class="quiet"><Words text={group.message} max={300} /></span></p>
    <p class="quiet">{words.means}</p>
    {counted === undefined ? null : <Notice tone="info">{plural(counted.matched, "dead letter")} of this kind{"redriven" in counted ? `; of the first ${count(doneOf(counted) + leftOf(counted))}, ${count(doneOf(counted))} would be sent and ${count(leftOf(counted))} left` : ""}. Nothing was {how === "redrive" ? "sent" : "discarded"}.</Notice>}
    {told === undefined ? null : <Notice tone={told.tone}>{told.text}</Notice>}
    <label class="field"><span>Reason</span><textarea rows={2} maxLength={2_000} value={reason} autoFocus onInput={(event) => { setReason(event.currentTarget.value); }} /></label>
    <div class="dialog-buttons"><button type="button" onClick={onClose}>Close</button><button type="button" disabled={busy} onClick={() => { void ask(true); }}>Count only</button><button type="button" class={how === "redrive" ? "go" : "stop"} disabled={busy || reason.trim() === "" || counted === undefined || counted.matched === 0} onClick={() => { void ask(false); }}>{words.verb} {counted === undefined ? "all" : counted.matched}</button></div>
  </Dialog>;
}

function doneOf(answer: Answer): number { return "redriven" in answer ? answer.redriven : answer.discarded; }
function leftOf(answer: Answer): number { return "skipped" in answer ? answer.skipped.length : 0; }
