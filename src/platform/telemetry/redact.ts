/** Owns: what of a prompt, an answer or arguments may leave in a span, where somebody asked for it: bounded, and without what looks like a secret (I13). */

const MAX_CHARS = 8_192;
const GONE = "[redacted]";
/** Fields whose value is never said, by name. */
const SECRET_FIELD = /("(?:[\w-]*(?:password|passwd|secret|token|api[_-]?key|authorization|cookie|credential|private[_-]?key)[\w-]*)"\s*:\s*)("(?:[^"\\]|\\.)*"|[^\s,}\]]+)/gi;
/** Values that are secrets by their look: bearer tokens, JWTs, keys of the large providers, PEM blocks, passwords in addresses. */
const SECRET_LOOKS = [
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  /\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g,
  /\b(?:Bearer|Basic)\s+[\w.~+/=-]{8,}/gi,
  /\b(?:sk|pk|rk|whsec|dk)[-_][\w-]{12,}/g,
  /\b(?:gh[opsur]|github_pat|glpat|xox[abprs])[-_][\w-]{10,}/g,
  /\bAKIA[0-9A-Z]{16}\b/g,
  /\b(?:\d[ -]?){13,19}\b/g,
];
const PASSWORD_IN_URL = /(\b[a-z][a-z0-9+.-]*:\/\/[^\s:/@]+:)[^\s@/]+@/gi;

/** The text as a span may carry it. */
export function redacted(text: string): string {
  const cut = text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}…[${String(text.length)} characters]` : text;
  const named = cut.replace(SECRET_FIELD, (_whole, field: string) => `${field}"${GONE}"`).replace(PASSWORD_IN_URL, `$1${GONE}@`);
  return SECRET_LOOKS.reduce((rest, look) => rest.replace(look, GONE), named);
}
