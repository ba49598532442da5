/** One trace over all hops, an approval, and kill -9 of every process; the numbers that Prometheus reads. `npm run test:telemetry` asks Jaeger the same. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { INSTRUMENTS } from "../../src/platform/telemetry/metrics.js";
import { choosePorts } from "../../src/launcher/ports.js";
import { startDocket, type Docket } from "../support/docket.js";
import { startCollector } from "../support/spans.js";
import { checkTracedRun, tracedRun } from "../support/traced-run.js";

const APPS = ["gateway", "sessions", "tools", "console"] as const;
let docket: Docket;
let collector: Awaited<ReturnType<typeof startCollector>>;
let metricsPorts: Readonly<Record<string, number>>;
beforeAll(async () => {
  collector = await startCollector();
  metricsPorts = await choosePorts({ wishes: Object.fromEntries(APPS.map((app) => [app, undefined])), mode: "free", overrides: {} });
  const env = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json", OTEL_BSP_SCHEDULE_DELAY: "200" };
  docket = await startDocket({ extraEnv: Object.fromEntries(APPS.map((app) => [app, { ...env, DOCKET_METRICS_PORT: String(metricsPorts[app]) }])) });
});
afterAll(async () => {
  await docket.close();
  await collector.stop();
});

async function scrape(app: (typeof APPS)[number]): Promise<string> {
  return await (await fetch(`http://127.0.0.1:${String(metricsPorts[app])}/metrics`)).text();
}

describe("telemetry of the real stack", () => {
  it("shows a run that crossed an approval and a restart of everything as one tree, with a link over the wait", async () => {
    checkTracedRun(await tracedRun(docket, (traceId) => Promise.resolve(collector.spans.filter((span) => span.traceId === traceId))));
  });

  it("serves its numbers to Prometheus, app by app, none beyond the documented table", async () => {
    const pages = Object.fromEntries(await Promise.all(APPS.map(async (app) => [app, await scrape(app)] as const)));
    expect(pages["sessions"]).toMatch(/^docket_runs_ended_total\{agent="assistant",outcome="completed"\} 1$/m);
    expect(pages["sessions"]).toMatch(/^docket_approval_decision_seconds_count\{agent="assistant"\} 1$/m);
    expect(pages["sessions"]).toMatch(/^gen_ai_client_token_usage_count\{[^}]*gen_ai_token_type="input"[^}]*\} 1$/m);
    expect(pages["tools"]).toMatch(/^docket_tool_duration_seconds_count\{tool="issue_refund",outcome="succeeded"\} 1$/m);
    expect(pages["console"]).toMatch(/^docket_approvals_waiting 0$/m);
    expect(pages["gateway"]).toMatch(/^docket_inbox_oldest_seconds /m);
    const known = new Set(Object.keys(INSTRUMENTS).map((name) => name.replaceAll(".", "_")));
    for (const [, name] of Object.values(pages).join("\n").matchAll(/^# TYPE ((?!target_info)\w+) /gm)) expect(known, name).toContain((name ?? "").replace(/_total$/, ""));
  });

  it("changes its log level at run time, for whoever holds the app token, and tells nobody through a sidecar", async () => {
    const put = (headers: Record<string, string> = {}) => docket.test.callApp("sessions", "/log-level", { method: "PUT", body: JSON.stringify({ level: "debug", forMs: 5_000 }), headers });
    expect(await (await put()).json()).toMatchObject({ level: "debug" });
    expect(await (await docket.test.callApp("sessions", "/log-level", { method: "DELETE" })).json()).toEqual({ level: "info" });
    expect((await put({ "dapr-caller-app-id": "tools" })).status).toBe(403);
    expect((await docket.test.callSidecar("gateway", "/v1.0/invoke/sessions/method/log-level", { method: "PUT", body: JSON.stringify({ level: "debug" }) })).status).toBeGreaterThanOrEqual(400);
    expect(await (await docket.test.callApp("sessions", "/log-level")).json()).toEqual({ level: "info" });
  });
});
