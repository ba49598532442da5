/** Owns: what the open page is about, for the window's title. */
import { useEffect } from "preact/hooks";
import { Store } from "./store.js";

/** Where it is about one thing. */
export const subject = new Store("");

export function useSubject(text: string): void {
  useEffect(() => {
    subject.set(text);
    return () => { subject.set(""); };
  }, [text]);
}
