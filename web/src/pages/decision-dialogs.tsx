/** Owns: decisions that need words: reject, respond, give up, raise. Modify has a file of its own. */
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { ApprovalListItem } from "../../../src/contracts/api.js";
import type { DecisionKind, ToolManifest } from "../../../src/contracts/tools.js";
import type { Deciding } from "../lib/decision.js";
import { Dialog, Json, Words } from "../parts/basics.js";
import { NoteField } from "../parts/note-field.js";
import { ModifyDialog } from "./modify.js";
import { RememberDialog } from "./remember.js";

interface Props { readonly kind: DecisionKind; readonly remember: boolean; readonly item: ApprovalListItem; readonly tool: ToolManifest | undefined; readonly deciding: Deciding }

export function DecisionDialog({ kind, remember, item, tool, deciding }: Props): JSX.Element | null {
  switch (kind) {
    case "modify": return <ModifyDialog item={item} tool={tool} deciding={deciding} />;
    case "reject": return <TextDialog title={`Reject ${item.pending.record.tool ?? "this"}`} label="Reason" help="The model reads it, and the audit keeps it." send="Reject" required kind={kind} deciding={deciding} item={item} />;
    case "give_up": return <TextDialog title="Give up" label="Reason" help="The run ends as escalated; the audit keeps the reason." send="Give up" required={false} kind={kind} deciding={deciding} item={item} />;
    case "respond": return <TextDialog title={`Respond for ${item.pending.record.tool ?? "this"}`} label="Your answer" help="The tool does not run: the model gets this text as the call's result. To refuse, use Reject." send="Respond" required kind={kind} deciding={deciding} item={item} />;
    case "raise": return <RaiseDialog item={item} deciding={deciding} />;
    case "approve": return remember ? <RememberDialog item={item} deciding={deciding} /> : null;
    case "retry": return null;
  }
}

function TextDialog({ title, label, help, send, required, kind, deciding, item }: { title: string; label: string; help: string; send: string; required: boolean; kind: DecisionKind; deciding: Deciding; item: ApprovalListItem }): JSX.Element {
  const [text, setText] = useState(kind === "respond" ? "" : deciding.note);
  const blocked = required && text.trim() === "";
  return <Dialog title={title} onClose={deciding.dismiss}>
    {item.pending.args === "" ? null : <Json text={item.pending.args} label="Arguments" />}
    <label class="field"><span>{label}{required ? "" : " (optional)"}</span><textarea rows={4} maxLength={20_000} value={text} autoFocus onInput={(event) => { setText(event.currentTarget.value); }} /></label>
    <p class="quiet">{help}</p>
    <div class="dialog-buttons"><button type="button" onClick={deciding.dismiss}>Cancel</button><button type="button" class={kind === "respond" ? "go" : "stop"} disabled={blocked} onClick={() => { deciding.send(kind, text.trim() === "" ? {} : { text }); }}>{send}</button></div>
  </Dialog>;
}

/** Which limit was reached comes first, and must be raised. */
function RaiseDialog({ item, deciding }: { item: ApprovalListItem; deciding: Deciding }): JSX.Element {
  const budget = useRef<HTMLInputElement>(null);
  const steps = useRef<HTMLInputElement>(null);
  const { escalation, question } = item.pending.record;
  const [fault, setFault] = useState("");
  const send = (): void => {
    const budgetUsd = budget.current?.value.trim() ?? "";
    const maxSteps = steps.current?.value.trim() ?? "";
    if (escalation === "budget" && budgetUsd === "") { setFault("The budget is used up: give a new one."); return; }
    if (escalation === "step_limit" && maxSteps === "") { setFault("The steps are used up: give a new number."); return; }
    if (budgetUsd === "" && maxSteps === "") { setFault("Give a new budget or a new number of steps."); return; }
    if (budgetUsd !== "" && !(Number(budgetUsd) > 0 && Number.isFinite(Number(budgetUsd)))) { setFault(`The budget ${budgetUsd} is not an amount of dollars above 0.`); return; }
    if (maxSteps !== "" && !/^[1-9]\d{0,5}$/.test(maxSteps)) { setFault(`${maxSteps} is not a whole number of steps above 0.`); return; }
    deciding.send("raise", { raise: { ...(budgetUsd === "" ? {} : { budgetUsd: Number(budgetUsd) }), ...(maxSteps === "" ? {} : { maxSteps: Number(maxSteps) }) } });
  };
  const budgetField = <label class="field"><span>New budget of the run, in dollars{escalation === "step_limit" ? " (optional)" : ""}</span><input ref={budget} inputMode="decimal" autoComplete="off" autoFocus={escalation !== "step_limit"} /></label>;
  const stepsField = <label class="field"><span>New number of steps{escalation === "budget" ? " (optional)" : ""}</span><input ref={steps} inputMode="numeric" autoComplete="off" autoFocus={escalation === "step_limit"} /></label>;
  return <Dialog title="Raise the run's limits" onClose={deciding.dismiss}>
    <p><Words text={question} max={600} /></p>
    {escalation === "step_limit" ? <>{stepsField}{budgetField}</> : <>{budgetField}{stepsField}</>}
    <NoteField deciding={deciding} />
    {fault === "" ? null : <p class="fault" role="alert">{fault}</p>}
    <div class="dialog-buttons"><button type="button" onClick={deciding.dismiss}>Cancel</button><button type="button" class="go" onClick={send}>Raise and go on</button></div>
  </Dialog>;
}
