/**
 * `npm run matrix`: runs test/matrix (each broker with each state store, on the real runtime) and writes docs/matrix.md from the
 * JSON result of that run. `npm run matrix -- --from <report.json>` only writes the page, from a result that is there already.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ensureBuilt, ensureInstalled, fail, requireNode, ROOT } from "./lib.mjs";

/** The page. `report` is vitest's JSON; each test carries its pair in `meta.matrix` (test/support/main-job.ts). */
export function matrixPage(report, machine) {
  const pairs = pairsOf(report);
  const promises = [...new Set(pairs.flatMap((pair) => pair.tests.map((test) => test.title)))];
  const cell = (pair, promise) => ({ passed: "holds", failed: "**fails**" })[pair.tests.find((test) => test.title === promise)?.status] ?? "not run";
  const limits = [...new Map(pairs.filter(({ about }) => about?.limits).map(({ about }) => [about.broker, about.limits]))];
  return [
    "<!-- Made by `npm run matrix` from the results of that run. Do not edit. -->",
    "# Brokers and state stores",
    "",
    `One suite (\`test/support/main-job.ts\`) on every pair, on the real runtime, ${machine}. It is the layer \`matrix\` of \`npm test\`;`,
    "`npm run matrix` runs it and writes this page. Every pair has a broker (or virtual host), a database and ports of its own.",
    "",
    ...promises.map((promise, index) => `${index + 1}. ${promise}`),
    "",
    row(["broker", "state store", "session hosts", ...promises.map((_, index) => String(index + 1)), "seconds"]),
    row(["---", "---", "---", ...promises.map(() => "---"), "---"]),
    ...pairs.map((pair) => row([pair.broker, pair.store, String(pair.about?.sessionHosts ?? ""), ...promises.map((promise) => cell(pair, promise)), seconds(pair)])),
    "",
    "\"Seconds\" is the start of the whole stack and all six tests. Promise 2 is tried on a pile: the session hosts stand still while the events are sent, then all of them",
    "read at once. In promise 5 only the app is killed; that the broker, a sidecar or any other process dies is `test/e2e/kills.test.ts`, on the profile `embedded`.",
    ...(limits.length === 0 ? [] : ["", "## What a pair promises less", "", ...limits.map(([broker, text]) => `- **${broker}**: ${text}`)]),
    ...reasons(pairs),
    "",
    "## What ran",
    "",
    row(["broker", "state store", "broker version", "store version", "Dapr"]), row(["---", "---", "---", "---", "---"]),
    ...pairs.filter(({ about }) => about !== undefined).map(({ broker, store, about }) => row([broker, store, about.brokerVersion, about.storeVersion, about.dapr])),
    "",
    "How durable each is stands in the third and fourth column. No pair loses anything with a killed session host; a broker with nothing on disk forgets what it held when it is",
    "killed itself, and a power cut takes what was not fsynced. (Accepted events are sent again from the gateway's inbox, tool requests from the session's outbox.)",
    "kfake speaks Kafka's protocol, but it is not Kafka: it replicates nothing, and its timing is not Kafka's.",
    "",
  ].join("\n");
}

function pairsOf(report) {
  const pairs = new Map();
  for (const test of report.testResults.flatMap((file) => file.assertionResults)) {
    const [, broker, store, missing] = /^(.+?) and (.+?)(?: \(not run: (.+)\))?$/.exec(test.ancestorTitles[0] ?? "") ?? [];
    if (broker === undefined) continue;
    const key = `${broker} and ${store}`;
    const pair = pairs.get(key) ?? { broker, store, missing, tests: [] };
    pair.about ??= test.meta?.matrix;
    pair.tests.push(test);
    pairs.set(key, pair);
  }
  return [...pairs.values()];
}

function reasons(pairs) {
  const lines = pairs.flatMap(({ broker, store, missing, tests }) => [
    ...(missing === undefined ? [] : [`- ${broker} with ${store} was not run: ${missing}.`]),
    ...tests.filter((test) => test.status === "failed").map((test) => `- ${broker} with ${store}, "${test.title}": ${(test.failureMessages?.[0] ?? "failed").split("\n")[0]}`),
  ]);
  return lines.length === 0 ? [] : ["", "## What did not hold in this run", "", ...lines];
}

function seconds({ about, tests }) {
  return about === undefined ? "" : String(Math.round(((about.startMs ?? 0) + tests.reduce((sum, test) => sum + (test.duration ?? 0), 0)) / 1000));
}

const row = (cells) => `| ${cells.join(" | ")} |`;

function main() {
  requireNode();
  const given = process.argv.indexOf("--from");
  const scratch = mkdtempSync(join(tmpdir(), "docket-report-"));
  const file = given > 0 ? process.argv[given + 1] : join(scratch, "report.json");
  if (file === undefined) fail("--from names no file.", "npm run matrix -- --from report.json", 2);
  try {
    const status = given > 0 ? 0 : run(file);
    const report = JSON.parse(readFileSync(file, "utf8"));
    writeFileSync(join(ROOT, "docs", "matrix.md"), matrixPage(report, `${availableParallelism()} cores, ${new Date(report.startTime).toISOString().slice(0, 10)}`));
    process.stdout.write(`docs/matrix.md is written; ${report.numPassedTests} passed, ${report.numFailedTests} failed\n`);
    process.exitCode = status === 0 ? 0 : 1;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function run(file) {
  ensureInstalled();
  ensureBuilt();
  const args = [join(ROOT, "node_modules", "vitest", "vitest.mjs"), "run", "--project", "matrix", "--reporter=default", "--reporter=json", `--outputFile.json=${file}`];
  return spawnSync(process.execPath, args, { cwd: ROOT, stdio: ["ignore", "inherit", "inherit"] }).status;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) main();
