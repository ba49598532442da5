/** Owns: grouping dead letters: those that died of the same thing (one fingerprint) are one line. */
import type { DeadLetterItem } from "../../../src/contracts/api.js";

export interface LetterGroup { readonly fingerprint: string; readonly kind: string; readonly reason: string; readonly message: string; readonly items: readonly DeadLetterItem[]; readonly newestAtMs: number }

/** The session that a letter is about: what the session host said, else whom the event was addressed to. */
export function sessionOf({ letter }: DeadLetterItem): string | undefined { return letter.sessionId ?? letter.envelope?.subject; }

/** The group with the newest letter first. */
export function groupLetters(items: readonly DeadLetterItem[]): LetterGroup[] {
  const groups = new Map<string, DeadLetterItem[]>();
  for (const item of items) groups.set(item.fingerprint, [...(groups.get(item.fingerprint) ?? []), item]);
  return [...groups].map(([fingerprint, members]) => {
    const letter = members[0]?.letter;
    return { fingerprint, kind: letter?.kind ?? "", reason: letter?.reason ?? "", message: letter?.message ?? "", items: members, newestAtMs: Math.max(...members.map((item) => item.receivedAtMs)) };
  }).sort((a, b) => b.newestAtMs - a.newestAtMs);
}
