/**
 * Owns: from what a tool gave back to the text that is stored and shown: serialised, without secrets (I13), well-formed,
 * capped. Never throws: the effect has happened, whatever its answer looks like.
 */
import { stringifyLossless } from "../contracts/json.js";

export interface OutputText { readonly output: string; readonly truncated: boolean }

const MAX_MESSAGE_BYTES = 2000;
/** Shorter values would censor ordinary words. */
const MIN_SECRET_LENGTH = 6;

/** `secrets`: values the tool was given in this run; they are cut out of its answer. */
export function outputText(value: unknown, capBytes: number, secrets: ReadonlyMap<string, string>): OutputText {
  return cap(censor(serialise(value), secrets), capBytes);
}

/** An error's message for the model, the journal and people. */
export function messageText(error: unknown, secrets: ReadonlyMap<string, string>): string {
  let message: string;
  try {
    message = error instanceof Error ? error.message : String(error);
  } catch {
    message = "an error that cannot be shown";
  }
  return cap(censor(message, secrets), MAX_MESSAGE_BYTES).output;
}

function serialise(value: unknown): string {
  if (typeof value === "string") return value;
  try {
    return stringifyLossless(value);
  } catch (error) {
    return `[the tool's answer has no JSON form: ${error instanceof Error ? error.message : "unknown reason"}]`;
  }
}

function censor(text: string, secrets: ReadonlyMap<string, string>): string {
  let result = text;
  for (const [name, value] of secrets) {
    if (value.length >= MIN_SECRET_LENGTH) result = result.replaceAll(value, `[secret ${name}]`);
  }
  return result;
}

/** NUL is refused by PostgreSQL, lone surrogates by strict JSON readers: both become U+FFFD. Cut between characters. */
function cap(text: string, capBytes: number): OutputText {
  // A string of n UTF-16 units has at least n bytes: what lies beyond the cap need not be encoded.
  const bytes = Buffer.from(text.slice(0, capBytes + 1).replaceAll("\0", "\uFFFD"), "utf8");
  if (bytes.length <= capBytes) return { output: bytes.toString("utf8"), truncated: false };
  let end = capBytes;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return { output: bytes.subarray(0, end).toString("utf8"), truncated: true };
}
