/** Owns: telling what became of a decision: the session's own verdict, who was first, or that it is not known. */
import type { JSX } from "preact";
import type { ApprovalListItem } from "../../../src/contracts/api.js";
import type { Phase } from "../lib/decision.js";
import { to } from "../lib/router.js";
import { decisionWords } from "../lib/words.js";
import { Notice, Time, Words } from "../parts/basics.js";

export function DecisionOutcome({ item, phase, dismiss }: { item: ApprovalListItem; phase: Phase; dismiss: () => void }): JSX.Element | null {
  const { record, sessionId } = item.pending;
  switch (phase.at) {
    case "idle": case "armed": case "asking": return item.state === "open" ? null : <Notice tone="info"><Settled item={item} /></Notice>;
    case "changed": return <Notice tone="bad"><b>The approval has changed while you were deciding.</b> Nothing was sent. What you see now is what is asked. <button type="button" class="link" onClick={dismiss}>Understood</button></Notice>;
    case "sending": return <Notice tone="info">Sent: {phase.kind.replace("_", " ")}. Waiting for the session's verdict…</Notice>;
    case "told": return <Notice tone="good"><b>{heading(phase.kind)}.</b> The session has confirmed it{phase.answer.rev === undefined ? "" : ` (revision ${String(phase.answer.rev)})`}.{item.state === "open" && record.approvers.quorum > 1 ? " More signatures are needed." : ""} <a href={to.session(sessionId)}>See what it does</a></Notice>;
    case "refused": return <Notice tone="bad"><b>Your decision to {phase.kind.replace("_", " ")} changed nothing.</b> <Words text={phase.error.message} max={600} /> <span class="code quiet">{phase.error.code}</span>{item.state === "open" ? <> <button type="button" class="link" onClick={dismiss}>Understood</button></> : <p><Settled item={item} /></p>}</Notice>;
    case "unsure": return <Notice tone="bad"><b>Not known yet.</b> <Words text={phase.why} max={600} /> <button type="button" onClick={phase.again}>Ask again</button> <span class="quiet">It is the same decision, so it counts once.</span></Notice>;
  }
}

/** Who was first, and when. */
function Settled({ item }: { item: ApprovalListItem }): JSX.Element {
  if (item.state === "open") return <span>It is still open.</span>;
  const when = item.decidedAtMs === undefined ? null : <Time at={item.decidedAtMs} />;
  if (item.state !== "decided") return <span>The approval is {item.state}{when === null ? "" : ", "}{when}.</span>;
  return <span><b>{item.decidedBy ?? "Somebody"}</b> {decisionWords(item.decision ?? "decided")} it {when}{item.reason === undefined ? "." : <>: <q><Words text={item.reason} max={600} /></q></>}</span>;
}

function heading(kind: string): string {
  const words = decisionWords(kind);
  return words.charAt(0).toUpperCase() + words.slice(1);
}
