/** Owns: folders with the real agents and one of test/fixtures, for DOCKET_AGENTS_DIR and DOCKET_SCRIPTS_DIR. */
import { mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { writeManifests } from "../../src/main/manifests.js";
import { REPO_ROOT } from "./cluster.js";

/** Below the checkout, so that imports resolve. `real`: agents of the checkout that come along. */
export async function agentsWith(home: string, fixture: { readonly folder: string; readonly name: string }, real: readonly string[]): Promise<{ agentsDir: string; scriptsDir: string }> {
  const [agentsDir, scriptsDir] = [join(home, "agents"), join(home, "scripts")];
  for (const name of real) {
    for (const dir of [agentsDir, scriptsDir]) mkdirSync(join(dir, name), { recursive: true });
    symlinkSync(join(REPO_ROOT, "dist/agents", name, "agent.js"), join(agentsDir, name, "agent.js"));
    symlinkSync(join(REPO_ROOT, "dist/agents", name, "tools"), join(agentsDir, name, "tools"));
    symlinkSync(join(REPO_ROOT, "agents", name, "script.yaml"), join(scriptsDir, name, "script.yaml"));
  }
  const from = join(REPO_ROOT, "test/fixtures", fixture.folder);
  mkdirSync(join(agentsDir, fixture.name, "tools"), { recursive: true });
  mkdirSync(join(scriptsDir, fixture.name), { recursive: true });
  symlinkSync(join(from, "agent.mjs"), join(agentsDir, fixture.name, "agent.js"));
  for (const file of readdirSync(join(from, "tools"))) symlinkSync(join(from, "tools", file), join(agentsDir, fixture.name, "tools", file.replace(/\.mjs$/, ".js")));
  symlinkSync(join(from, "script.yaml"), join(scriptsDir, fixture.name, "script.yaml"));
  await writeManifests(agentsDir, join(agentsDir, "manifests.json"));
  return { agentsDir, scriptsDir };
}
