/**
 * `node scripts/image.mjs DIR`: lays out what the image holds, from a checkout that is installed and built: compiled code, run-time dependencies,
 * policies, scripts of agents. The Dockerfile runs it, and so does the test of the layout, which needs no container engine.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fail, ROOT } from "./lib.mjs";

const WHOLE = ["package.json", "package-lock.json", "LICENSE", "bin", "policies", "node_modules"];
/** Of the compiled code: no build stamps. */
const LEFT_OUT = /\.tsbuildinfo$/;

const [given] = process.argv.slice(2);
if (given === undefined) fail("A folder is missing.", "node scripts/image.mjs DIR", 2);
const out = resolve(given);
if (existsSync(out) && readdirSync(out).length > 0) fail(`${out} is not empty.`, "Give a folder that is new or empty.");
if (!existsSync(join(ROOT, "dist", "src", "main", "gateway.js"))) fail("There is no compiled code.", "npm run build");

mkdirSync(out, { recursive: true });
for (const name of WHOLE) cpSync(join(ROOT, name), join(out, name), { recursive: true, verbatimSymlinks: true });
cpSync(join(ROOT, "dist"), join(out, "dist"), { recursive: true, filter: (path) => !LEFT_OUT.test(path) });
for (const script of scripts(join(ROOT, "agents"))) {
  const to = join(out, "agents", basename(dirname(script)));
  mkdirSync(to, { recursive: true });
  cpSync(script, join(to, "script.yaml"));
}
const pruned = spawnSync("npm", ["prune", "--omit=dev", "--offline", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: out, stdio: ["ignore", "ignore", "inherit"], shell: process.platform === "win32" });
if (pruned.status !== 0) fail("npm prune failed.", "Its output above says why.");
process.stdout.write(`${out}\n`);

/** Scripts of scripted models: `agents/<agent>/script.yaml`. */
function scripts(dir) {
  return readdirSync(dir, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map((entry) => join(dir, entry.name, "script.yaml")).filter((file) => existsSync(file));
}
