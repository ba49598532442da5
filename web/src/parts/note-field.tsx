/** Owns: the field for why somebody decides as they do. Optional, except where the model has to be told. */
import type { JSX } from "preact";
import type { Deciding } from "../lib/decision.js";

export function NoteField({ deciding: { note, setNote } }: { deciding: Deciding }): JSX.Element {
  return <label class="field note-field"><span>Why (optional)</span><input maxLength={2_000} autoComplete="off" placeholder="for the audit, and for whoever looks next" value={note} onInput={(event) => { setNote(event.currentTarget.value); }} /></label>;
}
