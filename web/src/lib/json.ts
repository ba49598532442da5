/** Owns: JSON as the pages show it, digits kept (I5); what an eye cannot see is written as an escape. */
import { stringify } from "lossless-json";
import { canonicalText, LosslessNumber, parseLossless } from "../../../src/contracts/json.js";
import { inline, isObject, kindOf, pathText, removeAt, setAt, visible, type JsonObject, type Path } from "../../../src/contracts/json-edit.js";

export { canonicalText, inline, isObject, kindOf, LosslessNumber, parseLossless, pathText, removeAt, setAt, visible, type JsonObject, type Path };

/** Indented JSON of JSON text; what is no JSON comes back as it is, made visible. */
export function pretty(text: string): string {
  try {
    return prettyValue(parseLossless(text));
  } catch {
    return visible(text);
  }
}

export function prettyValue(value: unknown): string { return visible(stringify(value, undefined, 2) ?? "null"); }

/** The words of a message: the text of `{"text": …}`, everything else as it came. */
export function wordsOf(text: string): string {
  try {
    const value = parseLossless(text);
    return isObject(value) && Object.keys(value).length === 1 && typeof value["text"] === "string" ? value["text"] : text;
  } catch {
    return text;
  }
}
