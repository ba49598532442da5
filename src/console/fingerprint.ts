/**
 * Owns: which dead letters died of the same thing. Kind, reason, app, tool, event type, and the message without what differs from
 * case to case (ids, numbers, quoted values): what one cause has killed is one group, redriven together once it is mended.
 */
import { sha256Hex } from "../contracts/ids.js";
import type { DeadLetter } from "../contracts/messages.js";

const MAX_MESSAGE = 300;

export function fingerprintOf(letter: DeadLetter): string {
  const { kind, reason, app, topic, tool, envelope, message } = letter;
  return `fp_${sha256Hex(JSON.stringify([kind, reason, app, topic, tool ?? "", envelope?.type ?? "", shapeOf(message)])).slice(0, 16)}`;
}

function shapeOf(message: string): string {
  return message.slice(0, MAX_MESSAGE * 4)
    .replace(/"[^"]*"|'[^']*'|`[^`]*`/g, "«»")
    // Any word with a digit in it: ids, times, amounts, addresses.
    .replace(/[\p{L}\p{N}_.:#/@-]*\p{N}[\p{L}\p{N}_.:#/@-]*/gu, "#")
    .replace(/\s+/g, " ").trim().slice(0, MAX_MESSAGE);
}
