/** Owns: keyboard shortcuts. Off while typing, while a dialog is open, with a modifier, and for a key that is held down. */
import { useEffect, useRef } from "preact/hooks";

export type Keys = Readonly<Record<string, () => void>>;

export function useKeys(keys: Keys): void {
  const newest = useRef(keys);
  newest.current = keys;
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.repeat || event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]") !== null) return;
      const act = newest.current[event.key];
      if (act === undefined) return;
      event.preventDefault();
      act();
    };
    document.addEventListener("keydown", onKey);
    return () => { document.removeEventListener("keydown", onKey); };
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
}
