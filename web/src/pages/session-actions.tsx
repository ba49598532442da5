/** Owns: what an operator does to a session: a message, a cancel. Both say what the session made of it, not that something was sent. */
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { SessionView } from "../../../src/contracts/api.js";
import { ApiError, post } from "../lib/api.js";
import { newId } from "../lib/decision.js";
import type { Me } from "../lib/urgency.js";
import { shortId } from "../lib/words.js";
import { Dialog, Notice } from "../parts/basics.js";

interface Sent { readonly state: string; readonly runId?: string }
type Told = { readonly tone: "good" | "bad" | "info"; readonly text: string } | undefined;

const MODES: readonly (readonly [string, string])[] = [["enqueue", "after what it is doing"], ["steer", "between its steps"], ["interrupt", "now: stop what it says"], ["reject", "only if it is free"], ["withdraw", "withdraw its open approvals"]];

export function SessionActions({ view, me, onDone }: { view: SessionView; me: Me; onDone: () => void }): JSX.Element | null {
  const [cancelling, setCancelling] = useState(false);
  const [told, setTold] = useState<Told>();
  const { runId, status } = view.summary;
  if (!me.rights.includes("operate") || status === "CLOSED" || status === "DELETED") return null;
  return <section class="actions" aria-label="Act on the session">
    <Composer sessionId={view.summary.sessionId} busy={runId !== undefined} tell={(next) => { setTold(next); onDone(); }} />
    {runId === undefined ? null : <button type="button" class="stop" onClick={() => { setCancelling(true); }}>Cancel run</button>}
    {told === undefined ? null : <Notice tone={told.tone}>{told.text}</Notice>}
    {cancelling && runId !== undefined ? <CancelDialog sessionId={view.summary.sessionId} runId={runId} onClose={(next) => { setCancelling(false); setTold(next); onDone(); }} /> : null}
  </section>;
}

function Composer({ sessionId, busy, tell }: { sessionId: string; busy: boolean; tell: (told: Told) => void }): JSX.Element {
  const [text, setText] = useState("");
  const [mode, setMode] = useState("enqueue");
  const [sending, setSending] = useState(false);
  // The same text keeps its id until it has arrived: sending twice is sending once.
  const pending = useRef<{ text: string; mode: string; eventId: string } | undefined>(undefined);
  const send = async (): Promise<void> => {
    const before = pending.current;
    const message = before !== undefined && before.text === text && before.mode === mode ? before : { text, mode, eventId: newId() };
    pending.current = message;
    setSending(true);
    try {
      const { state, runId } = await post<Sent>(`/v1/sessions/${encodeURIComponent(sessionId)}/messages`, message);
      if (state === "unknown") tell({ tone: "info", text: "Sent; the session has not said yet that it has it. Sending the same text again is safe: it counts once." });
      else {
        pending.current = undefined;
        setText("");
        tell({ tone: "good", text: `The session has the message${runId === undefined ? "" : ` (run ${shortId(runId)})`}.` });
      }
    } catch (error) {
      tell({ tone: "bad", text: `${messageOf(error)} Sending the same text again is safe: it counts once.` });
    }
    setSending(false);
  };
  return <form class="composer" onSubmit={(event) => { event.preventDefault(); if (text.trim() !== "" && !sending) void send(); }}>
    <label class="sr" for="message">Message to the session</label><textarea id="message" rows={2} maxLength={100_000} placeholder="Message to the session" value={text} onInput={(event) => { setText(event.currentTarget.value); }} />
    {busy ? <label class="mode"><span class="quiet">deliver</span> <select value={mode} onChange={(event) => { setMode(event.currentTarget.value); }}>{MODES.map(([name, words]) => <option key={name} value={name}>{words}</option>)}</select></label> : null}
    <button type="submit" disabled={text.trim() === "" || sending}>{sending ? "Sending…" : "Send"}</button>
  </form>;
}

function CancelDialog({ sessionId, runId, onClose }: { sessionId: string; runId: string; onClose: (told?: Told) => void }): JSX.Element {
  const [reason, setReason] = useState("");
  const cancel = async (): Promise<void> => {
    try {
      await post(`/v1/sessions/${encodeURIComponent(sessionId)}/cancel`, { reason, runId });
      onClose({ tone: "info", text: "The cancel is on its way. Calls that are out are waited for; the story below shows what the session made of it." });
    } catch (error) {
      onClose({ tone: "bad", text: messageOf(error) });
    }
  };
  return <Dialog title="Cancel the open run" onClose={() => { onClose(); }}>
    <p>Run <span class="code">{shortId(runId)}</span> of <bdi>{sessionId}</bdi>. If another run is open by then, nothing happens.</p>
    <label class="field"><span>Reason</span><textarea rows={3} maxLength={2_000} value={reason} autoFocus onInput={(event) => { setReason(event.currentTarget.value); }} /></label>
    <div class="dialog-buttons"><button type="button" onClick={() => { onClose(); }}>Keep it running</button><button type="button" class="stop" disabled={reason.trim() === ""} onClick={() => { void cancel(); }}>Cancel run</button></div>
  </Dialog>;
}

function messageOf(error: unknown): string { return error instanceof ApiError ? `${error.message}.` : String(error); }
