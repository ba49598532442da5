/**
 * Owns: finding what users wrote. Agents are read by every app, tool code by the worker only, manifests (written by
 * src/main/manifests.ts at build time) by everybody else. All faults are reported at once, each with its file.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import { Problem } from "../contracts/problems.js";
import { ToolManifest } from "../contracts/tools.js";
import { defineAgent } from "./define-agent.js";
import { isTool } from "./define-tool.js";
import type { AgentDefinition, Tool } from "./definition.js";
import type { Fault } from "./definition-error.js";
import { suggestion } from "../contracts/suggest.js";

/** dist/agents/manifests.json. */
export const ManifestFile = z.object({
  tools: z.array(ToolManifest),
  agents: z.array(z.object({ name: z.string(), version: z.string(), tools: z.array(z.string()) })),
});
export type ManifestFile = z.infer<typeof ManifestFile>;

const BUILD_HINT = "run `npm run build`";

/** Imports `<dir>/<name>/agent.js` for every folder that has one; each exports `agent`. Throws Problem `config_invalid`. */
export async function loadAgents(dir: string): Promise<AgentDefinition[]> {
  const files = folders(dir).map((folder) => join(dir, folder, "agent.js")).filter((file) => existsSync(file));
  return await imported(files, (agent, others) => (others.some((other) => other.name === agent.name) ? `agent "${agent.name}" is defined twice` : undefined));
}

/** Imports `<dir>/<name>/versions/*.js`: versions of the `agents` that are installed for sessions which keep theirs. Throws Problem `config_invalid`. */
export async function loadKeptVersions(dir: string, agents: readonly AgentDefinition[]): Promise<AgentDefinition[]> {
  const files = folders(dir).flatMap((folder) => jsFiles(join(dir, folder, "versions")));
  return await imported(files, (agent, others) => {
    const named = [...agents, ...others].filter((other) => other.name === agent.name);
    if (named.length === 0) return `is a version of agent "${agent.name}", which is not installed`;
    return named.some((other) => other.version === agent.version) ? `version "${agent.version}" of agent "${agent.name}" is defined twice` : undefined;
  });
}

async function imported(files: readonly string[], faultOf: (agent: AgentDefinition, others: readonly AgentDefinition[]) => string | undefined): Promise<AgentDefinition[]> {
  const faults: Fault[] = [];
  const agents: AgentDefinition[] = [];
  for (const file of files) {
    try {
      const module = await importFile(file);
      if (module["agent"] === undefined) throw new Error(`does not export \`agent\`; write: export const agent = defineAgent({...})`);
      const agent = defineAgent(module["agent"] as AgentDefinition);
      const fault = faultOf(agent, agents);
      if (fault !== undefined) throw new Error(fault);
      agents.push(agent);
    } catch (error) {
      faults.push({ path: file, message: messageOf(error) });
    }
  }
  refuse("the agents", faults);
  return agents;
}

/**
 * Imports every tool module (`<dir>/<agent>/tools/*.js`) and adds `builtins`. Worker only. A module may export helpers too,
 * but must export at least one tool. Names are unique. Throws Problem `config_invalid`.
 */
export async function loadTools(dirs: readonly string[], builtins: readonly Tool[] = []): Promise<Map<string, Tool>> {
  const faults: Fault[] = [];
  const tools = new Map<string, Tool>(builtins.map((tool) => [tool.manifest.name, tool]));
  const origin = new Map<string, string>(builtins.map((tool) => [tool.manifest.name, "a built-in tool"]));
  for (const file of dirs.flatMap(toolFiles)) {
    try {
      const found = new Set(Object.values(await importFile(file)).filter(isTool));
      if (found.size === 0) throw new Error("exports no tool; write: export const myTool = defineTool({...})");
      for (const tool of found) {
        const { name } = tool.manifest;
        const first = origin.get(name);
        if (first !== undefined) throw new Error(`tool "${name}" is already defined by ${first}; tool names are unique in the whole installation`);
        tools.set(name, tool);
        origin.set(name, file);
      }
    } catch (error) {
      faults.push({ path: file, message: messageOf(error) });
    }
  }
  refuse("the tools", faults);
  return tools;
}

/** Every agent's tools must exist and every name be unique. Throws Problem `config_invalid` with all that do not. */
export function checkManifests(file: ManifestFile): void {
  const names = file.tools.map((tool) => tool.name);
  const faults: Fault[] = names.filter((name, i) => names.indexOf(name) !== i).map((name) => ({ path: `tool ${name}`, message: "is defined twice; tool names are unique in the whole installation" }));
  for (const agent of file.agents) {
    for (const tool of agent.tools) {
      if (!names.includes(tool)) faults.push({ path: `agent ${agent.name}`, message: `names the tool "${tool}", which does not exist${suggestion(tool, names)}` });
    }
  }
  refuse("the manifests", faults);
}

/** Reads and checks the manifest file. Throws Problem `config_invalid`. */
export function loadManifests(file: string): ManifestFile {
  if (!existsSync(file)) throw new Problem("config_invalid", `the manifest file ${file} does not exist`, { hint: BUILD_HINT });
  let raw: unknown;
  try {
    raw = JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new Problem("config_invalid", `the manifest file ${file} is not JSON: ${messageOf(error)}`, { hint: BUILD_HINT, cause: error });
  }
  const parsed = ManifestFile.safeParse(raw);
  if (!parsed.success) {
    refuse(`the manifest file ${file}`, parsed.error.issues.map((issue) => ({ path: issue.path.map(String).join("."), message: issue.message })));
    throw new Problem("config_invalid", `the manifest file ${file} does not fit`);
  }
  checkManifests(parsed.data);
  return parsed.data;
}

function folders(dir: string): string[] {
  if (!existsSync(dir)) return [];
  return readdirSync(dir, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map((entry) => entry.name).sort();
}

function toolFiles(dir: string): string[] {
  return folders(dir).flatMap((folder) => jsFiles(join(dir, folder, "tools")));
}

function jsFiles(dir: string): string[] {
  if (!existsSync(dir)) return [];
  return readdirSync(dir).filter((name) => name.endsWith(".js") && !name.startsWith("_")).sort().map((name) => join(dir, name));
}

async function importFile(file: string): Promise<Record<string, unknown>> {
  return (await import(pathToFileURL(file).href)) as Record<string, unknown>;
}

function refuse(what: string, faults: readonly Fault[]): void {
  if (faults.length === 0) return;
  throw new Problem("config_invalid", `${what} cannot be used: ${faults.map((fault) => `${fault.path}: ${fault.message}`).join("; ")}`, { errors: [...faults], hint: "see docs/writing-an-agent.md" });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
