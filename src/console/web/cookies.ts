/** Owns: the two cookies of a browser (who is signed in, and which browser began a sign-in) and the rule that a write by cookie comes from this very origin. */
import type { Request } from "express";
import { Problem } from "../../contracts/problems.js";

/** TLS ends here, or at a proxy whose address browsers see. */
export function isSecure(req: Request, proxied: string | undefined): boolean { return req.secure || proxied?.startsWith("https:") === true; }

export function isRead(req: Request): boolean { return req.method === "GET" || req.method === "HEAD"; }

/**
 * Throws Problem `forbidden` unless the browser says that a page of this console sent the request: of the address that the browser called, or
 * of the one that a proxy in front shows.
 */
export function requireOwnOrigin(req: Request, proxied: string | undefined): void {
  const called = `${req.protocol}://${req.header("host") ?? ""}`;
  const from = req.header("origin");
  if (from !== undefined && (from === called || from === proxied)) return;
  throw new Problem("forbidden", `this write came from ${from ?? "no origin"}, expected ${proxied ?? called}`, { hint: "use the console's own pages, or an API key in the Authorization header; behind a proxy set DOCKET_CONSOLE_URL" });
}

/** `session` never leaves this site; `begun` must come along when the identity provider sends the browser back. */
const COOKIES = { session: { name: "docket", sameSite: "Strict" }, begun: { name: "docket-sign-in", sameSite: "Lax" } } as const;
type CookieName = keyof typeof COOKIES;

/** With TLS the name binds the cookie to this host and to TLS. */
function nameOf(which: CookieName, secure: boolean): string { return secure ? `__Host-${COOKIES[which].name}` : COOKIES[which].name; }

/** A Set-Cookie header; an empty value and no age take the cookie back. */
export function cookie(which: CookieName, secure: boolean, value: string, maxAgeS: number): string {
  return `${nameOf(which, secure)}=${value}; Path=/; HttpOnly; SameSite=${COOKIES[which].sameSite}; Max-Age=${String(maxAgeS)}${secure ? "; Secure" : ""}`;
}

export function readCookie(req: Request, which: CookieName, secure: boolean): string | undefined {
  const prefix = `${nameOf(which, secure)}=`;
  const pair = (req.header("cookie") ?? "").split(";").map((part) => part.trim()).find((part) => part.startsWith(prefix));
  const token = pair?.slice(prefix.length);
  return token !== undefined && /^[A-Za-z0-9_-]{20,100}$/.test(token) ? token : undefined;
}
