/**
 * What the bootstrap scripts share. Imports nothing outside Node: it runs before `npm ci`.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

const MIN_NODE = [20, 19];

/** Ends the process with a message and what to do next. */
export function fail(message, next, code = 1) {
  process.stderr.write(`\n${message}\n  -> ${next}\n`);
  process.exit(code);
}

/** Ends the process unless Node is new enough. */
export function requireNode() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major > MIN_NODE[0] || (major === MIN_NODE[0] && minor >= MIN_NODE[1])) return;
  fail(`Docket needs Node ${MIN_NODE.join(".")} or newer; this is ${process.versions.node} (${process.execPath}).`, "Install a current Node (https://nodejs.org) and start again.");
}

/** A step of the bootstrap that failed, with what to do next. */
export class BootstrapError extends Error {
  constructor(message, next) {
    super(message);
    this.next = next;
  }
}

/** Runs npm in the repository; throws a BootstrapError when it fails. */
export function npm(args, why) {
  process.stdout.write(`${why}: npm ${args.join(" ")}\n`);
  const isWindows = process.platform === "win32";
  const result = spawnSync(isWindows ? "npm.cmd" : "npm", args, { cwd: ROOT, stdio: "inherit", shell: isWindows });
  if (result.error) throw new BootstrapError(`npm could not be started: ${result.error.message}`, "npm comes with Node: check that it is on PATH.");
  if (result.status !== 0) throw new BootstrapError(`npm ${args.join(" ")} failed (exit code ${result.status}).`, "Its output above says why.");
}

/** Installs the dependencies when they are missing or older than the lock file. */
export function ensureInstalled() {
  const installed = mtimeMs(join(ROOT, "node_modules", ".package-lock.json"));
  if (installed >= mtimeMs(join(ROOT, "package-lock.json"))) return;
  npm(["ci", "--no-audit", "--no-fund"], installed === 0 ? "Installing dependencies" : "The lock file is newer than node_modules");
}

/** Compiles to dist/ when it is missing or older than any source. */
export function ensureBuilt() {
  const built = mtimeMs(join(ROOT, "dist", "src", "main", "dev.js"));
  const stamp = Math.max(built, mtimeMs(join(ROOT, "dist", ".tsbuildinfo")), mtimeMs(join(ROOT, "dist", "web", "index.html")));
  const sources = ["src", "agents", "web"].map((dir) => newestUnder(join(ROOT, dir))).concat(mtimeMs(join(ROOT, "tsconfig.json")), mtimeMs(join(ROOT, "package-lock.json")));
  const web = mtimeMs(join(ROOT, "dist", "web", "index.html"));
  if (built > 0 && web > 0 && stamp >= Math.max(...sources)) return;
  npm(["run", "--silent", "build"], built === 0 ? "Building" : "Sources changed, building");
}

/**
 * Installs what is missing, and calls `main(command line, ...more)` of a TypeScript file, loaded by vite as vitest loads the tests. Resolves with what it
 * returns; what could not be set up ends the process. Nothing is served: vite stays open because a run may import agents when it starts.
 */
export async function runTypeScript(file, ...more) {
  try {
    ensureInstalled();
    const { createServer } = await import("vite");
    const vite = await createServer({ root: ROOT, configFile: false, logLevel: "error", appType: "custom", optimizeDeps: { noDiscovery: true }, server: { middlewareMode: true, hmr: false, ws: false, watch: null } });
    try {
      const { main } = await vite.ssrLoadModule(file);
      return await main(process.argv.slice(2), ...more);
    } finally {
      await vite.close();
    }
  } catch (error) {
    if (!(error instanceof BootstrapError)) throw error;
    fail(error.message, error.next);
  }
}

/** Finds or builds the Dapr runtime, and says which; throws a BootstrapError where there is none. Needs what `ensureBuilt` makes. */
export function ensureRuntime() {
  const runtime = spawnSync(process.execPath, [join(ROOT, "dist", "src", "main", "runtime.js")], { cwd: ROOT, stdio: "inherit" });
  if (runtime.status !== 0) throw new BootstrapError("There is no Dapr runtime to run on.", "The lines above say why.");
}

const BROWSERS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/** Path of a Chromium, or undefined. */
export function findChromium() {
  const dirs = (process.env.PATH ?? "").split(delimiter).filter((dir) => dir !== "");
  return BROWSERS.flatMap((name) => dirs.map((dir) => join(dir, name))).find((file) => existsSync(file));
}

/** Finds Chromium, or installs it where that is possible without asking (root, apt-get); throws a BootstrapError otherwise. */
export function ensureChromium() {
  const found = findChromium();
  if (found !== undefined) return found;
  const isRoot = process.getuid?.() === 0;
  const hasApt = spawnSync("apt-get", ["--version"], { stdio: "ignore" }).status === 0;
  if (isRoot && hasApt) {
    process.stdout.write("Installing Chromium for the browser tests: apt-get install chromium\n");
    const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
    const ok = spawnSync("apt-get", ["update", "-qq"], { stdio: ["ignore", "ignore", "inherit"], env }).status === 0
      && spawnSync("apt-get", ["install", "-y", "-qq", "--no-install-recommends", "chromium", "fonts-liberation"], { stdio: ["ignore", "ignore", "inherit"], env }).status === 0;
    const installed = ok ? findChromium() : undefined;
    if (installed !== undefined) return installed;
  }
  throw new BootstrapError(`The browser tests need Chromium, and none of ${BROWSERS.join(", ")} is on PATH.`, "Install it (Debian: apt-get install chromium), or run the other layers: npm test -- lint types unit contract integration.");
}

function mtimeMs(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function newestUnder(dir) {
  if (!existsSync(dir)) return 0;
  return Math.max(0, ...readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => mtimeMs(join(entry.parentPath ?? entry.path, entry.name))));
}
