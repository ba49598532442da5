/** Owns: what changed between the arguments that were proposed and those that a person makes of them. Numbers differ when their digits do. */
import { canonicalText } from "./json.js";
import { inline, isObject, kindOf, pathText, type JsonKind, type Path } from "./json-edit.js";

export interface Change {
  readonly path: string;
  readonly kind: "added" | "removed" | "changed";
  /** JSON text of both sides, where there are both. */
  readonly before?: string;
  readonly after?: string;
  /** The type changed too: almost always a slip. */
  readonly retyped?: { readonly from: JsonKind; readonly to: JsonKind };
}

/** Changes in the order of the keys; empty where both say the same. */
export function diff(before: unknown, after: unknown, path: Path = []): Change[] {
  if (canonicalText(before) === canonicalText(after)) return [];
  if (isObject(before) && isObject(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
    return keys.flatMap((key) => {
      if (!Object.hasOwn(before, key)) return [added([...path, key], after[key])];
      return Object.hasOwn(after, key) ? diff(before[key], after[key], [...path, key]) : [removed([...path, key], before[key])];
    });
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    return Array.from({ length: Math.max(before.length, after.length) }, (_, index) => index).flatMap((index) => {
      if (index >= before.length) return [added([...path, index], after[index])];
      return index < after.length ? diff(before[index], after[index], [...path, index]) : [removed([...path, index], before[index])];
    });
  }
  const [from, to] = [kindOf(before), kindOf(after)];
  return [{ path: pathText(path), kind: "changed", before: inline(before), after: inline(after), ...(from === to ? {} : { retyped: { from, to } }) }];
}

function added(path: Path, value: unknown): Change { return { path: pathText(path), kind: "added", after: inline(value) }; }
function removed(path: Path, value: unknown): Change { return { path: pathText(path), kind: "removed", before: inline(value) }; }
