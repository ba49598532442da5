/** `npm run bench`: measures Docket on the real stack (bench/README.md). Everything after `--` goes to bench/main.ts, e.g. `npm run bench -- --help`. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { ensureBuilt, ensureInstalled, requireNode, ROOT } from "./lib.mjs";

requireNode();
ensureInstalled();
ensureBuilt();
const runtime = spawnSync(process.execPath, [join(ROOT, "dist", "src", "main", "runtime.js")], { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] });
if (runtime.status !== 0) process.exit(1);
// The bench shares TypeScript with the tests, so it is loaded as they are.
const { createServer } = await import("vite");
const vite = await createServer({ root: ROOT, configFile: false, logLevel: "error", appType: "custom", server: { middlewareMode: true, hmr: false, ws: false, watch: null } });
try {
  const { main } = await vite.ssrLoadModule(join(ROOT, "bench", "main.ts"));
  process.exitCode = await main(process.argv.slice(2));
} finally {
  await vite.close();
}
