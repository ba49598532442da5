/** Owns: the course of an approval: how many have signed and how many are missing, what happens next and when, and what has happened. */
import type { JSX } from "preact";
import type { ApprovalEvent, ApprovalListItem } from "../../../src/contracts/api.js";
import { visible } from "../lib/json.js";
import { useNow } from "../lib/poll.js";
import { missingOf, peopleWords, stepsOf, stepsTaken } from "../lib/who-may.js";
import { decisionWords, iso, plural, relative } from "../lib/words.js";
import { Time, Words } from "../parts/basics.js";

/** Only where more than one has to say yes. */
export function Quorum({ item: { pending: { record }, state } }: { item: ApprovalListItem }): JSX.Element | null {
  const { quorum } = record.approvers;
  if (quorum <= 1) return null;
  const missing = missingOf(record);
  return <section class="quorum" aria-label="Signatures"><h3>{plural(quorum, "person has", "people have")} to approve</h3>
    <ol>{record.signatures.map((one) => <li key={one.decisionId}><span class="up-word" aria-hidden="true">✓</span> <bdi>{visible(one.principalId)}</bdi> <span class="quiet">approved <Time at={one.atMs} /></span></li>)}
      {state === "open" ? Array.from({ length: missing }, (_, index) => <li key={index} class="quiet"><span aria-hidden="true">○</span> missing</li>) : null}</ol>
    <p>{record.signatures.length} of {quorum} {state === "open" ? "so far" : "signed"}{state === "open" ? `; ${plural(missing, "more is", "more are")} needed. One rejection is enough to refuse.` : "."}</p>
    <p class="quiet">May approve: {[record.approvers, ...stepsTaken(record)].map(peopleWords).join("; ")}. Nobody counts twice{record.approvers.excludeRequester ? ", and who asked for it does not count at all" : ""}. A change of the arguments starts the count again.</p></section>;
}

/** What happens while nobody decides. */
export function Course({ item }: { item: ApprovalListItem }): JSX.Element | null {
  const nowMs = useNow(5_000);
  const steps = stepsOf(item);
  if (item.state !== "open" || steps.length === 0) return null;
  const next = steps.find((step) => !step.done);
  return <section aria-label="What happens next"><h3>If nobody decides</h3>
    <ol class="course">{steps.map((step, index) => <li key={index} class={step.done ? "quiet" : step === next ? "next-step" : ""}>
      <span aria-hidden="true">{step.done ? "✓" : step === next ? "→" : "·"}</span> <time dateTime={iso(step.atMs)} title={iso(step.atMs)}>{relative(step.atMs, nowMs)}</time> <span>{step.words}{step.done ? " (done)" : ""}</span></li>)}</ol></section>;
}

/** What has happened so far, from the session's journal. */
export function HistoryOf({ events }: { events: readonly ApprovalEvent[] | undefined }): JSX.Element | null {
  if (events === undefined || events.length < 2) return null;
  return <details class="in-cell"><summary>What happened so far ({events.length})</summary>
    <ol class="course">{events.map((event, index) => <li key={index}><Time at={event.atMs} /> <Words text={lineOf(event)} max={300} /></li>)}</ol></details>;
}

function lineOf({ what, by, via, detail, untilMs, text }: ApprovalEvent): string {
  const who = by ?? "Docket";
  const said = text === undefined ? "" : `: ${text}`;
  switch (what) {
    case "opened": return "opened";
    case "asked_again": return `asked again: ${detail ?? ""}`;
    case "reminded": return `reminded${detail === undefined ? "" : `: ${detail}`}`;
    case "assigned": return `${who} assigned it to ${detail ?? "nobody"}`;
    case "snoozed": return untilMs === undefined ? `${who} ended the snooze` : `${who} snoozed it until ${iso(untilMs)}`;
    case "signed": return `${who} ${decisionWords(detail ?? "approve")}; more are needed${said}`;
    case "decided": return `${decisionWords(detail ?? "decided")} by ${who}${via === undefined ? "" : ` (${via})`}${said}`;
    case "refused": return `a decision of ${who} was refused: ${text ?? detail ?? "no reason is known"}`;
    case "expired": return `expired${detail === undefined ? "" : `: ${detail}`}`;
    case "withdrawn": return `withdrawn${detail === undefined ? "" : `: ${detail}`}`;
  }
}
