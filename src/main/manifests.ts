/**
 * Owns: the build step that reads every agent and every tool once and writes what all apps but the worker see of them:
 * dist/agents/manifests.json. It fails the build when an agent names a tool or a script that does not exist, when a script is
 * broken, and when two agents wait for the same event type: the later one would never get it.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { AgentDefinition } from "../agent/definition.js";
import { checkManifests, loadAgents, loadKeptVersions, loadTools, type ManifestFile } from "../agent/loader.js";
import { Problem } from "../contracts/problems.js";
import { didYouMean } from "../contracts/suggest.js";
import { loadScripts } from "../model/script-folder.js";
import { builtinTools } from "../tools/builtin/index.js";

/** Reads compiled agents and tools below `agentsDir` and writes `outFile`. Throws Problem `config_invalid`. */
export async function writeManifests(agentsDir: string, outFile: string): Promise<ManifestFile> {
  const agents = await loadAgents(agentsDir);
  const tools = await loadTools([agentsDir], builtinTools());
  const file: ManifestFile = {
    tools: [...tools.values()].map((tool) => tool.manifest).sort((a, b) => (a.name < b.name ? -1 : 1)),
    agents: [...agents, ...await loadKeptVersions(agentsDir, agents)].map(({ name, version, tools: names }) => ({ name, version, tools: [...names] })),
  };
  checkManifests(file);
  mkdirSync(dirname(outFile), { recursive: true });
  writeFileSync(outFile, `${JSON.stringify(file, null, 2)}\n`);
  return file;
}

/** Every `scripted:<name>` has its script, and no two agents have a trigger of the same type. Throws Problem `config_invalid` with all that is wrong. */
export function checkAgents(agents: readonly Pick<AgentDefinition, "name" | "model" | "triggers">[], scripts: readonly string[]): void {
  const known = [...scripts, "echo"];
  const faults: string[] = [];
  const takers = new Map<string, string>();
  for (const { name, model, triggers } of agents) {
    const script = model?.startsWith("scripted:") === true ? model.slice("scripted:".length) : undefined;
    if (script !== undefined && !known.includes(script)) faults.push(`agent ${name}: its model "scripted:${script}" has no script${didYouMean(script, known)}; write agents/${name}/script.yaml`);
    for (const type of new Set(triggers.flatMap((trigger) => trigger.types))) {
      const first = takers.get(type);
      if (first !== undefined) faults.push(`agent ${name}: waits for "${type}", which agent ${first} takes already; only one of them can get it`);
      takers.set(type, first ?? name);
    }
  }
  if (faults.length > 0) throw new Problem("config_invalid", `the agents have ${String(faults.length)} faults:\n${faults.map((fault) => `  ${fault}`).join("\n")}`);
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const agentsDir = join(dirname(fileURLToPath(import.meta.url)), "../../agents");
  try {
    checkAgents(await loadAgents(agentsDir), [...loadScripts(join(agentsDir, "../../agents")).keys()]);
    const { agents, tools } = await writeManifests(agentsDir, join(agentsDir, "manifests.json"));
    process.stdout.write(`${String(agents.length)} agents, ${String(tools.length)} tools\n`);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
