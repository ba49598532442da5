/**
 * Owns: agents folders for e2e tests beside the real ones: an example built as its reader would build it (copied to agents/, compiled
 * with the sources that it imports), and fixtures. Below the checkout, so that compiled files find node_modules.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeManifests } from "../../src/main/manifests.js";
import { REPO_ROOT } from "./cluster.js";

/** Compiles `examples/<name>` below `home`; the folder with its `agent.js`. */
export function buildExample(name: string, home: string): string {
  const source = join(home, `source-${name}`);
  cpSync(join(REPO_ROOT, "examples", name), join(source, "agents", name), { recursive: true });
  for (const room of ["agent", "contracts"]) cpSync(join(REPO_ROOT, "src", room), join(source, "src", room), { recursive: true });
  writeFileSync(join(source, "package.json"), '{"type":"module"}');
  writeFileSync(join(source, "tsconfig.json"), JSON.stringify({ extends: join(REPO_ROOT, "tsconfig.json"), compilerOptions: { noEmit: false, rootDir: ".", outDir: "dist" }, include: ["src", "agents"] }));
  execFileSync(process.execPath, [join(REPO_ROOT, "node_modules/typescript/bin/tsc"), "-p", source], { stdio: "pipe" });
  return join(source, "dist/agents", name);
}

/** One agent of an installation: where its compiled files and its script are. */
export interface Installed { readonly name: string; readonly agent: string; readonly tools: Readonly<Record<string, string>>; readonly script: string }

/** Adds agents to the folders for DOCKET_AGENTS_DIR and DOCKET_SCRIPTS_DIR, and writes the manifests. `tools`: name in the folder to file. */
export async function install(folders: { readonly agentsDir: string; readonly scriptsDir: string }, agents: readonly Installed[]): Promise<void> {
  for (const { name, agent, tools, script } of agents) {
    mkdirSync(join(folders.agentsDir, name, "tools"), { recursive: true });
    mkdirSync(join(folders.scriptsDir, name), { recursive: true });
    symlinkSync(agent, join(folders.agentsDir, name, "agent.js"));
    for (const [file, path] of Object.entries(tools)) symlinkSync(path, join(folders.agentsDir, name, "tools", file));
    symlinkSync(script, join(folders.scriptsDir, name, "script.yaml"));
  }
  await writeManifests(folders.agentsDir, join(folders.agentsDir, "manifests.json"));
}
