/**
 * `npm run dev`: from a bare clone to a running Docket. Installs and builds what is missing, then hands over to the launcher.
 * Imports nothing outside Node: it runs before `npm ci`.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { BootstrapError, ensureBuilt, ensureInstalled, fail, requireNode, ROOT } from "./lib.mjs";

requireNode();
try {
  ensureInstalled();
  ensureBuilt();
} catch (error) {
  if (!(error instanceof BootstrapError)) throw error;
  fail(error.message, error.next);
}

const child = spawn(process.execPath, [join(ROOT, "dist", "src", "main", "dev.js"), ...process.argv.slice(2)], { cwd: ROOT, stdio: "inherit" });
// Ctrl-C reaches the launcher from the terminal; this process only waits for it to clean up. A TERM to us alone is passed on.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => child.kill("SIGTERM"));
process.on("SIGHUP", () => child.kill("SIGHUP"));
child.on("exit", (code, signal) => {
  process.exitCode = signal ? 1 : (code ?? 1);
});
