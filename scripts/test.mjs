/**
 * `npm test`: every layer, the real runtime included; `npm test -- unit contract` only some. Layers: lint, types, unit, contract,
 * integration, e2e, matrix, and on demand k8s. The last line is always `N passed, N failed`; the exit code is non-zero when anything failed or nothing ran.
 * Imports nothing outside Node: it runs before `npm ci`.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { ensureBuilt, ensureChromium, ensureInstalled, fail, requireNode, ROOT } from "./lib.mjs";

const STATIC_LAYERS = ["lint", "types"];
const TEST_LAYERS = ["unit", "contract", "integration", "e2e", "matrix", "k8s", "telemetry"];
const LAYERS = [...STATIC_LAYERS, ...TEST_LAYERS];
/** Only when asked for: k8s builds an API server first (six minutes, once), telemetry builds Jaeger. */
const ON_DEMAND = ["k8s", "telemetry"];
/** What each layer needs to be found or built (src/main/runtime.ts). */
const RUNTIME = { integration: ["kustomize"], e2e: ["sentry"], matrix: ["kfake"], k8s: ["cluster", "kustomize"], telemetry: ["jaeger"] };

const asked = process.argv.slice(2);
const unknown = asked.find((layer) => !LAYERS.includes(layer));
if (unknown !== undefined) fail(`There is no test layer "${unknown}".`, `Known layers: ${LAYERS.join(", ")}.`, 2);
const layers = asked.length > 0 ? asked : LAYERS.filter((layer) => !ON_DEMAND.includes(layer));

requireNode();
const totals = { passed: 0, failed: 0 };
/** What failed, said again just above the last line: who reads the end of a log must not have to look for it. */
const failures = [];
prepare("install", ensureInstalled);

for (const layer of layers.filter((name) => STATIC_LAYERS.includes(name))) {
  heading(layer);
  const result = spawnSync("npm", ["run", "--silent", layer], { cwd: ROOT, stdio: ["ignore", "inherit", "inherit"], shell: process.platform === "win32" });
  if (result.status !== 0) failures.push(`${layer}: npm run ${layer}`);
  count(layer, result.status === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 });
}

const testLayers = layers.filter((name) => !STATIC_LAYERS.includes(name));
if (testLayers.length > 0) {
  prepare("build", ensureBuilt);
  if (testLayers.includes("e2e")) prepare("chromium", ensureChromium);
  const onRuntime = testLayers.filter((name) => RUNTIME[name] !== undefined);
  if (onRuntime.length > 0) prepareRuntime(onRuntime.flatMap((name) => RUNTIME[name]));
}
for (const layer of testLayers) {
  heading(layer);
  count(layer, runVitest(layer));
}

if (failures.length > 0) process.stdout.write(`\nFailed:\n${failures.map((line) => `  ${line}\n`).join("")}`);
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
    return readReport(layer, report, result.status);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function readReport(layer, file, status) {
  let report;
  try {
    report = JSON.parse(readFileSync(file, "utf8"));
  } catch {
    failures.push(`${layer}: vitest ended with ${status} and left no report`);
    return { passed: 0, failed: 1 };
  }
  // A file that fails to load has no failed test in it, and an unhandled error no file: both must still fail the run.
  const failed = report.testResults.filter((result) => result.status === "failed").flatMap((result) => failuresIn(layer, result));
  if (failed.length === 0 && status !== 0) failed.push(`${layer}: an error outside of every test; see above`);
  failures.push(...failed);
  return { passed: report.numPassedTests, failed: failed.length };
}

/** Each failed test of a file; the file itself when it failed before any test of it did. */
function failuresIn(layer, result) {
  const file = `${layer}: ${relative(ROOT, result.name)}`;
  const tests = result.assertionResults.filter((test) => test.status === "failed");
  if (tests.length === 0) return [`${file} (the file itself)\n${indented(result.message)}`];
  return tests.map((test) => `${file} > ${test.fullName}\n${indented(test.failureMessages.join("\n"))}`);
}

/** The first lines of a failure, below its name. */
function indented(message) {
  return message.split("\n").slice(0, 25).map((line) => `      ${line}`).join("\n");
}

/** A step before the tests. Its failure is a failure of the run; the layers that can still run do. */
function prepare(label, step) {
  try {
    step();
  } catch (error) {
    process.stderr.write(`${error.message}${error.next === undefined ? "" : `\n  -> ${error.next}`}\n`);
    failures.push(`${label}: ${error.message}`);
    count(label, { passed: 0, failed: 1 });
  }
}

/** Finds or builds the runtime before the tests, with progress, instead of inside the first test's time limit. */
function prepareRuntime(more) {
  const result = spawnSync(process.execPath, [join(ROOT, "dist", "src", "main", "runtime.js"), ...more], { cwd: ROOT, stdio: ["ignore", "inherit", "inherit"] });
  if (result.status === 0) return;
  failures.push("runtime: it could not be found or built; see above");
  count("runtime", { passed: 0, failed: 1 });
}

function heading(layer) {
  process.stdout.write(`\n== ${layer}\n`);
}

function count(layer, { passed, failed }) {
  totals.passed += passed;
  totals.failed += failed;
  process.stdout.write(`   ${layer}: ${passed} passed, ${failed} failed\n`);
}
