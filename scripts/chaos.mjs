/**
 * `npm run chaos`: builds what is missing, then runs test/chaos (TypeScript, loaded by vite as vitest loads the tests).
 * Imports nothing outside Node before the dependencies are installed.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { BootstrapError, ensureBuilt, ensureInstalled, fail, requireNode, ROOT } from "./lib.mjs";

requireNode();
const onlyTalks = process.argv.slice(2).some((word) => ["--help", "-h", "--list", "--plan"].includes(word));
try {
  ensureInstalled();
  if (!onlyTalks) {
    ensureBuilt();
    const runtime = spawnSync(process.execPath, [join(ROOT, "dist", "src", "main", "runtime.js")], { cwd: ROOT, stdio: "inherit" });
    if (runtime.status !== 0) throw new BootstrapError("There is no Dapr runtime to run on.", "The lines above say why.");
  }
} catch (error) {
  if (!(error instanceof BootstrapError)) throw error;
  fail(error.message, error.next);
}

const { createServer } = await import("vite");
// Nothing is served: it stays open because the run imports agents when it starts.
const vite = await createServer({ configFile: false, root: ROOT, logLevel: "error", appType: "custom", optimizeDeps: { noDiscovery: true }, server: { middlewareMode: true, hmr: false, ws: false, watch: null } });
const { main } = await vite.ssrLoadModule(join(ROOT, "test", "chaos", "main.ts"));
const code = await main(process.argv.slice(2));
await vite.close();
process.exit(code);
