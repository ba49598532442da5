/**
 * Owns: changing a call's arguments: a form from the tool's schema, the same as JSON beside it, and what changed. What is sent is JSON text, so
 * that every digit arrives; the session validates it and runs policy on it again.
 */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { ApprovalListItem } from "../../../src/contracts/api.js";
import type { ToolManifest } from "../../../src/contracts/tools.js";
import { DOUBLE_CLICK_MS, type Deciding } from "../lib/decision.js";
import { diff, type Change } from "../../../src/contracts/json-diff.js";
import { canonicalText, parseLossless, prettyValue } from "../lib/json.js";
import { faultsOf, readJson } from "../lib/schema-form.js";
import { plural } from "../lib/words.js";
import { Dialog } from "../parts/basics.js";
import { NoteField } from "../parts/note-field.js";
import { SchemaForm } from "../parts/schema-form.js";

export function ModifyDialog({ item, tool, deciding }: { item: ApprovalListItem; tool: ToolManifest | undefined; deciding: Deciding }): JSX.Element {
  const original = useMemo(() => parseLossless(item.pending.args), [item.pending.args]);
  const [value, setValue] = useState(original);
  const [json, setJson] = useState<{ text: string; message: string | undefined }>({ text: prettyValue(original), message: undefined });
  const [unreadable, setUnreadable] = useState<readonly string[]>([]);
  const [sureSinceMs, setSureSinceMs] = useState<number>();
  const sure = sureSinceMs !== undefined;
  const schema = tool?.inputSchema ?? {};
  const changes = diff(original, value);
  const faults = [...(json.message === undefined ? [] : [`JSON: ${json.message}`]), ...unreadable, ...faultsOf(schema, value)];

  const change = (next: unknown): void => { setSureSinceMs(undefined); setValue(next); setJson({ text: prettyValue(next), message: undefined }); };
  const typeJson = (text: string): void => {
    const read = readJson(text);
    setSureSinceMs(undefined);
    setJson({ text, message: read.ok ? undefined : read.message });
    if (read.ok) setValue(read.value);
  };
  const send = (): void => {
    if (sureSinceMs === undefined) setSureSinceMs(Date.now());
    else if (Date.now() - sureSinceMs >= DOUBLE_CLICK_MS) deciding.send("modify", { args: canonicalText(value) });
  };
  return <Dialog title={`Modify ${item.pending.record.tool ?? ""}`} wide onClose={deciding.dismiss}>
    <div class="modify">
      <section aria-label="Form"><SchemaForm schema={schema} value={value} onChange={change} onUnreadable={setUnreadable} /></section>
      <section><label class="field"><span>As JSON</span><textarea class="code json-edit" spellcheck={false} value={json.text} onInput={(event) => { typeJson(event.currentTarget.value); }} /></label></section>
    </div>
    <Changes changes={changes} />
    {faults.length === 0 ? null : <ul class="faults" role="alert">{faults.slice(0, 8).map((fault) => <li key={fault}>{fault}</li>)}</ul>}
    <NoteField deciding={deciding} />
    <div class="dialog-buttons"><span class="quiet grow">The session checks schema and policy again.</span><button type="button" onClick={deciding.dismiss}>Cancel</button>
      <button type="button" class={`go ${sure ? "armed" : ""}`} disabled={faults.length > 0 || changes.length === 0} onClick={send}
        onKeyDown={(event) => { if (event.key === "Enter" && sure) event.preventDefault(); }}>{sure ? "Press again to approve the changes" : "Approve with changes"}</button></div>
  </Dialog>;
}

function Changes({ changes }: { changes: readonly Change[] }): JSX.Element {
  return <section class="changes" aria-label="What changed" aria-live="polite"><h3>{changes.length === 0 ? "Nothing has changed yet" : plural(changes.length, "change")}</h3>
    {changes.length === 0 ? null : <ul>{changes.map((change) => <li key={change.path}>
      <span class="code change-path">{change.path}</span>
      {change.before === undefined ? null : <del class="code">{change.before}</del>}
      {change.after === undefined ? <span class="quiet">removed</span> : <ins class="code">{change.after}</ins>}
      {change.retyped === undefined ? null : <span class="fault">now a {change.retyped.to}, was a {change.retyped.from}</span>}
    </li>)}</ul>}
  </section>;
}
