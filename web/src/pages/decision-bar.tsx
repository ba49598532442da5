/** Owns: the buttons of a decision. Approving takes two presses; Enter alone never sends anything. */
import type { JSX } from "preact";
import type { ApprovalRecord } from "../../../src/contracts/decisions.js";
import type { DecisionKind } from "../../../src/contracts/tools.js";
import type { Deciding } from "../lib/decision.js";
import { NoteField } from "../parts/note-field.js";
import { mayBeRemembered, whyNotRemembered } from "../lib/who-may.js";

interface Choice { readonly kind: DecisionKind; readonly name: string; readonly keys: string; readonly how: "press" | "ask"; readonly sure?: string; readonly look?: string }

const CHOICES: readonly Choice[] = [
  { kind: "approve", name: "Approve", keys: "a a", how: "press", sure: "Press again to approve", look: "go" },
  { kind: "modify", name: "Modify", keys: "m", how: "ask" },
  { kind: "respond", name: "Respond", keys: "r", how: "ask" },
  { kind: "raise", name: "Raise limits", keys: "", how: "ask" },
  { kind: "retry", name: "Try again", keys: "", how: "press", sure: "Press again to retry", look: "go" },
  { kind: "reject", name: "Reject", keys: "x", how: "ask", look: "stop" },
  { kind: "give_up", name: "Give up", keys: "", how: "ask", look: "stop" },
];

/** `keyed`: the page has the keys that the buttons name. */
export function DecisionBar({ record, obstacle, deciding, keyed = true }: { record: ApprovalRecord; obstacle: string | undefined; deciding: Deciding; keyed?: boolean }): JSX.Element {
  const { phase } = deciding;
  const armed = phase.at === "armed" ? phase.kind : undefined;
  const onlyThis = whyNotRemembered(record);
  const choices = CHOICES.filter(({ kind }) => record.allowed.includes(kind));
  const choose = (choice: Choice): void => {
    if (choice.how === "ask") deciding.ask(choice.kind);
    else deciding.press(choice.kind, "pointer");
  };
  return <footer class="bar" aria-label="Decide">
    {obstacle === undefined ? null : <p class="bar-note" role="note">You cannot decide this: {obstacle}.</p>}
    {obstacle === undefined && choices.some(({ how }) => how === "press") ? <NoteField deciding={deciding} /> : null}
    <div class="bar-buttons">{choices.map((choice) => <button key={choice.kind} type="button" disabled={obstacle !== undefined || phase.at === "sending"} data-kind={choice.kind}
      class={`decide ${choice.look ?? ""} ${armed === choice.kind ? "armed" : ""}`} onClick={() => { choose(choice); }}
      onKeyDown={(event) => { if (event.key === "Enter" && armed === choice.kind) event.preventDefault(); }}>
      {armed === choice.kind ? choice.sure : choice.name}{choice.keys === "" || !keyed ? null : <kbd aria-hidden="true">{choice.keys}</kbd>}</button>)}
      {mayBeRemembered(record) ? <button type="button" class="decide" disabled={obstacle !== undefined || phase.at === "sending"} onClick={() => { deciding.ask("approve", { remember: true }); }}>Approve for this session…<kbd aria-hidden="true">o</kbd></button> : null}</div>
    {onlyThis === undefined ? null : <p class="bar-only">This call only. Allowing the tool for the session: {onlyThis}.</p>}
    <span class="sr" role="status">{armed === undefined ? "" : `Armed: press again within six seconds to ${armed}. Escape cancels.`}</span>
  </footer>;
}
