/** Owns: the buttons of a decision. Approving takes two presses; Enter alone never sends anything. */
import type { JSX } from "preact";
import type { ApprovalRecord } from "../../../src/contracts/decisions.js";
import type { DecisionKind } from "../../../src/contracts/tools.js";
import type { Deciding } from "../lib/decision.js";

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

export function DecisionBar({ record, obstacle, deciding }: { record: ApprovalRecord; obstacle: string | undefined; deciding: Deciding }): JSX.Element {
  const { phase } = deciding;
  const armed = phase.at === "armed" ? phase.kind : undefined;
  const choices = CHOICES.filter(({ kind }) => record.allowed.includes(kind));
  const choose = (choice: Choice): void => {
    if (choice.how === "ask") deciding.ask(choice.kind);
    else deciding.press(choice.kind, "pointer");
  };
  return <footer class="bar" aria-label="Decide">
    {obstacle === undefined ? null : <p class="bar-note" role="note">You cannot decide this: {obstacle}.</p>}
    <div class="bar-buttons">{choices.map((choice) => <button key={choice.kind} type="button" disabled={obstacle !== undefined || phase.at === "sending"} data-kind={choice.kind}
      class={`decide ${choice.look ?? ""} ${armed === choice.kind ? "armed" : ""}`} onClick={() => { choose(choice); }}
      onKeyDown={(event) => { if (event.key === "Enter" && armed === choice.kind) event.preventDefault(); }}>
      {armed === choice.kind ? choice.sure : choice.name}{choice.keys === "" ? null : <kbd aria-hidden="true">{choice.keys}</kbd>}</button>)}</div>
    <span class="sr" role="status">{armed === undefined ? "" : `Armed: press again within six seconds to ${armed}. Escape cancels.`}</span>
  </footer>;
}
