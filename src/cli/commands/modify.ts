/**
 * Owns: new arguments for `docket approval modify`: in whole by `--args`, or some of what was asked changed by `--set` and `--unset`, which keep
 * everything else as it is, digits included (I5); and saying what changed, before it is sent.
 */
import { diff, type Change } from "../../contracts/json-diff.js";
import { canonicalText, parseLossless } from "../../contracts/json.js";
import { isObject, kindOf, pathText, removeAt, setAt, type Path } from "../../contracts/json-edit.js";
import { nearest } from "../../contracts/suggest.js";
import { textOrFile } from "../context.js";
import { CliError, EXIT } from "../exit.js";
import type { CliIo } from "../io.js";
import { fields, visible } from "../output.js";

export interface EditOptions { readonly args?: string; readonly set: readonly string[]; readonly unset: readonly string[] }
export interface Edited { /** Canonical JSON text. */ readonly args: string; readonly changes: readonly Change[] }

/** Throws CliError `usage` where nothing is asked for or nothing would change, `arguments_invalid` for what is no JSON or no place. */
export function editArguments(io: CliIo, shown: string, options: EditOptions): Edited {
  const before = jsonOf("what the approval shows", shown);
  if (options.args === undefined && options.set.length === 0 && options.unset.length === 0) throw new CliError(EXIT.usage, "usage", "nothing to modify", "--set PATH=JSON and --unset PATH change some arguments, --args JSON gives all of them anew");
  let after = options.args === undefined ? before : jsonOf("--args", textOrFile(io, options.args));
  for (const assignment of options.set) after = assign(after, assignment);
  for (const path of options.unset) after = remove(after, path);
  const changes = diff(before, after);
  if (changes.length === 0) throw new CliError(EXIT.usage, "usage", "these are the arguments that were asked for; nothing would change", "docket approval approve lets them run as they are");
  return { args: canonicalText(after), changes };
}

/** A line for each change: the place, what was there, what is there now. */
export function describeChanges(changes: readonly Change[]): string {
  return fields(changes.map(({ path, kind, before, after, retyped }) => [
    path, kind === "added" ? `added ${after ?? ""}` : kind === "removed" ? `removed, was ${before ?? ""}` : `${before ?? ""} -> ${after ?? ""}${retyped === undefined ? "" : `   (was a ${retyped.from}, is a ${retyped.to})`}`,
  ] as const));
}

/** JSON text, digits kept. Throws CliError `arguments_invalid`. */
export function jsonOf(what: string, text: string): unknown {
  try {
    return parseLossless(text);
  } catch (error) {
    throw new CliError(EXIT.invalid, "arguments_invalid", `${what} is not JSON: ${visible(error instanceof Error ? error.message : String(error))}`);
  }
}

function assign(root: unknown, assignment: string): unknown {
  const { path, rest } = readPath("--set", assignment);
  if (!rest.startsWith("=")) throw new CliError(EXIT.usage, "usage", `--set: got ${assignment}, expected PATH=JSON`, `docket approval modify apr_4f1c --set 'to.name="Ann"' --set amount=40`);
  const text = rest.slice(1);
  const place = pathText(path);
  let value: unknown;
  try {
    value = parseLossless(text);
  } catch (error) {
    throw new CliError(EXIT.invalid, "arguments_invalid", `--set ${place}: ${text} is not JSON: ${visible(error instanceof Error ? error.message : String(error))}`, `a text is written in quotes: --set '${place}=${JSON.stringify(text)}'`);
  }
  const key = path[path.length - 1] ?? "";
  const parent = parentOf("--set", root, path);
  if (typeof key === "string") {
    if (!isObject(parent)) throw noPlace("--set", path, `${pathText(path.slice(0, -1))} is a ${kindOf(parent)}, and has no keys`);
    return setAt(root, path, value);
  }
  if (!Array.isArray(parent)) throw noPlace("--set", path, `${pathText(path.slice(0, -1))} is a ${kindOf(parent)}, and has no numbered items`);
  if (key > parent.length) throw noPlace("--set", path, `it has ${String(parent.length)} items, and the next one would be [${String(parent.length)}]`);
  return key === parent.length ? setAt(root, path.slice(0, -1), [...parent as unknown[], value]) : setAt(root, path, value);
}

function remove(root: unknown, text: string): unknown {
  const { path, rest } = readPath("--unset", text);
  if (rest !== "") throw new CliError(EXIT.usage, "usage", `--unset: got ${text}, expected a path such as to.items[2]`);
  const parent = parentOf("--unset", root, path);
  childOf("--unset", parent, path, path.length - 1);
  return removeAt(root, path);
}

/** What holds the last key of a path: everything before it must be there, so that a slip of the pen makes no new argument. */
function parentOf(flag: string, root: unknown, path: Path): unknown {
  return path.slice(0, -1).reduce<unknown>((at, _key, index) => childOf(flag, at, path, index), root);
}

function childOf(flag: string, at: unknown, path: Path, index: number): unknown {
  const key = path[index] ?? "";
  if (Array.isArray(at) && typeof key === "number" && key < at.length) return at[key] as unknown;
  if (isObject(at) && typeof key === "string" && Object.hasOwn(at, key)) return at[key];
  const known = isObject(at) ? Object.keys(at) : [];
  const meant = typeof key === "string" ? nearest(key, known) : undefined;
  throw noPlace(flag, path.slice(0, index + 1), meant === undefined ? `the arguments have nothing there${known.length === 0 ? "" : `; there is ${known.slice(0, 10).join(", ")}`}` : `the arguments have nothing there; did you mean ${pathText([...path.slice(0, index), meant])}?`);
}

function noPlace(flag: string, path: Path, why: string): CliError { return new CliError(EXIT.invalid, "arguments_invalid", `${flag} ${pathText(path)}: ${why}`); }

/** `a.b[2]["odd key"]`, as the console writes it, and what follows. */
function readPath(flag: string, text: string): { path: (string | number)[]; rest: string } {
  const path: (string | number)[] = [];
  let rest = text;
  for (;;) {
    const step = /^(?:\[(\d{1,6})\]|\[("(?:[^"\\]|\\.)*")\])/.exec(rest) ?? (path.length === 0 ? /^()()([^.[\]="\s]+)/ : /^()()\.([^.[\]="\s]+)/).exec(rest);
    if (step === null) break;
    const [all, index, quoted, name] = step;
    path.push(index !== undefined && index !== "" ? Number(index) : quoted !== undefined && quoted !== "" ? String(jsonOf(flag, quoted)) : name ?? "");
    rest = rest.slice(all.length);
  }
  if (path.length === 0) throw new CliError(EXIT.usage, "usage", `${flag}: got ${text}, expected it to begin with a path such as to.items[2]`);
  return { path, rest };
}
