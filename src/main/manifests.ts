/**
 * Owns: the build step that reads every agent and every tool once and writes what all apps but the worker see of them:
 * dist/agents/manifests.json. It fails the build when an agent names a tool that does not exist.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { checkManifests, loadAgents, loadTools, type ManifestFile } from "../agent/loader.js";
import { builtinTools } from "../tools/builtin/index.js";

/** Reads compiled agents and tools below `agentsDir` and writes `outFile`. Throws Problem `config_invalid`. */
export async function writeManifests(agentsDir: string, outFile: string): Promise<ManifestFile> {
  const agents = await loadAgents(agentsDir);
  const tools = await loadTools([agentsDir], builtinTools());
  const file: ManifestFile = {
    tools: [...tools.values()].map((tool) => tool.manifest).sort((a, b) => (a.name < b.name ? -1 : 1)),
    agents: agents.map(({ name, version, tools: names }) => ({ name, version, tools: [...names] })),
  };
  checkManifests(file);
  mkdirSync(dirname(outFile), { recursive: true });
  writeFileSync(outFile, `${JSON.stringify(file, null, 2)}\n`);
  return file;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const agentsDir = join(dirname(fileURLToPath(import.meta.url)), "../../agents");
  try {
    const { agents, tools } = await writeManifests(agentsDir, join(agentsDir, "manifests.json"));
    process.stdout.write(`${String(agents.length)} agents, ${String(tools.length)} tools\n`);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
