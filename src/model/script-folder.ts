/** Owns: finding scripts: `<folder>/<name>/script.yaml`, `.yml` or `.json` is `scripted:<name>`. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { parseForUse } from "../contracts/json.js";
import { Problem } from "../contracts/problems.js";
import { parseScript, type Script } from "./script.js";

const FILES = ["script.yaml", "script.yml", "script.json"];

/** All scripts of a folder of agents. Throws Problem `config_invalid` with the file that is broken. */
export function loadScripts(folder: string): Map<string, Script> {
  const scripts = new Map<string, Script>();
  for (const { agent, file } of scriptFiles(folder)) {
    const script = parseScript(readData(file), file);
    const name = script.name ?? agent;
    if (scripts.has(name)) throw new Problem("config_invalid", `two scripts are named "${name}"; the second is ${file}`, { hint: "give one of them another `name`" });
    scripts.set(name, script);
  }
  return scripts;
}

function scriptFiles(folder: string): { agent: string; file: string }[] {
  const agents = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map((entry) => entry.name).sort();
  return agents.flatMap((agent) => readdirSync(join(folder, agent)).filter((name) => FILES.includes(name)).map((name) => ({ agent, file: join(folder, agent, name) })));
}

/** Large integers become bigint, so that a script can say 9007199254740993 and mean it. */
function readData(file: string): unknown {
  const text = readFileSync(file, "utf8");
  try {
    return file.endsWith(".json") ? parseForUse(text) : smallNumbers(parse(text, { intAsBigInt: true }));
  } catch (error) {
    throw new Problem("config_invalid", `the script ${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

function smallNumbers(value: unknown): unknown {
  if (typeof value === "bigint") return BigInt(Number(value)) === value && Number.isSafeInteger(Number(value)) ? Number(value) : value;
  if (Array.isArray(value)) return value.map(smallNumbers);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, smallNumbers(member)]));
}
