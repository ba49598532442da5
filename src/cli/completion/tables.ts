/**
 * Owns: the tree as shell functions that bash and zsh both read, and the walk along the words that were typed. Each leaves its answer in `found`: lines of `name<TAB>about`, or for values
 * `words:a b`, `commas:a b`, `files`, `folders`, `live:sessions`, `anything`; where there is none it fails.
 */
import { quoted } from "../../contracts/shell-word.js";
import type { Flag, Place, Values } from "./tree.js";

export function shellTables(places: readonly Place[]): string {
  const [root] = places;
  const everywhere = root?.flags ?? [];
  const values = (path: string, flags: readonly Flag[]): [string, string][] => flags.flatMap(({ names, value }) => value === undefined ? [] : names.map((name): [string, string] => [`${path} ${name}`.trim(), valueText(value)]));
  return [
    table("_docket_commands", places.filter(({ commands }) => commands.length > 0).map(({ path, commands }) => [path.join(" "), lines(commands)])),
    table("_docket_flags", places.map(({ path, flags }) => [path.join(" "), lines([...flags, ...(path.length === 0 ? [] : everywhere)].flatMap(({ names, about }) => names.map((name) => ({ name, about }))))])),
    `# The value of an option: its command's own, or one that holds everywhere.\n_docket_value() { _docket_values "$1 $2" || _docket_values "$2"; }`,
    table("_docket_values", places.flatMap(({ path, flags }) => values(path.join(" "), flags))),
    table("_docket_argument", places.flatMap(({ path, args, variadic }) => args.map((value, at): [string, string] => [`${path.join(" ")} ${variadic && at === args.length - 1 ? "*" : String(at)}`, valueText(value)]))),
    `# Whether these words are a command.\n_docket_known() { _docket_flags "$1"; }`,
    STEP,
  ].join("\n");
}

const STEP = shell`# Takes a word that stands before the one to complete: goes on in at (the command so far), option (one that waits for its value) and position (arguments so far).
_docket_step() {
  if [[ -n "$option" ]]; then option=""
  elif [[ "$1" == --*=* ]]; then :
  elif [[ "$1" == -?* ]]; then if _docket_value "$at" "$1"; then option="$1"; fi
  elif _docket_known "\${at:+$at }$1"; then at="\${at:+$at }$1"
  else position=$((position + 1)); fi
}`;

function table(name: string, rows: readonly (readonly [string, string])[]): string {
  return `${name}() {\n  case "$1" in\n${rows.map(([key, value]) => `    ${pattern(key)}) found=${quoted(value)} ;;`).join("\n")}\n    *) found=""; return 1 ;;\n  esac\n}`;
}

/** A key as a pattern; a star at its end stands for any number. */
function pattern(key: string): string { return key.endsWith(" *") ? `${quoted(key.slice(0, -1))}*` : quoted(key); }

function lines(rows: readonly { readonly name: string; readonly about: string }[]): string { return rows.map(({ name, about }) => `${name}\t${about.replaceAll("\t", " ")}`).join("\n"); }

function valueText(value: Values): string {
  switch (value.kind) {
    case "words": case "commas": return `${value.kind}:${value.words.join(" ")}`;
    case "live": return `live:${value.of}`;
    case "files": case "folders": case "anything": return value.kind;
  }
}

/** Shell code as it is written: `\\${x}` is the shell's own. */
export function shell(code: TemplateStringsArray): string { return (code.raw[0] ?? "").replaceAll("\\${", "${"); }
