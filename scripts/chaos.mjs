/** `npm run chaos`: builds what is missing, then runs test/chaos. Imports nothing outside Node before the dependencies are installed. */
import { join } from "node:path";
import { ensureBuilt, ensureRuntime, requireNode, ROOT, runTypeScript } from "./lib.mjs";

requireNode();
process.exit(await runTypeScript(join(ROOT, "test", "chaos", "main.ts"), () => {
  ensureBuilt();
  ensureRuntime();
}));
