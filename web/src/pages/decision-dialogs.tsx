/** Owns: decisions that need words: reject, respond, give up, raise. Modify has a file of its own. */
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { ApprovalListItem } from "../../../src/contracts/api.js";
import type { DecisionKind, ToolManifest } from "../../../src/contracts/tools.js";
import type { Deciding } from "../lib/decision.js";
import { Dialog, Json } from "../parts/basics.js";
import { ModifyDialog } from "./modify.js";

interface Props { readonly kind: DecisionKind; readonly item: ApprovalListItem; readonly tool: ToolManifest | undefined; readonly deciding: Deciding }

export function DecisionDialog({ kind, item, tool, deciding }: Props): JSX.Element | null {
  switch (kind) {
    case "modify": return <ModifyDialog item={item} tool={tool} deciding={deciding} />;
    case "reject": return <TextDialog title={`Reject ${item.pending.record.tool ?? "this"}`} label="Reason" help="The model reads it, and the audit keeps it." send="Reject" required kind={kind} deciding={deciding} item={item} />;
    case "give_up": return <TextDialog title="Give up" label="Reason" help="The run ends as escalated; the audit keeps the reason." send="Give up" required={false} kind={kind} deciding={deciding} item={item} />;
    case "respond": return <TextDialog title={`Respond for ${item.pending.record.tool ?? "this"}`} label="Your answer" help="The tool does not run: the model gets this text as the call's result. To refuse, use Reject." send="Respond" required kind={kind} deciding={deciding} item={item} />;
    case "raise": return <RaiseDialog deciding={deciding} />;
    case "approve": case "retry": return null;
  }
}

function TextDialog({ title, label, help, send, required, kind, deciding, item }: { title: string; label: string; help: string; send: string; required: boolean; kind: DecisionKind; deciding: Deciding; item: ApprovalListItem }): JSX.Element {
  const [text, setText] = useState("");
  const blocked = required && text.trim() === "";
  return <Dialog title={title} onClose={deciding.dismiss}>
    {item.pending.args === "" ? null : <Json text={item.pending.args} label="Arguments" />}
    <label class="field"><span>{label}{required ? "" : " (optional)"}</span><textarea rows={4} maxLength={20_000} value={text} autoFocus onInput={(event) => { setText(event.currentTarget.value); }} /></label>
    <p class="quiet">{help}</p>
    <div class="dialog-buttons"><button type="button" onClick={deciding.dismiss}>Cancel</button><button type="button" class={kind === "respond" ? "go" : "stop"} disabled={blocked} onClick={() => { deciding.send(kind, text.trim() === "" ? {} : { text }); }}>{send}</button></div>
  </Dialog>;
}

function RaiseDialog({ deciding }: { deciding: Deciding }): JSX.Element {
  const budget = useRef<HTMLInputElement>(null);
  const steps = useRef<HTMLInputElement>(null);
  const [fault, setFault] = useState("");
  const send = (): void => {
    const budgetUsd = budget.current?.value.trim() ?? "";
    const maxSteps = steps.current?.value.trim() ?? "";
    if (budgetUsd === "" && maxSteps === "") { setFault("Give a new budget or a new number of steps."); return; }
    if (budgetUsd !== "" && !(Number(budgetUsd) > 0 && Number.isFinite(Number(budgetUsd)))) { setFault(`The budget ${budgetUsd} is not an amount of dollars above 0.`); return; }
    if (maxSteps !== "" && !/^[1-9]\d{0,5}$/.test(maxSteps)) { setFault(`${maxSteps} is not a whole number of steps above 0.`); return; }
    deciding.send("raise", { raise: { ...(budgetUsd === "" ? {} : { budgetUsd: Number(budgetUsd) }), ...(maxSteps === "" ? {} : { maxSteps: Number(maxSteps) }) } });
  };
  return <Dialog title="Raise the run's limits" onClose={deciding.dismiss}>
    <label class="field"><span>New budget of the run, in dollars</span><input ref={budget} inputMode="decimal" autoFocus /></label>
    <label class="field"><span>New number of steps</span><input ref={steps} inputMode="numeric" /></label>
    {fault === "" ? null : <p class="fault" role="alert">{fault}</p>}
    <div class="dialog-buttons"><button type="button" onClick={deciding.dismiss}>Cancel</button><button type="button" class="go" onClick={send}>Raise and go on</button></div>
  </Dialog>;
}
