/**
 * `npm test`: every layer, the real runtime included; `npm test -- unit contract` only some. Layers: lint, types, unit, contract,
 * integration, e2e, matrix. The last line is always `N passed, N failed`; the exit code is non-zero when anything failed or nothing ran.
 * Imports nothing outside Node: it runs before `npm ci`.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureBuilt, ensureChromium, ensureInstalled, fail, requireNode, ROOT } from "./lib.mjs";

const STATIC_LAYERS = ["lint", "types"];
const TEST_LAYERS = ["unit", "contract", "integration", "e2e", "matrix"];
const LAYERS = [...STATIC_LAYERS, ...TEST_LAYERS];

const asked = process.argv.slice(2);
const unknown = asked.find((layer) => !LAYERS.includes(layer));
if (unknown !== undefined) fail(`There is no test layer "${unknown}".`, `Known layers: ${LAYERS.join(", ")}.`, 2);
const layers = asked.length > 0 ? asked : LAYERS;

requireNode();
const totals = { passed: 0, failed: 0 };
prepare("install", ensureInstalled);

for (const layer of layers.filter((name) => STATIC_LAYERS.includes(name))) {
  heading(layer);
  const result = spawnSync("npm", ["run", "--silent", layer], { cwd: ROOT, stdio: ["ignore", "inherit", "inherit"], shell: process.platform === "win32" });
  count(layer, result.status === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 });
}

const testLayers = layers.filter((name) => TEST_LAYERS.includes(name));
if (testLayers.length > 0) {
  prepare("build", ensureBuilt);
  if (testLayers.includes("e2e")) prepare("chromium", ensureChromium);
  const onRuntime = testLayers.filter((name) => name === "integration" || name === "e2e" || name === "matrix");
  if (onRuntime.length > 0) prepareRuntime(onRuntime.includes("matrix") ? ["kfake"] : []);
}
for (const layer of testLayers) {
  heading(layer);
  count(layer, runVitest(layer));
}

const nothingRan = totals.passed + totals.failed === 0;
if (nothingRan) process.stderr.write("No test ran at all: that is a failure too.\n");
process.exitCode = totals.failed > 0 || nothingRan ? 1 : 0;
process.stdout.write(`${totals.passed} passed, ${totals.failed} failed\n`);

/** One layer in vitest; its JSON report is what is counted. */
function runVitest(layer) {
  const scratch = mkdtempSync(join(tmpdir(), "docket-report-"));
  const report = join(scratch, "report.json");
  try {
    const vitest = join(ROOT, "node_modules", "vitest", "vitest.mjs");
    const args = [vitest, "run", "--project", layer, "--passWithNoTests", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
    const result = spawnSync(process.execPath, args, { cwd: ROOT, stdio: ["ignore", "inherit", "inherit"] });
    return readReport(report, result.status);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function readReport(file, status) {
  let report;
  try {
    report = JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return { passed: 0, failed: 1 };
  }
  // A file that fails to load has no failed test in it, and an unhandled error no file: both must still fail the run.
  const brokenFiles = report.testResults.filter((result) => result.status === "failed" && !result.assertionResults.some((test) => test.status === "failed")).length;
  const failed = report.numFailedTests + brokenFiles;
  return { passed: report.numPassedTests, failed: failed === 0 && status !== 0 ? 1 : failed };
}

/** A step before the tests. Its failure is a failure of the run; the layers that can still run do. */
function prepare(label, step) {
  try {
    step();
  } catch (error) {
    process.stderr.write(`${error.message}${error.next === undefined ? "" : `\n  -> ${error.next}`}\n`);
    count(label, { passed: 0, failed: 1 });
  }
}

/** Finds or builds the runtime before the tests, with progress, instead of inside the first test's time limit. */
function prepareRuntime(more) {
  const result = spawnSync(process.execPath, [join(ROOT, "dist", "src", "main", "runtime.js"), ...more], { cwd: ROOT, stdio: ["ignore", "inherit", "inherit"] });
  if (result.status !== 0) count("runtime", { passed: 0, failed: 1 });
}

function heading(layer) {
  process.stdout.write(`\n== ${layer}\n`);
}

function count(layer, { passed, failed }) {
  totals.passed += passed;
  totals.failed += failed;
  process.stdout.write(`   ${layer}: ${passed} passed, ${failed} failed\n`);
}
