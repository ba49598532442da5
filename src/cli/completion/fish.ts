/** Owns: the script for fish, which is a list of what can be said where; fish itself knows what an option and its value are. */
import { quoted } from "../../contracts/shell-word.js";
import type { Flag, Place, Values } from "./tree.js";

export function fishScript(places: readonly Place[]): string {
  const [root, ...rest] = places;
  const everywhere = root?.flags ?? [];
  return [
    "# fish completion of docket, written by `docket completion fish`.",
    "# Once: docket completion fish > ~/.config/fish/completions/docket.fish",
    "function __docket_at --description 'whether the commands typed are these'",
    `  set -l known ${rest.map(({ path }) => word(path.join(" "))).join(" ")}`,
    `  set -l valued ${everywhere.filter(({ value }) => value !== undefined).flatMap(({ names }) => names).map(word).join(" ")}`,
    "  set -l at ''",
    "  set -l skip 0",
    "  for typed in (commandline -opc)[2..-1]",
    "    if test $skip = 1",
    "      set skip 0",
    "    else if string match -q -- '-*' $typed",
    "      contains -- $typed $valued; and set skip 1",
    "    else if contains -- (string trim -- \"$at $typed\") $known",
    "      set at (string trim -- \"$at $typed\")",
    "    else",
    "      break",
    "    end",
    "  end",
    "  test \"$at\" = \"$argv[1]\"",
    "end",
    "function __docket_live",
    "  docket __complete $argv[1] 2>/dev/null",
    "end",
    "complete -c docket -f",
    ...everywhere.map((flag) => flagLine(flag, "")),
    ...places.flatMap(({ path, commands, flags, args }) => {
      const when = ` -n ${word(`__docket_at ${word(path.join(" "))}`)}`;
      const [first] = args;
      return [
        ...commands.map(({ name, about }) => `complete -c docket${when} -a ${word(name)} -d ${word(about)}`), ...(path.length === 0 ? [] : flags.map((flag) => flagLine(flag, when))),
        ...(first === undefined || first.kind === "anything" ? [] : [`complete -c docket${when} ${valueWords(first)}`]),
      ];
    }),
  ].join("\n") + "\n";
}

function flagLine({ names, about, value }: Flag, when: string): string {
  const flags = names.map((name) => name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`).join(" ");
  return `complete -c docket${when} ${flags}${value === undefined ? "" : value.kind === "anything" ? " -x" : ` -r ${valueWords(value)}`} -d ${word(about)}`;
}

function valueWords(value: Values): string {
  switch (value.kind) {
    case "words": case "commas": return `-f -a ${word(value.words.join(" "))}`;
    case "live": return `-f -a ${word(`(__docket_live ${value.of})`)}`;
    case "files": return "-F";
    case "folders": return `-f -a '(__fish_complete_directories)'`;
    case "anything": return "-f";
  }
}

/** fish reads a backslash in single quotes as an escape. */
function word(text: string): string { return quoted(text.replaceAll("\\", "\\\\")).replaceAll("'\\''", "\\'"); }
