/** Owns: saved views: names for addresses. The address is the view; the console keeps the names, each person's own. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ApiError, post } from "../lib/api.js";
import { usePoll } from "../lib/poll.js";
import { usePlace } from "../lib/router.js";
import { Dialog } from "./basics.js";

interface View { readonly name: string; readonly address: string }

export function SavedViews({ page }: { page: string }): JSX.Element {
  const { query } = usePlace();
  const { value, refresh } = usePoll<{ readonly items: readonly View[] }>("/v1/views", 30_000);
  const [naming, setNaming] = useState(false);
  const text = query.toString();
  const here = page + (text === "" ? "" : `?${text}`);
  const views = value?.items.filter((view) => view.address.split("?")[0] === page) ?? [];
  const remove = (name: string): void => { void post(`/v1/views/${encodeURIComponent(name)}`, {}, "DELETE").then(refresh, refresh); };
  return <div class="views">
    {views.map((view) => <span key={view.name} class="chip"><a href={view.address} aria-current={view.address === here ? "true" : undefined}><bdi>{view.name}</bdi></a> <button type="button" class="link" aria-label={`Remove the view ${view.name}`} onClick={() => { remove(view.name); }}>×</button></span>)}
    {text === "" || views.some((view) => view.address === here) ? null : <button type="button" class="link" onClick={() => { setNaming(true); }}>Save this view</button>}
    {naming ? <NameDialog address={here} onClose={() => { setNaming(false); refresh(); }} /> : null}
  </div>;
}

function NameDialog({ address, onClose }: { address: string; onClose: () => void }): JSX.Element {
  const [name, setName] = useState("");
  const [fault, setFault] = useState("");
  const save = async (): Promise<void> => {
    try {
      await post("/v1/views", { name, address });
      onClose();
    } catch (error) {
      setFault(error instanceof ApiError ? error.message : String(error));
    }
  };
  return <Dialog title="Save this view" onClose={onClose}><form onSubmit={(event) => { event.preventDefault(); if (name.trim() !== "") void save(); }}>
    <label class="field"><span>Name</span><input maxLength={60} value={name} autoFocus onInput={(event) => { setName(event.currentTarget.value); }} /></label>
    <p class="quiet code">{address}</p>{fault === "" ? null : <p class="fault" role="alert">{fault}</p>}
    <div class="dialog-buttons"><button type="button" onClick={onClose}>Close</button><button type="submit" class="go" disabled={name.trim() === ""}>Save</button></div></form></Dialog>;
}
