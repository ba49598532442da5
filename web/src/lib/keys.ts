/**
 * Owns: keyboard shortcuts. Off while typing, while a dialog is open, with a modifier, and for a key that is held down. One key press acts
 * once: after `g` the next key goes to a page and means nothing else (`g a` must not arm an approval).
 */
import { useEffect, useRef } from "preact/hooks";
import { Store } from "./store.js";

type Keys = Readonly<Record<string, () => void>>;

const LEADER = "g";
const LEADING_MS = 1_500;

/** `g` was pressed, and the next key says where to go. */
export const leading = new Store(false);

export function useKeys(keys: Keys): void { useListener((key) => (leading.get() ? undefined : keys[key])); }

/** Keys that count after `g`. Any other key ends the waiting and does nothing. */
export function useLeaderKeys(keys: Keys): void {
  useListener((key) => {
    if (leading.get()) return () => { leading.set(false); keys[key]?.(); };
    return key === LEADER ? () => { leading.set(true); window.setTimeout(() => { leading.set(false); }, LEADING_MS); } : undefined;
  });
}

function useListener(find: (key: string) => (() => void) | undefined): void {
  const newest = useRef(find);
  newest.current = find;
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.repeat || event.metaKey || event.ctrlKey || event.altKey || isTaken(event) || document.querySelector("dialog[open]") !== null) return;
      const act = newest.current(event.key);
      if (act === undefined) return;
      event.preventDefault();
      act();
    };
    document.addEventListener("keydown", onKey);
    return () => { document.removeEventListener("keydown", onKey); };
  }, []);
}

/** Somebody types, or Enter belongs to what has the focus. */
function isTaken({ target, key }: KeyboardEvent): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (key === "Enter" && target.closest("a, button, summary") !== null) return true;
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}
