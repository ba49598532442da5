/**
 * Owns: what an app says about itself while it is measured; loaded into each app with --import. SIGURG starts a measurement (SIGUSR2 is the apps' own: debug logs),
 * the next one ends it and writes `$BENCH_PROBE_DIR/<app>.json`: HTTP requests to the sidecar (and elsewhere) and from it, by
 * route, and the event loop's delay. With BENCH_CPU_PROFILE=1 also `<app>.cpuprofile`.
 */
import { subscribe } from "node:diagnostics_channel";
import { renameSync, writeFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";

const dir = process.env.BENCH_PROBE_DIR;
const name = process.env.APP_ID;
const profiling = process.env.BENCH_CPU_PROFILE === "1";
const sidecarPort = process.env.DAPR_HTTP_PORT;

let counts;
const delay = monitorEventLoopDelay({ resolution: 20 });
const inspector = new Session();

const count = (line) => {
  if (counts !== undefined) counts[line] = (counts[line] ?? 0) + 1;
};
subscribe("undici:request:create", ({ request }) => { count(`out ${String(request.origin).endsWith(`:${sidecarPort}`) ? "sidecar" : "other"} ${request.method} ${routeOf(request.path)}`); });
subscribe("http.server.request.start", ({ request }) => { count(`in ${request.method} ${routeOf(request.url)}`); });

/** The path without what names one session, key or run. */
function routeOf(path) {
  return path.split("?")[0]
    .replace(/\/actors\/([^/]+)\/[^/]+/, "/actors/$1/*")
    .replace(/\/reminders\/[^/]+/, "/reminders/*")
    .replace(/^(\/v1\.0\/state\/[^/]+)\/(?!bulk$|transaction$).+/, "$1/*")
    .replace(/^\/v1\/sessions\/[^/]+/, "/v1/sessions/*")
    .replace(/\/events\/.+/, "/events/*")
    .replace(/\/approvals\/[^/]+/, "/approvals/*");
}

async function begin() {
  delay.enable();
  delay.reset();
  if (profiling) {
    inspector.connect();
    await inspector.post("Profiler.enable");
    await inspector.post("Profiler.start");
  }
  counts = {};
}

async function end() {
  const report = { counts, loopDelayMs: { p50: delay.percentile(50) / 1e6, p99: delay.percentile(99) / 1e6, max: delay.max / 1e6 } };
  counts = undefined;
  if (profiling) {
    const { profile } = await inspector.post("Profiler.stop");
    writeFileSync(join(dir, `${name}.cpuprofile`), JSON.stringify(profile));
    inspector.disconnect();
  }
  // Whoever waits for the file finds it whole.
  const file = join(dir, `${name}.json`);
  writeFileSync(`${file}.part`, JSON.stringify(report));
  renameSync(`${file}.part`, file);
}

process.on("SIGURG", () => { void (counts === undefined ? begin() : end()); });
