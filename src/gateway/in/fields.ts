/** Owns: careful looks into foreign JSON: a field has the wanted kind or is not there. */
import { SessionId } from "../../contracts/ids.js";
import { Problem } from "../../contracts/problems.js";
import type { Incoming } from "./accept.js";
import { parseBodyJson } from "./body.js";

/** What a verified delivery is: an event, or nothing to do with its reason. */
export type Delivery = { readonly incoming: Incoming } | { readonly ignored: string; readonly detail: string };

/** A JSON object, digits kept. Throws Problem. */
export function parseBodyObject(text: string): Record<string, unknown> {
  const value = parseBodyJson(text);
  if (!isObject(value)) throw new Problem("validation_failed", "the delivery's body is not a JSON object");
  return value;
}

/** The object in a field. */
export function objectAt(parent: Record<string, unknown> | undefined, field: string): Record<string, unknown> | undefined {
  const value = parent === undefined || !Object.hasOwn(parent, field) ? undefined : parent[field];
  return isObject(value) ? value : undefined;
}

/** The non-empty text in a field. */
export function textAt(parent: Record<string, unknown> | undefined, field: string): string | undefined {
  const value = parent === undefined || !Object.hasOwn(parent, field) ? undefined : parent[field];
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** The text in a field, where it can be an event's subject: visible ASCII that may be a session id. */
export function subjectAt(parent: Record<string, unknown> | undefined, field: string): string | undefined {
  const text = textAt(parent, field);
  return text !== undefined && /^[\x21-\x7e]+$/.test(text) && SessionId.safeParse(text).success ? text : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
