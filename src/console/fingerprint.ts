/**
 * Owns: which dead letters died of the same thing. Kind, reason, app, tool, event type, and the message without what differs from
 * case to case (ids, numbers, quoted values): what one cause has killed is one group, redriven together once it is mended.
 */
import { sha256Hex } from "../contracts/ids.js";
import type { DeadLetter } from "../contracts/messages.js";

const MAX_MESSAGE = 300;
/** A shorter one may be a part of any word. */
const SHORTEST_ID = 4;

export function fingerprintOf(letter: DeadLetter): string {
  const { kind, reason, app, topic, tool, envelope, message } = letter;
  return `fp_${sha256Hex(JSON.stringify([kind, reason, app, topic, tool ?? "", envelope?.type ?? "", shapeOf(message, ownIds(letter))])).slice(0, 16)}`;
}

/** What names this case and no other, the longest first: one may be a part of another. Ids of users' own need not have a digit. */
function ownIds({ deadLetterId, sessionId, actorId, runId, callId, envelope }: DeadLetter): string[] {
  return [deadLetterId, sessionId, actorId, runId, callId, envelope?.id, envelope?.subject].flatMap((id) => (id === undefined || id.length < SHORTEST_ID ? [] : [id])).sort((a, b) => b.length - a.length);
}

function shapeOf(message: string, ids: readonly string[]): string {
  return ids.reduce((text, id) => text.replaceAll(id, "#"), message.slice(0, MAX_MESSAGE * 4))
    .replace(/"[^"]*"|'[^']*'|`[^`]*`/g, "«»")
    // Any word with a digit in it: ids, times, amounts, addresses.
    .replace(/[\p{L}\p{N}_.:#/@-]*\p{N}[\p{L}\p{N}_.:#/@-]*/gu, "#")
    .replace(/\s+/g, " ").trim().slice(0, MAX_MESSAGE);
}
