/**
 * Owns: changing JSON values at a path, and saying where and what, for people; digits kept (I5). Values are what `parseLossless` gives: numbers stay
 * their text. What an eye cannot see (bidi controls, zero-width and control characters) is written as an escape, which is the same JSON.
 */
import { isLosslessNumber } from "lossless-json";
import { canonicalText } from "./json.js";

export type JsonObject = Record<string, unknown>;
type Key = string | number;
export type Path = readonly Key[];
export type JsonKind = "object" | "array" | "string" | "number" | "boolean" | "null";

/** Characters that show as nothing, or change how others show; the emoji form of a pictogram is no secret. */
const UNSEEN = /(?![\t\n]|(?<=\p{Extended_Pictographic})\ufe0f)[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Text with the unseen made visible as `\uXXXX`. Tabs and line ends stay. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (char) => Array.from({ length: char.length }, (_, i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, "0")}`).join(""));
}

/** One line of JSON, for diffs and lists. */
export function inline(value: unknown): string { return visible(canonicalText(value)); }

export function kindOf(value: unknown): JsonKind {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "array";
  if (isLosslessNumber(value) || typeof value === "number" || typeof value === "bigint") return "number";
  if (typeof value === "string") return "string";
  return typeof value === "boolean" ? "boolean" : "object";
}

export function isObject(value: unknown): value is JsonObject { return kindOf(value) === "object"; }

/** A copy with `value` at `path`; objects and arrays on the way are copied, nothing else changes. */
export function setAt(root: unknown, path: Path, value: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  if (Array.isArray(root)) return root.map((item: unknown, index) => (index === key ? setAt(item, rest, value) : item));
  const source = isObject(root) ? root : {};
  return { ...source, [key]: setAt(source[key], rest, value) };
}

/** A copy without what is at `path`. */
export function removeAt(root: unknown, path: Path): unknown {
  const key = path[path.length - 1];
  if (key === undefined) return root;
  const parent = getAt(root, path.slice(0, -1));
  if (Array.isArray(parent)) return setAt(root, path.slice(0, -1), parent.filter((_, index) => index !== key));
  if (!isObject(parent)) return root;
  return setAt(root, path.slice(0, -1), Object.fromEntries(Object.entries(parent).filter(([name]) => name !== key)));
}

function getAt(root: unknown, path: Path): unknown {
  return path.reduce<unknown>((at, key) => (Array.isArray(at) ? at[key as number] : isObject(at) ? at[key] : undefined), root);
}

/** `a.b[2]`, for people. */
export function pathText(path: Path): string {
  return path.map((key, index) => (typeof key === "number" ? `[${String(key)}]` : /^[\w-]+$/.test(key) ? `${index === 0 ? "" : "."}${key}` : `[${visible(JSON.stringify(key))}]`)).join("") || "(whole)";
}
