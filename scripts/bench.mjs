/** `npm run bench`: measures Docket on the real stack (bench/README.md). Everything after `--` goes to bench/main.ts, e.g. `npm run bench -- --help`. */
import { join } from "node:path";
import { ensureBuilt, ensureRuntime, requireNode, ROOT, runTypeScript } from "./lib.mjs";

requireNode();
process.exitCode = await runTypeScript(join(ROOT, "bench", "main.ts"), ({ runtime }) => {
  ensureBuilt();
  if (runtime) ensureRuntime();
});
