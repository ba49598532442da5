/** Owns: the address bar. Every view has an address; links are ordinary links that stay inside the page. */
import { Store } from "./store.js";
import { useStore } from "./use-store.js";

export interface Place { readonly path: readonly string[]; readonly query: URLSearchParams }

const place = new Store<Place>(read());
window.addEventListener("popstate", () => { place.set(read()); });

export function usePlace(): Place { return useStore(place); }

/** Goes to an address of this console. `replace`: without a step for the back button. */
export function go(to: string, how: "push" | "replace" = "push"): void {
  if (to === location.pathname + location.search) return;
  if (how === "push") history.pushState(null, "", to);
  else history.replaceState(null, "", to);
  place.set(read());
}

/** The present address with other query values; an empty one is left out. */
export function withQuery(values: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(location.search);
  for (const [key, value] of Object.entries(values)) {
    if (value === "") query.delete(key);
    else query.set(key, value);
  }
  const text = query.toString();
  return location.pathname + (text === "" ? "" : `?${text}`);
}

/** Lets plain clicks on inner links stay in the page. */
export function followLinks(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (link === null || link.origin !== location.origin || link.target !== "" || link.hasAttribute("download")) return;
  event.preventDefault();
  go(link.pathname + link.search);
}

export const to = {
  approval: (id: string): string => `/approvals/${encodeURIComponent(id)}`,
  session: (id: string): string => `/sessions/${encodeURIComponent(id)}`,
  letter: (id: string): string => `/dead-letters/${encodeURIComponent(id)}`,
};

function read(): Place {
  const path = location.pathname.split("/").filter((part) => part !== "").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { path, query: new URLSearchParams(location.search) };
}
