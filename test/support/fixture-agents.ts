/** Owns: folders with the real agents and some of test/fixtures, for DOCKET_AGENTS_DIR and DOCKET_SCRIPTS_DIR. */
import { existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { writeManifests } from "../../src/main/manifests.js";
import { REPO_ROOT } from "./cluster.js";

export interface Fixture { readonly folder: string; readonly name: string }

/** Below the checkout, so that imports resolve. `real`: agents of the checkout that come along. */
export async function agentsWith(home: string, fixtures: readonly Fixture[], real: readonly string[]): Promise<{ agentsDir: string; scriptsDir: string }> {
  const [agentsDir, scriptsDir] = [join(home, "agents"), join(home, "scripts")];
  for (const name of real) {
    for (const dir of [agentsDir, scriptsDir]) mkdirSync(join(dir, name), { recursive: true });
    symlinkSync(join(REPO_ROOT, "dist/agents", name, "agent.js"), join(agentsDir, name, "agent.js"));
    symlinkSync(join(REPO_ROOT, "dist/agents", name, "tools"), join(agentsDir, name, "tools"));
    symlinkSync(join(REPO_ROOT, "agents", name, "script.yaml"), join(scriptsDir, name, "script.yaml"));
  }
  for (const { folder, name } of fixtures) {
    const from = join(REPO_ROOT, "test/fixtures", folder);
    mkdirSync(join(agentsDir, name, "tools"), { recursive: true });
    symlinkSync(join(from, "agent.mjs"), join(agentsDir, name, "agent.js"));
    if (existsSync(join(from, "tools"))) for (const file of readdirSync(join(from, "tools"))) symlinkSync(join(from, "tools", file), join(agentsDir, name, "tools", file.replace(/\.mjs$/, ".js")));
    if (!existsSync(join(from, "script.yaml"))) continue;
    mkdirSync(join(scriptsDir, name), { recursive: true });
    symlinkSync(join(from, "script.yaml"), join(scriptsDir, name, "script.yaml"));
  }
  await writeManifests(agentsDir, join(agentsDir, "manifests.json"));
  return { agentsDir, scriptsDir };
}
