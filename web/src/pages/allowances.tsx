/** Owns: tools that people have allowed for a session: what for, until when, by whom; and taking it back. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { SessionView } from "../../../src/contracts/api.js";
import type { SessionAllowance } from "../../../src/contracts/decisions.js";
import { ApiError, post } from "../lib/api.js";
import { visible } from "../lib/json.js";
import { to } from "../lib/router.js";
import type { Me } from "../lib/urgency.js";
import { plural } from "../lib/words.js";
import { Dialog, Notice, Time, Words } from "../parts/basics.js";

export function Allowances({ view, me, onDone }: { view: SessionView; me: Me; onDone: () => void }): JSX.Element | null {
  const { allowances = [], summary } = view;
  const [ending, setEnding] = useState<SessionAllowance>();
  const [told, setTold] = useState<{ readonly tone: "good" | "bad" | "info"; readonly text: string }>();
  const may = me.rights.includes("operate") || me.rights.includes("decide");
  if (allowances.length === 0 && told === undefined) return null;
  return <section class="allowances" aria-label="Allowed for this session"><h2>Allowed for this session</h2>
    {told === undefined ? null : <Notice tone={told.tone}><Words text={told.text} max={400} /></Notice>}
    <ul>{allowances.map((one) => <li key={one.allowanceId}>
      <span class="code">{one.tool}</span> <span>{one.where === undefined ? "with any arguments" : <>only with <bdi class="code">{visible(one.where)}</bdi></>}</span>
      <span class="quiet">{one.usesLeft === undefined ? "any number of calls" : `${plural(one.usesLeft, "call")} left`}, ends <Time at={one.expiresAtMs} />; <a href={to.approval(one.approvalId)}>allowed</a> by <bdi>{visible(one.grantedBy)}</bdi> <Time at={one.grantedAtMs} /></span>
      {may ? <button type="button" class="stop" onClick={() => { setEnding(one); }}>Revoke</button> : null}</li>)}</ul>
    {ending === undefined ? null : <RevokeDialog sessionId={summary.sessionId} allowance={ending} onClose={(next) => { setEnding(undefined); if (next !== undefined) setTold(next); onDone(); }} />}
  </section>;
}

type Told = { readonly tone: "good" | "bad" | "info"; readonly text: string };

function RevokeDialog({ sessionId, allowance, onClose }: { sessionId: string; allowance: SessionAllowance; onClose: (told?: Told) => void }): JSX.Element {
  const [reason, setReason] = useState("");
  const revoke = async (): Promise<void> => {
    try {
      const { verdict } = await post<{ verdict: string }>(`/v1/sessions/${encodeURIComponent(sessionId)}/allowances/${encodeURIComponent(allowance.allowanceId)}/revoke`, { reason });
      onClose(verdict === "not_known_yet" ? { tone: "info", text: "Sent; the session has not said yet that it has ended." } : { tone: "good", text: `Revoked: ${allowance.tool} asks again.` });
    } catch (error) {
      onClose({ tone: "bad", text: error instanceof ApiError ? error.message : String(error) });
    }
  };
  return <Dialog title={`Revoke the allowance of ${allowance.tool}`} onClose={() => { onClose(); }}>
    <p>Further calls of <span class="code">{allowance.tool}</span> ask again. Calls that have gone out are not called back.</p>
    <label class="field"><span>Reason (optional)</span><input maxLength={2_000} autoComplete="off" value={reason} autoFocus onInput={(event) => { setReason(event.currentTarget.value); }} /></label>
    <div class="dialog-buttons"><button type="button" onClick={() => { onClose(); }}>Leave it</button><button type="button" class="stop" onClick={() => { void revoke(); }}>Revoke</button></div>
  </Dialog>;
}
