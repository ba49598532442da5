/** Owns: where a browser goes after signing in: a page of this console, whatever was asked for. */

const HOME = "/approvals";
const NOWHERE = "http://docket.invalid";

/** The path to go to. Anything that is not plainly a path of this very console (`//evil`, `/\evil`, `https:evil`, `/..//evil`, control characters) becomes the first page. */
export function safeReturnTo(asked: unknown): string {
  if (typeof asked !== "string" || asked.length > 2_000 || !asked.startsWith("/") || /[\\\p{Cc}\p{Cf}\p{Z}]/u.test(asked) || !URL.canParse(asked, NOWHERE)) return HOME;
  const { origin, pathname, search } = new URL(asked, NOWHERE);
  if (origin !== NOWHERE || pathname.startsWith("//") || /^\/(session|v1|assets|sign-in|healthz|metrics)(\/|$)/.test(pathname)) return HOME;
  return pathname + search;
}
