/** Owns: approving a call and, with it, further calls of its tool in this session: for how long, how often, and for which arguments. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { ApprovalListItem } from "../../../src/contracts/api.js";
import type { Remember } from "../../../src/contracts/decisions.js";
import { DOUBLE_CLICK_MS, type Deciding } from "../lib/decision.js";
import { canonicalText, inline, isObject, parseLossless } from "../lib/json.js";
import { plural } from "../lib/words.js";
import { Dialog, Json } from "../parts/basics.js";
import { NoteField } from "../parts/note-field.js";

const TIMES: readonly (readonly [number, string])[] = [[15 * 60_000, "15 minutes"], [3_600_000, "1 hour"], [8 * 3_600_000, "8 hours"], [86_400_000, "1 day"], [7 * 86_400_000, "7 days"]];
const MAX_WHERE = 500;

export function RememberDialog({ item, deciding }: { item: ApprovalListItem; deciding: Deciding }): JSX.Element {
  const { args, record: { tool = "" } } = item.pending;
  const values = useMemo(() => objectOf(args), [args]);
  const names = Object.keys(values);
  // The narrowest is the start: whoever wants more says so.
  const [same, setSame] = useState<ReadonlySet<string>>(new Set(names));
  const [forMs, setForMs] = useState(3_600_000);
  const [uses, setUses] = useState("5");
  const [armedAtMs, setArmedAtMs] = useState<number>();
  const where = same.size === 0 ? undefined : canonicalText(Object.fromEntries(Object.entries(values).filter(([name]) => same.has(name))));
  const fault = uses.trim() !== "" && !/^([1-9]\d{0,2}|1000)$/.test(uses.trim()) ? `${uses} is not a whole number from 1 to 1000.` : (where?.length ?? 0) > MAX_WHERE ? `These arguments are longer than ${plural(MAX_WHERE, "character")} together: tick fewer.` : undefined;
  const change = (act: () => void): void => { setArmedAtMs(undefined); act(); };
  const tick = (name: string): void => { change(() => { const next = new Set(same); if (!next.delete(name)) next.add(name); setSame(next); }); };
  const send = (): void => {
    if (armedAtMs === undefined) { setArmedAtMs(Date.now()); return; }
    if (Date.now() - armedAtMs < DOUBLE_CLICK_MS) return;
    const remember: Remember = { forMs, ...(uses.trim() === "" ? {} : { uses: Number(uses) }), ...(where === undefined ? {} : { where }) };
    deciding.send("approve", { remember });
  };
  const armed = armedAtMs !== undefined;
  return <Dialog title={`Approve ${tool} for this session`} onClose={deciding.dismiss}>
    <p>This call runs as shown. Further calls of <span class="code">{tool}</span> in <bdi>{item.pending.sessionId}</bdi> then run <b>without asking anybody</b>, within what you say here. It can be taken back on the session's page.</p>
    <Json text={args} label="Arguments" />
    {names.length === 0 ? null : <fieldset class="scope"><legend>These arguments must be the same</legend>{names.map((name) => <label key={name} class="tick"><input type="checkbox" checked={same.has(name)} onChange={() => { tick(name); }} /> <span class="code">{name}</span> <bdi class="quiet code clip">{inline(values[name])}</bdi></label>)}</fieldset>}
    {same.size === 0 ? <p class="fault">Any arguments at all: what this session asks the tool for next, nobody sees beforehand.</p> : null}
    <label class="field"><span>For how long</span><select value={String(forMs)} onChange={(event) => { const next = Number(event.currentTarget.value); change(() => { setForMs(next); }); }}>{TIMES.map(([ms, words]) => <option key={ms} value={String(ms)}>{words}</option>)}</select></label>
    <label class="field"><span>For how many calls (empty: any number)</span><input inputMode="numeric" autoComplete="off" value={uses} onInput={(event) => { const next = event.currentTarget.value; change(() => { setUses(next); }); }} /></label>
    <NoteField deciding={deciding} />
    {fault === undefined ? null : <p class="fault" role="alert">{fault}</p>}
    <div class="dialog-buttons"><button type="button" onClick={deciding.dismiss}>Cancel</button>
      <button type="button" class={`go ${armed ? "armed" : ""}`} disabled={fault !== undefined} onClick={send} onKeyDown={(event) => { if (event.key === "Enter" && armed) event.preventDefault(); }}>{armed ? "Press again to approve and allow" : "Approve and allow"}</button></div>
  </Dialog>;
}

function objectOf(args: string): Readonly<Record<string, unknown>> {
  try {
    const value = parseLossless(args);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
