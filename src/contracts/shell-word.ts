/** Owns: texts as words of a shell's command line. What is printed to be copied is one argument, whatever is in it: ids come from senders too. */

/** In single quotes, as every shell here reads it. */
export function quoted(text: string): string { return `'${text.replaceAll("'", "'\\''")}'`; }

/** `docket session tail ord-1`, to be copied: an id with a `;` is no second command, and one with a `-` no option. */
export function sessionCommand(verb: string, sessionId: string, ...more: readonly string[]): string {
  const id = /^[\w.:@%+/=,-]+$/.test(sessionId) ? sessionId : quoted(sessionId);
  return [`docket session ${verb}`, ...(sessionId.startsWith("-") ? [...more, "--", id] : [id, ...more])].join(" ");
}
