/**
 * Owns: JSON text that keeps its digits. JavaScript rounds integers above 2^53; a refund of id 9007199254740993 must
 * not become ...992 between the screen and the effect (I5). So payloads travel as text, and are re-read losslessly.
 */
import { isLosslessNumber, LosslessNumber, parse as losslessParse, stringify as losslessStringify } from "lossless-json";

/** Plain JSON as JavaScript sees it. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Deepest nesting that is read at all (I14: a bomb is refused, not recursed into). */
export const MAX_JSON_DEPTH = 64;

/**
 * Parses keeping digits. Throws SyntaxError for anything that is not one JSON value, that repeats a key with another value, that
 * nests too deeply, or that holds a number beyond a double's range: daprd reads numbers as doubles and can never deliver such an event.
 */
export function parseLossless(text: string): unknown {
  assertDepth(text);
  return losslessParse(text, undefined, (digits) => {
    assertRange(digits);
    return new LosslessNumber(digits);
  });
}

/** Serialises what `parseLossless` gave, digits kept. */
export function stringifyLossless(value: unknown): string {
  return losslessStringify(value) ?? "null";
}

/**
 * Canonical text: object keys sorted by UTF-16 code units (as RFC 8785 does), no white space, numbers with the
 * digits they came with. The digest of this text is what people approve.
 */
export function canonicalText(value: unknown): string {
  return losslessStringify(sortKeys(value)) ?? "null";
}

/** Canonical form of JSON text. Throws SyntaxError. */
export function canonicalize(text: string): string {
  return canonicalText(parseLossless(text));
}

/**
 * JSON text as the value a tool gets: numbers that a double holds exactly are numbers, larger integers are `bigint`.
 */
export function parseForUse(text: string): unknown {
  assertDepth(text);
  return losslessParse(text, undefined, (digits) => {
    assertRange(digits);
    const asNumber = Number(digits);
    if (/^-?\d+$/.test(digits) && !Number.isSafeInteger(asNumber)) return BigInt(digits);
    return asNumber;
  });
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (value === null || typeof value !== "object" || isLosslessNumber(value)) return value;
  const source = value as Record<string, unknown>;
  const sorted: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  for (const key of Object.keys(source).sort()) sorted[key] = sortKeys(source[key]);
  return sorted;
}

function assertRange(digits: string): void {
  if (!Number.isFinite(Number(digits))) throw new SyntaxError(`the number ${digits.length > 40 ? `${digits.slice(0, 40)}… (${String(digits.length)} characters)` : digits} is beyond the range of a double; send it as a string`);
}

function assertDepth(text: string): void {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i += 1) {
    const char = text.charCodeAt(i);
    if (inString) {
      if (char === 92) i += 1;
      else if (char === 34) inString = false;
    } else if (char === 34) inString = true;
    else if (char === 123 || char === 91) {
      depth += 1;
      if (depth > MAX_JSON_DEPTH) throw new SyntaxError(`JSON nests deeper than ${String(MAX_JSON_DEPTH)} levels`);
    } else if (char === 125 || char === 93) depth -= 1;
  }
}

export { LosslessNumber };
