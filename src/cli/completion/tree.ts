/** Owns: what can be typed where, read from the command tree itself: commands, options, and what their values and arguments may be. The shells' scripts are made of it. */
import type { Argument, Command, Option } from "commander";
import { SESSION_STATUSES } from "../../contracts/journal.js";
import { SCOPES } from "../scopes.js";
import type { LiveKind } from "./live.js";

/** What may stand in a place: words, some of them with commas, paths, what the console knows by name, or anything. */
export type Values =
  | { readonly kind: "words" | "commas"; readonly words: readonly string[] }
  | { readonly kind: "files" | "folders" | "anything" }
  | { readonly kind: "live"; readonly of: LiveKind };
export interface Flag { /** `-o`, `--output`. */ readonly names: readonly string[]; readonly about: string; /** Undefined: it takes no value. */ readonly value: Values | undefined }
export interface Place {
  /** The words that lead here, without `docket`. */
  readonly path: readonly string[];
  readonly commands: readonly { readonly name: string; readonly about: string }[];
  /** Its own; those of the root hold everywhere. */
  readonly flags: readonly Flag[];
  readonly args: readonly Values[];
  /** The last argument can be given again. */
  readonly variadic: boolean;
}

/** Every place of the tree, the root first. */
export function placesOf(command: Command, path: readonly string[] = []): Place[] {
  const help = command.createHelp();
  const children = help.visibleCommands(command);
  const args = command.registeredArguments;
  const own: Place = {
    path, commands: children.map((child) => ({ name: child.name(), about: firstLine(child.description()) })), flags: help.visibleOptions(command).map(flagOf),
    args: args.map((arg) => argumentValues(path[0] ?? "", arg)), variadic: args.at(-1)?.variadic === true,
  };
  return [own, ...children.filter((child) => command.commands.includes(child)).flatMap((child) => placesOf(child, [...path, child.name()]))];
}

/** Options whose value is some of these, with commas. */
const COMMAS: Readonly<Record<string, readonly string[]>> = { "--status": SESSION_STATUSES, "--scopes": SCOPES };
/** Options whose value names something that the console knows. */
const LIVE_FLAGS: Readonly<Record<string, LiveKind>> = { "--session": "sessions", "--agent": "agents", "--tool": "tools", "--fingerprint": "fingerprints" };
/** First arguments that do, by the group of commands. */
const LIVE_ARGS: Readonly<Record<string, LiveKind>> = { "session ID": "sessions", "approval ID": "approvals", "dlq ID": "letters", "agent NAME": "agents", "tool NAME": "tools", "view NAME": "views" };

function flagOf(option: Option): Flag {
  const names = [option.short, option.long].filter((name) => name !== undefined);
  return { names, about: firstLine(option.description), value: option.required || option.optional ? flagValues(option) : undefined };
}

function flagValues(option: Option): Values {
  if (option.argChoices !== undefined) return { kind: "words", words: option.argChoices };
  const name = option.long ?? "";
  const commas = COMMAS[name], live = LIVE_FLAGS[name];
  if (commas !== undefined) return { kind: "commas", words: commas };
  return live === undefined ? pathValues(/[<[](\w+)/.exec(option.flags)?.[1] ?? "") : { kind: "live", of: live };
}

function argumentValues(group: string, arg: Argument): Values {
  if (arg.argChoices !== undefined) return { kind: "words", words: arg.argChoices };
  const live = LIVE_ARGS[`${group} ${arg.name()}`];
  return live === undefined ? pathValues(arg.name()) : { kind: "live", of: live };
}

function pathValues(placeholder: string): Values { return { kind: placeholder === "FILE" ? "files" : placeholder === "DIR" ? "folders" : "anything" }; }

function firstLine(text: string): string { return (text.split("\n")[0] ?? "").trim(); }
