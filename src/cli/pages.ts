/** Owns: which page of the web console shows what a command is about, so that an error can say where to look. */
import { EXIT, type CliError } from "./exit.js";

/** A group of commands: its list's address, and whether its first argument has a page of its own there. */
const PAGES: Readonly<Record<string, { readonly list: string; readonly items: boolean }>> = {
  session: { list: "/sessions", items: true }, approval: { list: "/approvals", items: true }, dlq: { list: "/dead-letters", items: true },
  policy: { list: "/policies", items: false }, audit: { list: "/audit", items: false }, agent: { list: "/agents", items: false }, tool: { list: "/agents", items: false },
  costs: { list: "/costs", items: false }, view: { list: "/sessions", items: false },
};
/** What is about the installation as a whole. */
const REST = "/system";

/** What a problem is about, where that is not what the command is about. */
const BY_CODE: Readonly<Record<string, string>> = { session_not_found: "/sessions", approval_not_found: "/approvals", dead_letter_not_found: "/dead-letters", unauthenticated: "/" };

/** The page's address within the console. What does not exist has no page of its own: its list has. */
export function pageFor({ words, id, failure }: { readonly words: readonly string[]; readonly id: string | undefined; readonly failure: Pick<CliError, "code" | "exitCode"> }): string {
  const byCode = BY_CODE[failure.code];
  if (byCode !== undefined) return byCode;
  const group = PAGES[words[0] ?? ""];
  if (group === undefined) return REST;
  return group.items && id !== undefined && failure.exitCode !== EXIT.notFound && failure.exitCode !== EXIT.usage ? `${group.list}/${encodeURIComponent(id)}` : group.list;
}
