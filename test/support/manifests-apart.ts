/** Owns: the manifests of a folder of agents, written by a process of its own: tool code is compiled code, which a TypeScript loader would take apart. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { REPO_ROOT } from "./cluster.js";

/** Writes `manifests.json` into the folder. */
export function writeManifestsApart(agentsDir: string): void {
  const write = `import { writeManifests } from ${JSON.stringify(join(REPO_ROOT, "dist/src/main/manifests.js"))}; await writeManifests(process.argv[1], process.argv[2]);`;
  execFileSync(process.execPath, ["--input-type=module", "-e", write, agentsDir, join(agentsDir, "manifests.json")]);
}
